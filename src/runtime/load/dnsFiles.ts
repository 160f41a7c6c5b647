import { accepting } from "../../model/text/textRule.js";
import { isDomainName } from "../../model/net/serverName.js";

/** Parses the files with secrets for DNS updates. No error message contains a secret. */

export const TSIG_ALGORITHMS = {
  "hmac-sha256": "sha256",
  "hmac-sha384": "sha384",
  "hmac-sha512": "sha512",
} as const;

/** A key that signs DNS messages (RFC 8945). */
export interface TsigKey {
  readonly name: string;
  readonly algorithm: keyof typeof TSIG_ALGORITHMS;
  readonly secret: Buffer;
}

/** A key as `tsig-keygen` writes it; undefined if the text is not one. */
export function tsigKeyIn(text: string): TsigKey | undefined {
  const [, name = "", body = ""] =
    /^\s*key\s+"?([A-Za-z0-9._-]+)"?\s*\{([^{}]*)\}\s*;\s*$/.exec(text.slice(0, KEY_FILE_MOST)) ?? [];
  const algorithm = /(?:^|[;\s])algorithm\s+"?([a-z0-9-]+)"?\s*;/.exec(body)?.[1] ?? "";
  const secret = Buffer.from(
    /(?:^|[;\s])secret\s+"([A-Za-z0-9+/]+={0,2})"\s*;/.exec(body)?.[1] ?? "",
    "base64",
  );
  const lower = name.toLowerCase().replace(/\.$/, "");
  if (!isDomainName(lower) || !Object.hasOwn(TSIG_ALGORITHMS, algorithm) || secret.length < 16)
    return undefined;
  return { name: lower, algorithm: algorithm as TsigKey["algorithm"], secret };
}

const KEY_FILE_MOST = 4096;

/** The response of an acme-dns server to a registration. */
export interface AcmeDnsAccount {
  readonly username: string;
  readonly password: string;
  /** The name that its records are at. */
  readonly fulldomain: string;
  readonly subdomain: string;
}

/** Accounts by the names that they are for, `*` for all; undefined if the text has none, or anything else. */
export function acmeDnsAccountsIn(text: string): ReadonlyMap<string, AcmeDnsAccount> | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const single = accountIn(value);
  if (single !== undefined) return new Map([["*", single]]);
  if (typeof value !== "object" || value === null) return undefined;
  const accounts = Object.entries(value).map(
    ([name, one]) => [name.replace(/^\*\./, ""), accountIn(one)] as const,
  );
  const known = accounts.filter((one): one is readonly [string, AcmeDnsAccount] => one[1] !== undefined);
  return known.length > 0 && known.length === accounts.length ? new Map(known) : undefined;
}

function accountIn(value: unknown): AcmeDnsAccount | undefined {
  const { username, password, fulldomain, subdomain } = Object(value) as Record<string, unknown>;
  const fits =
    isField(username) &&
    isField(password) &&
    isField(subdomain) &&
    isField(fulldomain) &&
    isDomainName(fulldomain);
  return fits ? { username, password, fulldomain, subdomain } : undefined;
}

/** Whether a value is valid in a request's field. */
const isField = (value: unknown): value is string => typeof value === "string" && FIELD(value);
const FIELD = accepting({ pattern: "^[!-~]+$", lengthMax: 253 });

/** The token of a provider's API; undefined if the text is not one. */
export function apiTokenIn(text: string): string | undefined {
  const token = text.trim();
  return isField(token) ? token : undefined;
}
