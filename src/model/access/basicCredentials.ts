/** Credentials of Basic authentication (RFC 7617). */
export interface BasicCredentials {
  readonly user: string;
  readonly password: string;
}

/**
 * Reads the value of `Authorization`; undefined for anything else than Basic credentials. Clients that do not know of UTF-8
 * send ISO 8859-1. Names and passwords are compared in one form of Unicode, whichever one the client's keyboard makes.
 */
export function basicCredentials(authorization: string): BasicCredentials | undefined {
  if (authorization.length > CREDENTIALS_LENGTH_MAX) return undefined;
  if (!BASIC.test(authorization)) return undefined;
  const encoded = authorization.slice("basic ".length).trim();
  if (!ENCODED.test(encoded)) return undefined;
  const bytes = Buffer.from(encoded, "base64");
  const utf8 = bytes.toString("utf8");
  const pair = (utf8.includes("\ufffd") ? bytes.toString("latin1") : utf8).normalize("NFC");
  const colon = pair.indexOf(":");
  if (colon <= 0 || CONTROL.test(pair)) return undefined;
  return { user: pair.slice(0, colon), password: pair.slice(colon + 1) };
}

const BASIC = /^basic /i;
const ENCODED = /^[A-Za-z0-9+/_-]+={0,2}$/;
const CREDENTIALS_LENGTH_MAX = 4_096;
const CONTROL = /\p{Cc}/u;
