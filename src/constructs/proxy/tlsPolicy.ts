import { tlsPolicyFields } from "../../model/config/tls.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { kindsOf } from "../props/fieldTable.js";
import { TLS_POLICY } from "../props/instances.js";
import { flag, type PropTable, refuseNew, refuseOptions } from "../props/propTable.js";
import { type TlsPolicyName, type TlsPolicySettings, type Problem, problem } from "../../model/index.js";
import { getCurves } from "node:crypto";
import { getCiphers } from "node:tls";
import { nearest } from "../../model/text/nearest.js";
import { contextOf, knowsGroup } from "../../model/net/openssl.js";
import { isKnown } from "../props/tokens.js";

/** Ciphers and groups of a policy that no OpenSSL is likely to know. The host checks them by its own. */
function policyNameProblems({
  ciphers = "",
  curves = [],
}: {
  readonly ciphers?: string;
  readonly curves?: readonly string[];
}): Problem[] {
  const at = "TlsPolicy.custom";
  // What is excluded may be unknown, and OpenSSL joins words with `+`.
  const names = isKnown(ciphers) ? ciphers.split(/[:, ]/).filter((name) => /^\w/.test(name)) : [];
  const unknown = names.filter((name) => !knowsCipher(name));
  return [
    ...unknown.map((received) => unknownName(`${at}.ciphers`, UNKNOWN_CIPHER, received, getCiphers())),
    ...curves.flatMap((curve, i) =>
      !isKnown(curve) || knowsGroup(curve) || LATER.test(curve)
        ? []
        : [unknownName(`${at}.curves[${i}]`, UNKNOWN_GROUP, curve, GROUPS)],
    ),
  ];
}

const UNKNOWN_CIPHER = "contains a cipher that OpenSSL does not know";
const UNKNOWN_GROUP = "is not a key exchange group that OpenSSL knows";

function unknownName(path: string, message: string, received: string, known: readonly string[]): Problem {
  const near = nearest(received, known);
  const name = known === GROUPS ? near : near?.toUpperCase();
  const fix = name === undefined ? {} : { fix: `Did you mean \`${name}\`?` };
  const allowed = known === GROUPS ? GROUPS.join(", ") : "names that `openssl ciphers` lists";
  return problem("tls.bad-policy", path, message, {
    received,
    allowed,
    ...fix,
  });
}

const knowsCipher = (name: string): boolean =>
  name.startsWith("TLS_")
    ? getCiphers().includes(name.toLowerCase())
    : "context" in contextOf({ ciphers: name });

/** Groups that resist quantum computers, which the OpenSSL of this machine may be too old for. */
const LATER = /^(?:X25519|X448|SecP256r1|SecP384r1)?MLKEM(?:512|768|1024)$/;

const GROUPS = [
  "X25519MLKEM768",
  "X25519",
  "X448",
  "P-256",
  "P-384",
  "P-521",
  ...getCurves().filter((one) => /^(?:secp(?:384|521)r1|prime256v1)$/.test(one)),
];

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
