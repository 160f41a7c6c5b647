import { X509Certificate } from "node:crypto";
import { duplexPair } from "node:stream";
import { connect, type SecureContext, TLSSocket } from "node:tls";
import { type Problem, problem, type ProxyConfig, type TlsPolicySettings } from "../../model/serving.js";
import { EXCLUDED_KEY_FIX, takesKeyType } from "../../model/net/tlsPolicy.js";
import type { CertificateContents, TlsContents } from "./tlsContents.js";
import { contextOf, knowsGroup, reason } from "../../model/net/openssl.js";
import { hostPolicy, secureContextOptions } from "./tlsContexts.js";

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
    if (knowsGroup(curve)) return;
    const message = `is not a curve that this OpenSSL (${process.versions.openssl}) knows`;
    problems.push(problem("tls.bad-policy", field(`curves[${i}]`), message, { received: curve }));
  });
  return problems;
}

/**
 * Does a handshake in memory with a client that offers everything the policy allows. This finds faults that no single field
 * shows: an ECDSA key where the ciphers exclude ECDSA, a key too small for OpenSSL's security level, no cipher for a
 * version.
 */
export async function handshakeProblem(
  policy: TlsPolicySettings,
  { contents, keyType }: { readonly contents: CertificateContents; readonly keyType: string | undefined },
  dhparam: string | undefined,
  path: string,
): Promise<Problem | undefined> {
  const fix = "Use a key and certificate of at least 2048-bit RSA or a P-256 curve, signed with SHA-256.";
  const weak = weakSignature(contents.cert);
  if (weak !== undefined) {
    const message = `is signed with ${weak}, which clients refuse`;
    return problem("files.bad-certificate", path, message, { fix });
  }
  const server = contextOf(secureContextOptions(policy, contents, dhparam));
  if ("refused" in server) {
    return problem("files.bad-certificate", path, `OpenSSL refuses key and certificate: ${server.refused}`, {
      fix,
    });
  }
  const client = contextOf(secureContextOptions(policy));
  const failure = "refused" in client ? client.refused : await handshake(server.context, client.context);
  if (failure === undefined) return undefined;
  const message = `no client can complete a handshake with this policy and a key of type ${keyType}: ${failure}`;
  const choose = excludes(policy, keyType)
    ? EXCLUDED_KEY_FIX
    : "Use protocols, ciphers and curves that fit the key, or a key that fits them.";
  // The policy is the listener's, and suits its other certificates.
  const at = path.endsWith("]") ? path : `${path}.policy`;
  return problem("tls.bad-policy", at, message, { fix: choose });
}

const excludes = (policy: TlsPolicySettings, keyType: string | undefined): boolean =>
  (keyType === "ec" && !takesKeyType(policy, "ecdsa-p256")) ||
  (keyType === "rsa" && !takesKeyType(policy, "rsa-2048"));

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

/**
 * Why a listener could not use a certificate in place of the one with its id; undefined if each of them can. A worker
 * that gets one that OpenSSL refuses cannot serve.
 *
 * @param at path of the field that names it
 */
export async function unfitCertificate(
  contents: CertificateContents,
  at: string,
  { config, tls }: CheckedConfig,
): Promise<Problem | undefined> {
  const keyType = new X509Certificate(contents.cert).publicKey.asymmetricKeyType;
  for (const listener of config.listeners) {
    const current = tls[listener.name];
    if (current?.certificates.some(({ id }) => id === contents.id) !== true) continue;
    const policy = hostPolicy(listener.tls!.policy);
    const found = await handshakeProblem(policy, { contents, keyType }, current.dhparam, at);
    if (found !== undefined) return found;
  }
  return undefined;
}

interface CheckedConfig {
  readonly config: ProxyConfig;
  readonly tls: Readonly<Record<string, TlsContents>>;
}

/**
 * Hash that a certificate is signed with, if clients refuse it (RFC 8446, 4.4.2.4). OpenSSL 3.0 refuses to serve such a
 * certificate, 3.5 does not. No client checks the signature of a self-signed one.
 *
 * @param pem the certificate, which OpenSSL has read
 */
function weakSignature(pem: string): "MD5" | "SHA-1" | undefined {
  const certificate = new X509Certificate(pem);
  if (certificate.subject === certificate.issuer) return undefined;
  return WEAK[signatureAlgorithm(certificate.raw)];
}

/** Object identifiers (RFC 3279, 2.2), as DER has them. */
const WEAK: Readonly<Record<string, "MD5" | "SHA-1">> = {
  "2a864886f70d010104": "MD5",
  "2a864886f70d010105": "SHA-1",
  "2a8648ce380403": "SHA-1",
  "2a8648ce3d0401": "SHA-1",
};

/** The identifier in a `Certificate`: the first member of its second member (RFC 5280, 4.1). */
function signatureAlgorithm(der: Buffer): string {
  const signed = content(der, content(der, 0).from);
  const { from, to } = content(der, content(der, signed.to).from);
  return der.toString("hex", from, to);
}

/** The bounds of the content of the value at an offset (X.690, 8.1.3). */
function content(der: Buffer, at: number): { readonly from: number; readonly to: number } {
  const first = der[at + 1]!;
  const bytes = first < 0x80 ? 0 : first & 0x7f;
  const from = at + 2 + bytes;
  return { from, to: from + (bytes === 0 ? first : der.readUIntBE(at + 2, bytes)) };
}
