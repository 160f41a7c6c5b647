/** What a TLS listener negotiates. */
export interface TlsPolicySettings {
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion: "TLSv1.2" | "TLSv1.3";
  readonly ciphers: string;
  readonly curves: readonly string[];
  readonly preferServerCiphers: boolean;
  readonly sessionTimeoutSeconds: number;
}

/**
 * Named policies. `file-sync` is service 3.2 to the letter; the Mozilla ones follow its server-side TLS guidelines 5.7.
 */
export const TLS_POLICIES = {
  "file-sync": {
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
    ciphers:
      "EECDH+AESGCM:EDH+AESGCM:EECDH:EDH:!MD5:!RC4:!LOW:!MEDIUM:!CAMELLIA:!ECDSA:!DES:!DSS:!3DES:!NULL",
    curves: ["secp384r1"],
    preferServerCiphers: true,
    sessionTimeoutSeconds: 600,
  },
  "mozilla-intermediate": {
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    ciphers: [
      "TLS_AES_128_GCM_SHA256",
      "TLS_AES_256_GCM_SHA384",
      "TLS_CHACHA20_POLY1305_SHA256",
      "ECDHE-ECDSA-AES128-GCM-SHA256",
      "ECDHE-RSA-AES128-GCM-SHA256",
      "ECDHE-ECDSA-AES256-GCM-SHA384",
      "ECDHE-RSA-AES256-GCM-SHA384",
      "ECDHE-ECDSA-CHACHA20-POLY1305",
      "ECDHE-RSA-CHACHA20-POLY1305",
      "DHE-RSA-AES128-GCM-SHA256",
      "DHE-RSA-AES256-GCM-SHA384",
      "DHE-RSA-CHACHA20-POLY1305",
    ].join(":"),
    curves: ["X25519", "prime256v1", "secp384r1"],
    preferServerCiphers: false,
    sessionTimeoutSeconds: 86_400,
  },
  "mozilla-modern": {
    minVersion: "TLSv1.3",
    maxVersion: "TLSv1.3",
    ciphers: "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
    curves: ["X25519", "prime256v1", "secp384r1"],
    preferServerCiphers: false,
    sessionTimeoutSeconds: 86_400,
  },
} as const satisfies Record<string, TlsPolicySettings>;

export type TlsPolicyName = keyof typeof TLS_POLICIES;

/** The settings of a named policy, or the settings themselves. */
export function tlsPolicySettings(policy: TlsPolicyName | TlsPolicySettings): TlsPolicySettings {
  return typeof policy === "string" ? TLS_POLICIES[policy] : policy;
}
