import {
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  type TlsOptions,
} from "node:tls";
import { knowsGroup, NO_ROOTS } from "../../model/net/openssl.js";
import { type TlsPolicyName, type TlsPolicySettings, tlsPolicySettings } from "../../model/serving.js";
import type { CertificateContents, UpstreamTlsContents } from "./tlsContents.js";

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
  const known = optional.get(curve) ?? knowsGroup(curve);
  optional.set(curve, known);
  return known;
}

const optional = new Map<string, boolean>();

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
    key: certificate?.key,
    cert: certificate?.cert,
    dhparam,
  };
}

/** The context of connections to an upstream. @param verify without it no roots are read @throws Error of OpenSSL */
export function upstreamContext({ roots, cert, key }: UpstreamTlsContents, verify: boolean): SecureContext {
  return createSecureContext({
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    ca: verify ? roots : NO_ROOTS,
    ...(key === undefined ? {} : { cert, key }),
  });
}

/** The context of requests to authorities and notified targets. @param roots that are trusted; undefined for Node's own */
export const clientContext = (roots?: string): SecureContext =>
  createSecureContext(roots === undefined ? {} : { ca: roots });

/**
 * The context of a server that responds to a challenge (RFC 8737), and does the handshake only. OpenSSL's own defaults
 * apply: the listener's policy is for its clients, and an authority may not support it.
 */
export const challengeContext = ({
  key,
  cert,
}: Pick<CertificateContents, "key" | "cert">): SecureContextOptions => ({
  key,
  cert,
  ca: NO_ROOTS,
});

/**
 * The context of two hosts that share a key: only they can speak or listen on the connection, and a key that is stolen later
 * opens no earlier connection. There are no certificates, because some certificates would have to be there before others can
 * be copied.
 */
export const SHARED_KEY_CONTEXT: Pick<TlsOptions, "minVersion" | "maxVersion" | "ciphers"> = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.2",
  ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
};
