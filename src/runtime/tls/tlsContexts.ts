import { createSecureContext, type SecureContext, type SecureContextOptions } from "node:tls";
import { type TlsPolicyName, type TlsPolicySettings, tlsPolicySettings } from "../../model/serving.js";
import type { CertificateContents, UpstreamTlsContents } from "./tlsContents.js";

/**
 * A server of ours checks nobody's certificate. Without this, Node reads all roots that it knows in every process, which
 * cost each of them some 25 ms at its start.
 */
export const NO_ROOTS: string[] = [];

/**
 * A policy as this host's OpenSSL supports it: a named policy without the optional groups that OpenSSL does not know. One
 * unknown group makes OpenSSL 3.0 refuse the whole list. A policy that the config spells out keeps all its groups, and is
 * checked.
 */
export function hostPolicy(policy: TlsPolicyName | TlsPolicySettings): TlsPolicySettings {
  const { curvesIfKnown = [], ...settings } = tlsPolicySettings(policy);
  return { ...settings, curves: [...curvesIfKnown.filter(knowsOptional), ...settings.curves] };
}

/** Asked once for each group of the named policies: there may be hundreds of certificates. */
function knowsOptional(curve: string): boolean {
  const known = optional.get(curve) ?? knowsCurve(curve);
  optional.set(curve, known);
  return known;
}

const optional = new Map<string, boolean>();

export const knowsCurve = (curve: string): boolean => "context" in contextOf({ ecdhCurve: curve });

/** A policy and a certificate as options for Node; the listeners use the same options. */
export function secureContextOptions(
  policy: TlsPolicySettings,
  certificate?: CertificateContents,
  dhparam?: string,
): SecureContextOptions {
  return {
    minVersion: policy.minVersion,
    maxVersion: policy.maxVersion,
    ciphers: policy.ciphers,
    ecdhCurve: policy.curves.join(":"),
    honorCipherOrder: policy.preferServerCiphers,
    sessionTimeout: policy.sessionTimeoutSeconds,
    ca: NO_ROOTS,
    ...(certificate === undefined ? {} : { key: certificate.key, cert: certificate.cert }),
    ...(dhparam === undefined ? {} : { dhparam }),
  };
}

/** For connections to an upstream. @param verify without it no roots are read @throws Error of OpenSSL */
export function upstreamContext({ roots, cert, key }: UpstreamTlsContents, verify: boolean): SecureContext {
  return createSecureContext({
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    ca: verify ? roots : NO_ROOTS,
    ...(key === undefined ? {} : { cert, key }),
  });
}

/** For requests to an authority. @param roots that are trusted; undefined for those that Node brings */
export const authorityContext = (roots?: string): SecureContext =>
  createSecureContext(roots === undefined ? {} : { ca: roots });

type Made = { readonly context: SecureContext } | { readonly refused: string };

/** A server's context, or why OpenSSL refuses to make it. */
export const contextOf = (options: SecureContextOptions): Made =>
  tried(() => createSecureContext({ ca: NO_ROOTS, ...options }));

/** A context, or why OpenSSL refuses to make it. */
export function tried(make: () => SecureContext): Made {
  try {
    return { context: make() };
  } catch (error) {
    forgetErrors();
    return { refused: reason(error as Error) };
  }
}

/**
 * After an unknown curve, Node 20 leaves what OpenSSL said of it in the thread's queue of errors, and refuses the next
 * key that is read because of it, also in a later reload. A context that succeeds empties the queue.
 */
function forgetErrors(): void {
  createSecureContext({ ca: NO_ROOTS });
}

/** OpenSSL's reason without its file names and numbers. */
export function reason(error: Error & { reason?: string }): string {
  return error.reason ?? error.message;
}
