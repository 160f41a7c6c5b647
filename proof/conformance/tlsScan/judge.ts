import { spawnSync } from "node:child_process";
import { TLS_POLICIES, type TlsPolicyName, tlsPolicySettings } from "../../../src/model/index.js";
import type { Finding, Seen, TestsslReport } from "./scanners.js";

/** A finding that is meant, and why. */
type Reasons = Readonly<Record<string, string>>;

/** What the service's policy implies by its own words, and by the certificate that is deployed with it. */
const FILE_SYNC: Reasons = {
  cipherlist_AVERAGE:
    "EECDH and EDH in the policy's cipher string select AES-CBC ciphers too, after the AEAD ones",
  LUCKY13:
    "the same CBC ciphers; OpenSSL checks their padding in constant time, and encrypt-then-MAC is negotiated",
  cert_chain_of_trust:
    "the certificate is self-signed (service 3.1); a domain name and a CA's certificate cure it (service 3.3)",
  cert_revocation: "nobody but the host itself could revoke a self-signed certificate",
  cert_validityPeriod: "3650 days (service 3.1)",
  cert_extlifeSpan: "3650 days (service 3.1)",
  cert_expirationStatus: "3650 days (service 3.1)",
};

/** What a policy implies. */
const IMPLIED: Readonly<Record<TlsPolicyName, Reasons>> = {
  "file-sync": FILE_SYNC,
  "file-sync-tls13": FILE_SYNC,
  "mozilla-intermediate": {
    cipher_order:
      "Mozilla lets the client choose: all its ciphers are AEAD ciphers, and phones are slow at AES",
  },
  "mozilla-modern": {},
};

const TICKETS_COME_LATE: Reasons = {
  sessionresumption_ticket:
    "TLS 1.3 sends tickets behind the handshake; testssl.sh closes at once, and now and then has got none to come back with",
};

const NO_GOST: Reasons = {
  engine_problem:
    "testssl.sh cannot try GOST ciphers where its OpenSSL has no engine for them; no policy has any",
};

/** Checks that testssl.sh may give up, and why that says nothing about the server. */
const GIVEN_UP: Readonly<Record<TlsPolicyName, Reasons>> = {
  "file-sync": NO_GOST,
  "file-sync-tls13": { ...TICKETS_COME_LATE, ...NO_GOST },
  "mozilla-intermediate": { ...TICKETS_COME_LATE, ...NO_GOST },
  "mozilla-modern": { ...TICKETS_COME_LATE, ...NO_GOST },
};

/** A finding, and why it is meant if it is. */
export interface JudgedFinding extends Finding {
  readonly reason?: string;
}

export interface Judgement {
  readonly findings: readonly JudgedFinding[];
  /** What testssl.sh could not find out. */
  readonly notPerformed: readonly JudgedFinding[];
  readonly problems: readonly string[];
}

