import { duplexPair } from "node:stream";
import {
  connect,
  createSecureContext,
  type SecureContext,
  type SecureContextOptions,
  TLSSocket,
} from "node:tls";
import type { CertificateContents } from "./tlsContents.js";
import {
  type Problem,
  problem,
  type TlsPolicyName,
  type TlsPolicySettings,
  tlsPolicySettings,
} from "../../model/serving.js";
import { EXCLUDED_KEY_FIX, takesKeyType } from "../../model/tlsPolicy.js";

/**
 * A server of ours checks nobody's certificate. Without this, Node reads all roots that it knows in every process, which
 * took each some 25 ms at its start.
 */
export const NO_ROOTS: string[] = [];

/**
 * A policy as this host's OpenSSL can have it: a named one without the groups that it need not know. One unknown group
 * makes OpenSSL 3.0 refuse the whole list. What a policy that is spelled out names stays, and is checked.
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

const knowsCurve = (curve: string): boolean => "context" in contextOf({ ecdhCurve: curve });

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

/** Ciphers and curves that this OpenSSL does not know. */
export function policyProblems(policy: TlsPolicySettings, path: string, named: boolean): Problem[] {
  const field = (name: string): string => (named ? path : `${path}.${name}`);
  const problems: Problem[] = [];
  const ciphers = contextOf({ ciphers: policy.ciphers, maxVersion: policy.maxVersion });
  if ("refused" in ciphers) {
    const message = `selects no cipher that this OpenSSL (${process.versions.openssl}) knows: ${ciphers.refused}`;
    problems.push(problem("tls.bad-policy", field("ciphers"), message, { received: policy.ciphers }));
  }
  policy.curves.forEach((curve, i) => {
    if (knowsCurve(curve)) return;
    const message = `is not a curve that this OpenSSL (${process.versions.openssl}) knows`;
    problems.push(problem("tls.bad-policy", field(`curves[${i}]`), message, { received: curve }));
  });
  return problems;
}

/**
 * One handshake in memory with a client that offers everything the policy allows. It finds what no single field shows:
 * an ECDSA key where the ciphers exclude ECDSA, a key too small for OpenSSL's security level, no cipher for a version.
 */
export async function handshakeProblem(
  policy: TlsPolicySettings,
  { contents, keyType }: { readonly contents: CertificateContents; readonly keyType: string | undefined },
  dhparam: string | undefined,
  path: string,
): Promise<Problem | undefined> {
  const server = contextOf(secureContextOptions(policy, contents, dhparam));
  if ("refused" in server) {
    const fix = "Use a key and certificate of at least 2048-bit RSA or a P-256 curve, signed with SHA-256.";
    return problem("files.bad-certificate", path, `OpenSSL refuses key and certificate: ${server.refused}`, {
      fix,
    });
  }
  const failure = await handshake(server.context, createSecureContext(secureContextOptions(policy)));
  if (failure === undefined) return undefined;
  const message = `no client can complete a handshake with this policy and a key of type ${keyType}: ${failure}`;
  const fix = excludes(policy, keyType)
    ? EXCLUDED_KEY_FIX
    : "Choose protocols, ciphers and curves that go with the key, or a key that goes with them.";
  // The policy is the listener's, and suits its other certificates.
  const at = path.endsWith("]") ? path : `${path}.policy`;
  return problem("tls.bad-policy", at, message, { fix });
}

const excludes = (policy: TlsPolicySettings, keyType: string | undefined): boolean =>
  (keyType === "ec" && !takesKeyType(policy, "ecdsa-p256")) ||
  (keyType === "rsa" && !takesKeyType(policy, "rsa-2048"));

function contextOf(
  options: SecureContextOptions,
): { readonly context: SecureContext } | { readonly refused: string } {
  try {
    return { context: createSecureContext({ ca: NO_ROOTS, ...options }) };
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

function handshake(server: SecureContext, client: SecureContext): Promise<string | undefined> {
  const [near, far] = duplexPair();
  return new Promise((resolve) => {
    const serving = new TLSSocket(near, { isServer: true, secureContext: server });
    // Whether to trust the certificate is up to clients; only the negotiation is checked here.
    const asking = connect({
      socket: far,
      secureContext: client,
      rejectUnauthorized: false,
      checkServerIdentity: () => undefined,
    });
    const timer = setTimeout(() => done("it takes too long"), HANDSHAKE_MS);
    const done = (failure: string | undefined): void => {
      clearTimeout(timer);
      serving.destroy();
      asking.destroy();
      resolve(failure);
    };
    asking.on("secureConnect", () => done(undefined));
    // The server knows the reason, the client only the alert.
    serving.on("error", (error) => done(reason(error)));
    asking.on("error", (error) => setImmediate(() => done(reason(error))));
  });
}

const HANDSHAKE_MS = 10_000;

/** OpenSSL's reason without its file names and numbers. */
function reason(error: Error & { reason?: string }): string {
  return error.reason ?? error.message;
}
