import { hash, randomBytes } from "node:crypto";
import type { LogInConfig } from "../../model/serving.js";
import type { RequestHead } from "../codec/request.js";
import { type HeaderList, headerValue } from "../exchange/exchange.js";
import type { Tried } from "./judge.js";

/**
 * What a log-in tries, as keyed hashes. Whatever a server may read as the secret has to be part of the hash: otherwise
 * somebody who guesses sends the same to the proxy and another to the server. So it is the body as a whole, but for
 * fields that are known to change, in a form or JSON that has one reading only.
 */
export class SecretHashes {
  /** @param key of this start of the service, in base64: hashes tell nothing without it */
  constructor(private key: string) {}

  /** From now on uses this key. */
  use(key: string): void {
    this.key = key;
  }

  /**
   * Hashes `Authorization: Basic`; undefined for a request without it. Other schemes have no passwords, or change each time.
   * Some servers take `BasicdTpw`, or find the scheme anywhere in the field; Nextcloud also reads `XAuthorization`.
   */
  ofAuthorization({ headers }: RequestHead): Tried | undefined {
    const values = valuesOf(headers, ["authorization", "xauthorization"]).filter((one) => /basic/i.test(one));
    if (values.length === 0) return undefined;
    const [, account, secret] = /^([^:]*):([\s\S]*)$/.exec(basicText(values[0]!)) ?? [];
    return this.tried(["authorization", ...values], account, secret);
  }

  /** Hashes a whole body; undefined for one that only renews a session. */
  ofBody({ headers, target, path }: RequestHead, body: Buffer, rule: LogInConfig): Tried | undefined {
    const [type = "", ...others] = valuesOf(headers, ["content-type"]);
    const encoded = others.length > 0 || headerValue(headers, "content-encoding") !== undefined;
    const query = target.includes("?") ? target.slice(target.indexOf("?") + 1) : "";
    const read = encoded ? undefined : fieldsOf(type, body.toString("latin1"), rule.changing);
    if (!encoded && rule.renewal !== undefined && renews(type, body.toString("latin1"), rule.renewal))
      return undefined;
    const { rest = body.toString("latin1"), values } = read ?? {};
    // The path of a shared link is its account.
    const parts = ["body", path, ...withoutFields(query, rule.changing), "", rest];
    const valueOf = (field?: string) => (field === undefined ? undefined : values?.(field));
    return this.tried(parts, valueOf(rule.accountField), valueOf(rule.passwordField));
  }

  /** A body that is too long to be kept is another secret each time: its end may be one. */
  unknown(): Tried {
    return { hash: randomBytes(HASH_BYTES).toString("base64") };
  }

  private tried(parts: readonly string[], account?: string, secret?: string): Tried {
    const of = (kind: string, value?: string) => (value === undefined ? undefined : this.hash([kind, value]));
    return { hash: this.hash(parts), account: of("account", account), secret: of("secret", secret) };
  }

  private hash(parts: readonly string[]): string {
    // Nobody sees it, so it needs no HMAC: the objects of three cost more than all the rest of a request.
    return hash("sha256", this.key + JSON.stringify(parts), "base64").slice(0, HASH_CHARS);
  }
}

const HASH_BYTES = 16;
/** The same length in base64, without padding. */
const HASH_CHARS = 22;

export const newKey = (): string => randomBytes(32).toString("base64");

const basicText = (value: string): string =>
  Buffer.from(value.replace(/^.*?basic\s*/i, ""), "base64").toString("latin1");

function valuesOf(headers: HeaderList, names: readonly string[]): readonly string[] {
  return headers.filter((_, i) => i % 2 === 1 && names.includes(headers[i - 1]!.toLowerCase()));
}

interface ReadBody {
  /** All but the fields that change. */
  readonly rest: string;
  readonly values: (field: string) => string | undefined;
}

/** Undefined for a body that is not read as fields. */
function fieldsOf(type: string, body: string, changing: readonly string[]): ReadBody | undefined {
  if (FORM.test(type)) {
    const form = new URLSearchParams(body);
    return {
      rest: JSON.stringify(withoutFields(body, changing)),
      values: (field) => form.get(field) ?? undefined,
    };
  }
  return JSON_TYPE.test(type) ? membersOf(body, changing) : undefined;
}

/** A server may read another charset, in which other bytes separate fields. */
const FORM = /^application\/x-www-form-urlencoded(?: ?; ?charset="?utf-8"?)?$/i;
const JSON_TYPE = /^application\/json(?: ?; ?charset="?utf-8"?)?$/i;

/** A value in which no server finds another field, whatever it takes the body for. */
const PLAIN = /^[A-Za-z0-9%+/=_.:~-]*$/;

/** Whether a form renews a session by a token that nobody can guess. A server may read names in any case. */
function renews(type: string, body: string, { field, value }: NonNullable<LogInConfig["renewal"]>): boolean {
  if (!FORM.test(type) || body.includes(";")) return false;
  const all = [...new URLSearchParams(body)].map(([name, given]) => [name.toLowerCase(), given] as const);
  const given = all.filter(([name]) => name === field.toLowerCase());
  return given.length === 1 && given[0]![1] === value && !all.some(([name]) => /pass|code|secret/.test(name));
}

/** The pieces of a form, as they were sent. */
const withoutFields = (form: string, changing: readonly string[]): string[] =>
  form === "" ? [] : form.split("&").filter((piece) => !isOf(piece, changing));

/** Whether a piece of a form is one of these fields, and nothing else: some servers separate fields by `;`. */
const isOf = (piece: string, fields: readonly string[]): boolean =>
  PLAIN.test(piece) && fields.includes(new URLSearchParams(piece).keys().next().value ?? "");

function membersOf(body: string, changing: readonly string[]): ReadBody | undefined {
  let members = 0;
  try {
    const read: unknown = JSON.parse(body, function (this: unknown, name: string, value: unknown) {
      if (name !== "" && !Array.isArray(this)) members += 1;
      return value;
    });
    // Servers read the first or the last of members with the same name.
    if (typeof read !== "object" || read === null || members !== namesIn(body)) return undefined;
    const all = Object.entries(read);
    // Texts that differ may be read as the same here, such as long numbers.
    const rest =
      changing.length === 0 ? body : JSON.stringify(all.filter((one) => !isMemberOf(one, changing)));
    const valueOf = (field: string): unknown => all.find(([name]) => name === field)?.[1];
    return { rest, values: (field) => textOf(valueOf(field)) };
  } catch {
    return undefined;
  }
}

const isMemberOf = ([name, value]: readonly [string, unknown], names: readonly string[]): boolean =>
  names.includes(name) && (typeof value === "string" ? PLAIN.test(value) : typeof value !== "object");

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** How many members objects in a JSON text have. */
const namesIn = (text: string): number =>
  [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length;
