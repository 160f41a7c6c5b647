import { hsts, type responseHeaders } from "../model/responseHeaders.js";
import type { InputOf } from "../model/inferred.js";
import { type Problem, problem, type VirtualServerInput } from "../model/index.js";
import { fieldsOf } from "./props/fieldTable.js";
import { flag, type PropTable } from "./props/propTable.js";
import type { TlsMaterial } from "./tlsMaterial.js";

/**
 * Fields that are set or removed in every response: of the upstream, of files, redirects, fixed responses, and in error
 * pages. Names are compared without case. Fields of the framing and the connection, and those that belong to a single
 * response, are refused (`config.reserved-response-field`); see docs/response-headers.md.
 */
export interface ResponseHeaders extends InputOf<typeof responseHeaders> {}

/** HTTP Strict Transport Security (RFC 6797). A browser that has seen it uses nothing but https for the name. */
export interface HstsOptions extends InputOf<typeof hsts> {
  /**
   * Whether to send it with a self-signed certificate as well. Only for clients that all trust this certificate:
   * browsers have no way around a certificate error on a name that they know by HSTS.
   * @default false
   */
  readonly force?: boolean;
}

/**
 * Response fields that suit a file-sync application: use them as `responseHeaders`, or spread and change them.
 * docs/response-headers.md says what each is for, and what it breaks.
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