/** Compares what both scanners saw with what the policy says. */
export function judge(
  policy: TlsPolicyName,
  seen: Seen & { readonly weaknesses: readonly string[] },
  report: TestsslReport,
): Judgement {
  const findings = withReasons(report.findings, IMPLIED[policy]);
  const notPerformed = withReasons(report.notPerformed, GIVEN_UP[policy]);
  const problems: string[] = [];
  const same = (what: string, actual: unknown, expected: unknown): void => {
    const [a, b] = [JSON.stringify(actual), JSON.stringify(expected)];
    if (a !== b) problems.push(`${what} is ${a}, not ${b}`);
  };
  const settings = tlsPolicySettings(policy);
  const expected = expectedCiphers(policy);
  const order = (ciphers: readonly string[]): readonly string[] =>
    settings.preferServerCiphers ? ciphers : [...ciphers].sort();
  same("sslscan: protocols", seen.protocols, Object.keys(expected));
  for (const [protocol, ciphers] of Object.entries(expected)) {
    same(`sslscan: ciphers of ${protocol}`, order(seen.ciphers[protocol] ?? []), order(ciphers));
  }
  const groups = settings.curves.map(scannersName).sort();
  // Neither every OpenSSL has these, nor does every scanner know them; `tlsGroups.test.ts` tries them.
  const beyond = (settings.curvesIfKnown ?? []).map(scannersName);
  const certain = (names: readonly string[]): readonly string[] =>
    names
      .map(scannersName)
      .filter((name) => !beyond.includes(name))
      .sort();
  same("sslscan: groups", certain(seen.groups), groups);
  same("sslscan: weaknesses", seen.weaknesses, []);
  const said = (id: string): string | undefined => report.said.get(id);
  for (const [id, protocol] of Object.entries(TESTSSL_PROTOCOLS)) {
    same(`testssl.sh: ${protocol}`, said(id)?.startsWith("offered") ?? false, protocol in expected);
  }
  same("testssl.sh: ALPN", said("ALPN_HTTP2"), "h2");
  same("testssl.sh: groups", certain(said("PFS_ECDHE_curves")?.split(" ") ?? []), groups);
  const ours = [...new Set(Object.values(expected).flat())];
  const theirs = (said("PFS_ciphers") ?? "").split(" ").filter(Boolean);
  same("testssl.sh: ciphers", [...theirs].sort(), [...ours].sort());
  if (settings.preferServerCiphers) same("testssl.sh: whose order", said("cipher_order"), "server");
  if ("TLSv1.2" in expected) {
    const lifetime = `valid for ${settings.sessionTimeoutSeconds} seconds only (<daily)`;
    same("testssl.sh: session tickets", said("TLS_session_ticket"), lifetime);
    same("testssl.sh: DH group", said("DH_groups"), "ffdhe2048");
  }
  same("testssl.sh: key", said("cert_keySize"), "RSA 2048 bits");
  const unexplained = [...findings, ...notPerformed].filter(({ reason }) => reason === undefined);
  problems.push(...unexplained.map((f) => `testssl.sh: ${f.id}, ${f.severity}: ${f.finding}`));
  return { findings, notPerformed, problems };
}

const withReasons = (findings: readonly Finding[], reasons: Reasons): JudgedFinding[] =>
  findings.map((finding) => {
    const reason = reasons[finding.id];
    return { ...finding, reason };
  });

const TESTSSL_PROTOCOLS = {
  SSLv2: "SSLv2",
  SSLv3: "SSLv3",
  TLS1: "TLSv1.0",
  TLS1_1: "TLSv1.1",
  TLS1_2: "TLSv1.2",
  TLS1_3: "TLSv1.3",
} as const;

const SCANNERS_NAMES: Readonly<Record<string, string>> = { X25519: "x25519", prime256v1: "secp256r1" };
const scannersName = (group: string): string => SCANNERS_NAMES[group] ?? group;

/** What the policy comes to with the deployed RSA key, protocol by protocol, as OpenSSL reads its cipher string. */
function expectedCiphers(policy: TlsPolicyName): Record<string, readonly string[]> {
  const { minVersion, maxVersion, ciphers } = TLS_POLICIES[policy];
  const names = ciphers.split(":");
  const modern = names.filter((name) => name.startsWith("TLS_"));
  const older = names.filter((name) => !name.startsWith("TLS_")).join(":");
  return {
    ...(minVersion === "TLSv1.2"
      ? { "TLSv1.2": opensslCiphers(older).filter((name) => !name.includes("ECDSA") && isOffered(name)) }
      : {}),
    ...(maxVersion === "TLSv1.3" ? { "TLSv1.3": modern } : {}),
  };
}

/**
 * Whether the proxy's OpenSSL, which is Node's and not the command's, has the cipher: from 3.2 on, those whose tag has 8 bytes
 * are weaker than its default security level takes (its CHANGES.md).
 */
const isOffered = (name: string): boolean =>
  !name.endsWith("-CCM8") || isOlder(process.versions.openssl, "3.2");
const isOlder = (version: string, than: string): boolean =>
  version.localeCompare(than, "en", { numeric: true }) < 0;

function opensslCiphers(list: string): string[] {
  const { status, stdout, stderr } = spawnSync("openssl", ["ciphers", "-s", "-tls1_2", list], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`openssl ciphers: ${stderr}`);
  return stdout.trim().split(":");
}
