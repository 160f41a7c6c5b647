import { tlsPolicyFields } from "../model/config/tls.js";
import type { InputOf } from "../model/inferred.js";
import { kindsOf } from "./props/fieldTable.js";
import { flag, type PropTable, refuseOptions } from "./props/propTable.js";
import { policyWordProblems } from "./tlsPolicyWords.js";
import type { TlsPolicyName, TlsPolicySettings } from "../model/index.js";

/** What a TLS listener negotiates. A closed choice: take one of the static methods. */
export class TlsPolicy {
  /**
   * The front end's policy: TLS 1.2 only, secp384r1, a cipher string in the server's order, sessions of 10 minutes.
   * Clients without secp384r1 fall back to the Diffie-Hellman parameters. With `tls13` it also has TLS 1.3.
   */
  static fileSync(options: FileSyncPolicyOptions = {}): TlsPolicy {
    refuseOptions("TlsPolicy.fileSync", options, FILE_SYNC_POLICY_OPTIONS);
    return new TlsPolicy(options.tls13 === true ? "file-sync-tls13" : "file-sync");
  }

  /**
   * Mozilla's intermediate policy 5.7: TLS 1.2 and 1.3, for every client of recent years. TLS 1.3 begins with
   * X25519MLKEM768, which resists quantum computers, where the host's OpenSSL knows it (3.5, which Node.js 24 has).
   */
  static mozillaIntermediate(): TlsPolicy {
    return new TlsPolicy("mozilla-intermediate");
  }

  /** Mozilla's modern policy 5.7: TLS 1.3 only, with X25519MLKEM768 as in the intermediate one. */
  static mozillaModern(): TlsPolicy {
    return new TlsPolicy("mozilla-modern");
  }

  /**
   * A custom policy. Names of ciphers and groups that OpenSSL does not know are refused (`tls.bad-policy`): here, and on
   * the host by its own OpenSSL.
   */
  static custom(settings: TlsPolicyOptions): TlsPolicy {
    refuseOptions("TlsPolicy.custom", settings, TLS_POLICY_OPTIONS, policyWordProblems);
    return new TlsPolicy({ preferServerCiphers: true, sessionTimeoutSeconds: 600, ...settings });
  }

  private constructor(
    /** @internal Its section of the config. */
    readonly settings: TlsPolicyName | TlsPolicySettings,
  ) {}
}

/** What the front end's policy may have beyond the service's contract. */
export interface FileSyncPolicyOptions {
  /**
   * Whether TLS 1.3 is offered too, with X25519MLKEM768 (where the host's OpenSSL knows it), secp384r1 and X25519.
   * Clients of TLS 1.2 get what they get without it; those that know X25519 and not secp384r1 get X25519 in place of the
   * Diffie-Hellman parameters.
   * @default false
   */
  readonly tls13?: boolean;
}

const FILE_SYNC_POLICY_OPTIONS: PropTable<FileSyncPolicyOptions> = { tls13: flag };

/** A TLS policy spelled out. */
export interface TlsPolicyOptions extends InputOf<typeof tlsPolicyFields> {}

const TLS_POLICY_OPTIONS: PropTable<TlsPolicyOptions> = kindsOf(tlsPolicyFields);
