import { rmSync } from "node:fs";
import { publicFolder } from "../../../testkit/publicFolder.js";
import { TlsPolicy } from "../../../src/constructs/index.js";
import type { ProxyConfigInput, TlsPolicyName } from "../../../src/model/index.js";
import { startFrontEnd } from "../../../testkit/frontEnd.js";
import { laboratory } from "../../../testkit/laboratory.js";
import { freePorts } from "../../../testkit/ports.js";
import { type IssuedCertificate, issueCertificate } from "./issuedCertificate.js";
import { type Judgement, judge } from "./judge.js";
import { sslscan, testssl, versions } from "./scanners.js";

const POLICIES: Readonly<Record<TlsPolicyName, TlsPolicy>> = {
  "file-sync": TlsPolicy.fileSync(),
  "file-sync-tls13": TlsPolicy.fileSync({ tls13: true }),
  "mozilla-intermediate": TlsPolicy.mozillaIntermediate(),
  "mozilla-modern": TlsPolicy.mozillaModern(),
};

laboratory(
  `npm run tls-scan -- [OPTIONS]: what scanners see of the TLS listener

testssl.sh and sslscan look at a running front end, once for each named policy: protocols, ciphers and their order,
groups and tickets must be those of the policy. It fails on every finding but those that the policy implies, and on every
check that was not performed, unless it is known why; these are listed with the reason. The service's own are scanned with the
self-signed certificate that is deployed with it, Mozilla's policies with one that an authority has issued. Needs the
Debian packages testssl.sh and sslscan.`,
  { policy: [undefined, `one only: ${Object.keys(POLICIES).join(", ")}`] },
  async (given) => {
    const missing = Object.entries(versions()).filter(([, version]) => version === undefined);
    if (missing.length > 0) throw new Error("apt-get install testssl.sh sslscan");
    const names = (Object.keys(POLICIES) as TlsPolicyName[]).filter(
      (name) => name === (given.policy ?? name),
    );
    if (names.length === 0) throw new Error(`--policy ${given.policy}: there is none of that name`);
    // The scanners mostly wait.
    const policies = await Promise.all(names.map(scan));
    for (const result of policies) console.log(describe(result));
    return {
      wrong: policies.flatMap(({ policy, problems }) => problems.map((line) => `${policy}: ${line}`)),
    };
  },
);

interface PolicyResult extends Judgement {
  readonly policy: TlsPolicyName;
  readonly certificate: "self-signed" | "issued by an authority";
  readonly protocols: readonly string[];
  readonly ciphers: number;
  readonly groups: readonly string[];
}

async function scan(policy: TlsPolicyName): Promise<PolicyResult> {
  const [web, fileServer, webdav] = await freePorts(3);
  const folder = publicFolder("portico-tls-scan-");
  try {
    // Whoever chooses a policy of Mozilla's has a name and a certificate for it (service 3.3).
    const issued = policy.startsWith("mozilla-") ? issueCertificate(folder, "127.0.0.1") : undefined;
    const frontEnd = await startFrontEnd({
      upstreams: { web: web!, fileServer: fileServer!, webdav: webdav! },
      policy: POLICIES[policy],
      change: issued === undefined ? undefined : (config) => withCertificate(config, issued),
    });
    try {
      const seen = await sslscan(frontEnd.tlsPort);
      const report = await testssl(frontEnd.tlsPort, issued?.authority);
      const { protocols, groups } = seen;
      const ciphers = Object.values(seen.ciphers).flat().length;
      const certificate = issued === undefined ? "self-signed" : "issued by an authority";
      return { policy, certificate, protocols, ciphers, groups, ...judge(policy, seen, report) };
    } finally {
      await frontEnd.stop();
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The config with another certificate and key than the self-signed ones. */
function withCertificate(
  config: ProxyConfigInput,
  { certificate, key }: IssuedCertificate,
): ProxyConfigInput {
  const listeners = config.listeners.map((listener) =>
    listener.tls === undefined ? listener : { ...listener, tls: { ...listener.tls, certificate, key } },
  );
  return { ...config, listeners };
}

function describe(result: PolicyResult): string {
  const { policy, protocols, ciphers, groups, findings, notPerformed } = result;
  return [
    `${policy}: ${protocols.join(", ")}; ${ciphers} ciphers; ${groups.join(", ")}`,
    ...findings.flatMap(({ id, severity, reason }) =>
      reason === undefined ? [] : [`     meant: ${id} (${severity}): ${reason}`],
    ),
    ...notPerformed.map(
      ({ id, finding, reason = "not known why" }) => `     not found out: ${id}: ${finding}: ${reason}`,
    ),
  ].join("\n");
}
