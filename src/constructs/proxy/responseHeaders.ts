import { hsts, type responseHeaders } from "../../model/schema/responseHeaders.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { type Problem, problem, type VirtualServerInput } from "../../model/index.js";
import { fieldsOf } from "../props/fieldTable.js";
import { flag, type PropTable } from "../props/propTable.js";
import type { TlsMaterial } from "./tlsMaterial.js";

/**
 * Header fields that are set or removed in every response: of upstreams, files, redirects, fixed responses, and error
 * pages. Names are compared without case. Fields of the framing and the connection, and fields of a single response,
 * are refused (`config.reserved-response-field`); see docs/response-headers.md.
 */
export interface ResponseHeaders extends InputOf<typeof responseHeaders> {}

/** HTTP Strict Transport Security (RFC 6797). A browser that has received the field uses only https for the name. */
export interface HstsOptions extends InputOf<typeof hsts> {
  /**
   * Whether to send the field with a self-signed certificate as well. Only if all clients trust this certificate: for
   * a name with HSTS, browsers offer no way around a certificate error.
   * @default false
   */
  readonly force?: boolean;
}

/**
 * Response header fields for a file-sync application: use the fields as `responseHeaders`, or spread and change them.
 * docs/response-headers.md explains the purpose and the side effects of each field.
 */
export const FILE_SYNC_RESPONSE_HEADERS: ResponseHeaders = Object.freeze({
  set: Object.freeze({
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "SAMEORIGIN",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "X-Robots-Tag": "noindex, nofollow",
  }),
  remove: Object.freeze(["X-Powered-By"]),
});

/** @internal */
export const HSTS_OPTIONS: PropTable<HstsOptions> = {
  ...fieldsOf(hsts),
  force: flag,
};

/** @internal `force` is for the stack only; the config does not have it. */
export function withoutForce({ force, ...rest }: HstsOptions): NonNullable<VirtualServerInput["hsts"]> {
  return rest;
}

/** @internal With HSTS, users can no longer make an exception for a self-signed certificate (RFC 6797, 12.1). */
export function selfSignedHstsProblems(
  path: string,
  { force = false }: HstsOptions,
  materials: readonly (TlsMaterial | undefined)[],
): Problem[] {
  if (force || !materials.some((material) => material?.selfSigned === true)) return [];
  const allowed = "`hsts` with a certificate that browsers trust, or with `force: true`";
  return [problem("config.hsts-self-signed", path, "is set with a self-signed certificate", { allowed })];
}
