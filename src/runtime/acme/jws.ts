import { createHash, createHmac, createPublicKey, type KeyObject, sign } from "node:crypto";

/** Signed requests (RFC 7515) as ACME wants them: flattened JSON, ES256 for accounts, HS256 for external ones. */

/** @param payload undefined for POST-as-GET (RFC 8555, 6.3) */
export function signedRequest(key: KeyObject, header: object, payload: unknown): string {
  return flattened({ alg: "ES256", ...header }, payload, (input) =>
    sign("sha256", input, { key, dsaEncoding: "ieee-p1363" }),
  );
}

/** Proves to the authority that an account belongs to a customer of its own (RFC 8555, 7.3.4). */
export function externalBinding(account: KeyObject, keyId: string, macKey: Buffer, url: string): unknown {
  const header = { alg: "HS256", kid: keyId, url };
  const mac = (input: Buffer): Buffer => createHmac("sha256", macKey).update(input).digest();
  return JSON.parse(flattened(header, publicJwk(account), mac));
}

/** What the authority wants to read or see for a token (RFC 8555, 8.1). */
export function keyAuthorization(account: KeyObject, token: string): string {
  // RFC 7638: the required members in the order of their names, which is the order they have here.
  const thumbprint = createHash("sha256")
    .update(JSON.stringify(publicJwk(account)))
    .digest("base64url");
  return `${token}.${thumbprint}`;
}

export function publicJwk(key: KeyObject): object {
  const { crv, kty, x, y } = createPublicKey(key).export({ format: "jwk" });
  return { crv, kty, x, y };
}

function flattened(header: object, payload: unknown, signature: (input: Buffer) => Buffer): string {
  const protectedHeader = base64url(JSON.stringify(header));
  const content = payload === undefined ? "" : base64url(JSON.stringify(payload));
  const made = signature(Buffer.from(`${protectedHeader}.${content}`));
  return JSON.stringify({
    protected: protectedHeader,
    payload: content,
    signature: made.toString("base64url"),
  });
}

const base64url = (text: string): string => Buffer.from(text).toString("base64url");
