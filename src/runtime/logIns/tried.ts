import { createHmac, randomBytes } from "node:crypto";
import type { LogInConfig } from "../../model/serving.js";
import type { RequestHead } from "../codec/request.js";
import { headerValue } from "../exchange/exchange.js";
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

  /** Hashes `Authorization: Basic`; undefined for a request without it. Other schemes have no passwords, or change each time. */
  ofAuthorization({ headers }: RequestHead): Tried | undefined {
    const value = headerValue(headers, "authorization");
    if (value === undefined || !/^basic /i.test(value)) return undefined;
    const [, account, secret] = /^([^:]*):([\s\S]*)$/.exec(basicText(value)) ?? [];
    return this.tried(["authorization", value], account, secret);
  }

  /** Hashes a whole body. */
  ofBody({ headers, target, path }: RequestHead, body: Buffer, rule: LogInConfig): Tried {
    const type = headerValue(headers, "content-type") ?? "";
    const encoded = headerValue(headers, "content-encoding") !== undefined;
    const query = target.includes("?") ? target.slice(target.indexOf("?") + 1) : "";
    const read = encoded ? undefined : fieldsOf(type, body.toString("latin1"), rule.changing);
    const { rest = body.toString("latin1"), values } = read ?? {};
    // The path of a shared link is its account.
    const parts = ["body", path, ...withoutFields(query, rule.changing), "", rest];
    const valueOf = (field?: string) => (field === undefined ? undefined : values?.(field));
    return this.tried(parts, valueOf(rule.account), valueOf(rule.password));
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
    const hmac = createHmac("sha256", Buffer.from(this.key, "base64")).update(JSON.stringify(parts));
    return hmac.digest().subarray(0, HASH_BYTES).toString("base64");
  }
}

const HASH_BYTES = 16;

export const newKey = (): string => randomBytes(32).toString("base64");

const basicText = (value: string): string =>
  Buffer.from(value.slice("basic ".length), "base64").toString("latin1");

interface ReadBody {
  /** All but the fields that change. */
  readonly rest: string;
  readonly values: (field: string) => string | undefined;
}

/** Undefined for a body that is not read as fields. */
function fieldsOf(type: string, body: string, changing: readonly string[]): ReadBody | undefined {
  if (/^application\/x-www-form-urlencoded\s*(?:;|$)/i.test(type)) {
    const form = new URLSearchParams(body);
    return {
      rest: JSON.stringify(withoutFields(body, changing)),
      values: (field) => form.get(field) ?? undefined,
    };
  }
  return /^application\/json\s*(?:;|$)/i.test(type) ? membersOf(body, changing) : undefined;
}

/** The pieces of a form, as they were sent. */
const withoutFields = (form: string, changing: readonly string[]): string[] =>
  form === "" ? [] : form.split("&").filter((piece) => !isOf(piece, changing));

/** Whether a piece of a form is one of these fields, and nothing else: some servers separate fields by `;`. */
const isOf = (piece: string, fields: readonly string[]): boolean =>
  !piece.includes(";") && fields.includes(new URLSearchParams(piece).keys().next().value ?? "");

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
      changing.length === 0 ? body : JSON.stringify(all.filter(([name]) => !changing.includes(name)));
    const valueOf = (field: string): unknown => all.find(([name]) => name === field)?.[1];
    return { rest, values: (field) => textOf(valueOf(field)) };
  } catch {
    return undefined;
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** How many members objects in a JSON text have. */
const namesIn = (text: string): number =>
  [...text.matchAll(/"(?:[^"\\]|\\.)*"(\s*:)?/g)].filter(([, colon]) => colon !== undefined).length;
