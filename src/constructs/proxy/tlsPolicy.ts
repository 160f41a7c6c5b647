import { tlsPolicyFields } from "../../model/config/tls.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { kindsOf } from "../props/fieldTable.js";
import { TLS_POLICY } from "../props/instances.js";
import { flag, type PropTable, refuseNew, refuseOptions } from "../props/propTable.js";
import { policyNameProblems } from "../props/opensslNames.js";
import type { TlsPolicyName, TlsPolicySettings } from "../../model/index.js";

/** Protocols, ciphers and groups of a TLS listener. Each static method creates one policy. */
export class TlsPolicy {
  /**
   * The front end's policy: TLS 1.2 only, secp384r1, a cipher string in the server's order, sessions of 10 minutes.
   * Clients without secp384r1 use the Diffie-Hellman parameters. With `tls13` the policy includes TLS 1.3.
   */
  static fileSync(options: FileSyncPolicyOptions = {}): TlsPolicy {
    refuseOptions("TlsPolicy.fileSync", options, FILE_SYNC_POLICY_OPTIONS);
    return new TlsPolicy(options.tls13 === true ? "file-sync-tls13" : "file-sync");
  }

  /**
   * Mozilla's intermediate policy 5.7: TLS 1.2 and 1.3, for all recent clients. TLS 1.3 prefers X25519MLKEM768, which
   * resists quantum computers, if the host's OpenSSL supports the group (3.5, which Node.js 24 has).
   */
  static mozillaIntermediate(): TlsPolicy {
    return new TlsPolicy("mozilla-intermediate");
  }

  /** Mozilla's modern policy 5.7: TLS 1.3 only, with X25519MLKEM768 as in the intermediate policy. */
  static mozillaModern(): TlsPolicy {
    return new TlsPolicy("mozilla-modern");
  }

  /**
   * A custom policy. Ciphers and groups that OpenSSL does not know are refused (`tls.bad-policy`): at synthesis, and
   * by the OpenSSL of the host.
   */
  static custom(settings: TlsPolicyOptions): TlsPolicy {
    refuseOptions("TlsPolicy.custom", settings, TLS_POLICY_OPTIONS, policyNameProblems);
    return new TlsPolicy({ preferServerCiphers: true, sessionTimeoutSeconds: 600, ...settings });
  }

  private constructor(
    /** @internal The policy's section of the config. */
    readonly settings: TlsPolicyName | TlsPolicySettings,
  ) {
    refuseNew("TlsPolicy", TLS_POLICY, settings === undefined);
  }
}

/** Options of the front end's policy beyond the service's contract. */
export interface FileSyncPolicyOptions {
  /**
   * Whether to offer TLS 1.3 too, with X25519MLKEM768 (if the host's OpenSSL supports the group), secp384r1 and
   * X25519. For clients of TLS 1.2 nothing changes, except that clients with X25519 and without secp384r1 use X25519
   * in place of the Diffie-Hellman parameters.
   * @default false
   */
  readonly tls13?: boolean;
}

const FILE_SYNC_POLICY_OPTIONS: PropTable<FileSyncPolicyOptions> = { tls13: flag };

/** All settings of a TLS policy. */
export interface TlsPolicyOptions extends InputOf<typeof tlsPolicyFields> {}

const TLS_POLICY_OPTIONS: PropTable<TlsPolicyOptions> = kindsOf(tlsPolicyFields);
