/** The TLS parameters of a listener. */
export interface TlsPolicySettings {
  readonly minVersion: "TLSv1.2" | "TLSv1.3";
  readonly maxVersion: "TLSv1.2" | "TLSv1.3";
  readonly ciphers: string;
  readonly curves: readonly string[];
  readonly preferServerCiphers: boolean;
  readonly sessionTimeoutSeconds: number;
}

/** A policy that may have more groups on one host than on another. */
export interface NamedTlsPolicySettings extends TlsPolicySettings {
  /** Groups that come before `curves` where the host's OpenSSL knows them, and are left out where it does not. */
  readonly curvesIfKnown?: readonly string[];
}

/** Resists quantum computers; OpenSSL knows it from 3.5 on. Only TLS 1.3 has such groups. */
const HYBRID = ["X25519MLKEM768"] as const;

/** Service 3.2. */
const FILE_SYNC_CIPHERS =
  "EECDH+AESGCM:EDH+AESGCM:EECDH:EDH:!MD5:!RC4:!LOW:!MEDIUM:!CAMELLIA:!ECDSA:!DES:!DSS:!3DES:!NULL";

/**
 * Named policies. `file-sync` is service 3.2 to the letter; the Mozilla ones follow its server-side TLS guidelines 5.7,
 * with the first group of 5.8.
 */
export const TLS_POLICIES = {
  "file-sync": {
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.2",
    ciphers: FILE_SYNC_CIPHERS,
    curves: ["secp384r1"],
    preferServerCiphers: true,
    sessionTimeoutSeconds: 600,
  },
  "file-sync-tls13": {
    minVersion: "TLSv1.2",
    maxVersion: "TLSv1.3",
    ciphers: `TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256:${FILE_SYNC_CIPHERS}`,
    curvesIfKnown: HYBRID,
    // OpenSSL has one list for all versions. Over TLS 1.2 it takes the first one that the client knows: the contract's.
    // Over TLS 1.3 a key that the client has already sent (RFC 8446, 4.2.8) is taken before a better group.
    curves: ["secp384r1", "X25519"],
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
    curvesIfKnown: HYBRID,
    curves: ["X25519", "prime256v1", "secp384r1"],
    preferServerCiphers: false,
    sessionTimeoutSeconds: 86_400,
  },
  "mozilla-modern": {
    minVersion: "TLSv1.3",
    maxVersion: "TLSv1.3",
    ciphers: "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256",
    curvesIfKnown: HYBRID,
    curves: ["X25519", "prime256v1", "secp384r1"],
    preferServerCiphers: false,
    sessionTimeoutSeconds: 86_400,
  },
} as const satisfies Record<string, NamedTlsPolicySettings>;

export type TlsPolicyName = keyof typeof TLS_POLICIES;

/** The settings of a named policy, or the settings themselves. A host adapts them in `hostPolicy`. */
export function tlsPolicySettings(policy: TlsPolicyName | TlsPolicySettings): NamedTlsPolicySettings {
  return typeof policy === "string" ? TLS_POLICIES[policy] : policy;
}

/** Types of keys that certificates by ACME may have. */
export const KEY_TYPES = ["ecdsa-p256", "rsa-2048", "rsa-3072", "rsa-4096"] as const;

/** Type and size of a key. */
export type KeyType = (typeof KEY_TYPES)[number];

/** The type of key for a certificate that a policy's clients can use: the smaller and faster one, if it is allowed. */
export function keyTypeFor(policy: TlsPolicyName | TlsPolicySettings): KeyType {
  return takesEcdsa(tlsPolicySettings(policy)) ? "ecdsa-p256" : "rsa-2048";
}

type Suites = Pick<TlsPolicySettings, "minVersion" | "ciphers">;

/** Whether a key of that type can be used under a policy, by every client that the policy lets in. */
export function takesKeyType(policy: TlsPolicyName | Suites, keyType: KeyType): boolean {
  const settings = typeof policy === "string" ? TLS_POLICIES[policy] : policy;
  return keyType === "ecdsa-p256" ? takesEcdsa(settings) : takesRsa(settings);
}

/** The fix for a key that a policy excludes. */
export const EXCLUDED_KEY_FIX =
  "Use `TlsPolicy.mozillaIntermediate()`, in the config `mozilla-intermediate`, which allows ECDSA and RSA keys, or " +
  "use a certificate whose key the policy allows (certbot creates an RSA key with `--key-type rsa`).";

/** Suites of TLS 1.3 leave the kind of key open; those of 1.2 name it (OpenSSL's ciphers(1)). */
const takesEcdsa = ({ minVersion, ciphers }: Suites): boolean =>
  minVersion === "TLSv1.3" || selects(ciphers, /^[!-]a?ECDSA$/, WITHOUT_ECDSA);

const takesRsa = ({ minVersion, ciphers }: Suites): boolean =>
  minVersion === "TLSv1.3" || selects(ciphers, /^[!-]aRSA$/, WITHOUT_RSA);

/** Words that select only suites with other authentication: by name, by key exchange, or by a cipher without either. */
const WITHOUT_ECDSA = /RSA|DSS|PSK|NULL|^(?:EDH|k?DHE|ADH|AECDH|(?:AES|ARIA|CAMELLIA)\d+-)/;
const WITHOUT_RSA = /ECDSA|DSS|PSK|NULL|^(?:ADH|AECDH)/;

/** Whether a cipher string selects a suite: one that is not excluded, with every word (`A+B`) leaving it in. */
function selects(ciphers: string, excluded: RegExp, without: RegExp): boolean {
  const elements = ciphers.split(/[:, ]/).filter((element) => !/^(?:TLS_|[@+])/.test(element));
  if (elements.some((element) => excluded.test(element))) return false;
  return elements.some(
    (element) => !/^[!-]/.test(element) && element.split("+").every((word) => !without.test(word)),
  );
}
