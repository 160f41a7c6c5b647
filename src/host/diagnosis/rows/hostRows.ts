import { canonicalAddress, endpoint, type EngineRow, isLoopback, isWildcard } from "../../../model/index.js";
import { KNOWN_VERSIONS } from "../../../runtime/sockets/node/probe.js";
import type { Evidence, EvidenceFinding } from "../evidence.js";
import {
  explained,
  failure,
  isStalled,
  notAsked,
  notSeen,
  ok,
  type Question,
  unknown,
  type Verdict,
  warning,
} from "../verdict.js";

/**
 * Questions about the host as it was deployed: whether files, units, rules, addresses and logs are still as they were.
 * If they were changed by hand, that is the cause of other rows.
 */
export const HOST_QUESTIONS: readonly Question<EngineRow>[] = [
  { id: "activation", title: "The last activation is complete, and can be undone", ask: askStore },
  { id: "files", title: "Every delivered file is as delivered", ask: askFiles },
  { id: "units", title: "Units are loaded as delivered, and start at boot", ask: askUnits },
];

export const SERVING_QUESTIONS: readonly Question<EngineRow>[] = [
  { id: "running", title: "The proxy runs the installed release", ask: askRunning },
  {
    id: "tls",
    title: "The key is private, and the certificate covers the names and does not expire soon",
    ask: askTls,
  },
  { id: "logs", title: "The logs can be written", ask: askLogs },
  { id: "space", title: "The disks have free space", ask: askSpace },
  { id: "addresses", title: "The host has its addresses", ask: askAddresses },
  { id: "firewall", title: "The packet filter is loaded as delivered", ask: askFirewall },
];

/** Asked only where the deployment has its logs rotated. */
export const ROTATION_QUESTION: Question<EngineRow> = {
  id: "rotation",
  title: "The logs are rotated",
  ask: (evidence) => judged(evidence, evidence.rotation, "nothing rotates the logs, and they fill the disk"),
};

/** Asked only where the config has a health listener. */
export const HEALTH_QUESTION: Question<EngineRow> = {
  id: "health",
  title: "The health listener says that the proxy is ready",
  ask: askHealth,
};

/** Asked only if it does not. */
export const MEMORY_QUESTION: Question<EngineRow> = {
  id: "memory",
  title: "The proxy's memory suffices",
  ask: ({ memoryKills = 0, units }) =>
    failure(
      "the kernel killed workers because memory ran out, and their connections were cut; the master started new workers",
      [`${units?.proxy?.name ?? "portico.service"}: ${memoryKills} killed since it was started`],
      "Allow the proxy more memory (memoryMax of its ProxyService, MemoryMax= in its unit), or fewer clients (limits in its " +
        "config). A restart resets the count.",
    ),
};

/** Asked only on the host, where the Node is the deployment's. */
export const NODE_FIXES_QUESTION: Question<EngineRow> = {
  id: "node-fixes",
  title: "Node gets fixes",
  ask: askNodeFixes,
};

/** Asked only if Node lacks something. */
export const NODE_QUESTION: Question<EngineRow> = {
  id: "node",
  title: "Node has everything that the proxy uses",
  ask: ({ missingPieces = "" }) =>
    failure(
      "the proxy works, but needs more processor time and memory than necessary",
      [missingPieces],
      `Deploy a Node version that portico is tested with: ${KNOWN_VERSIONS.join(", ")}.`,
    ),
};

/** A warning and no failure: an old Node serves as well as before, and only a deployment can change it. */
function askNodeFixes({ node }: Evidence): Verdict {
  const { version, path, fixes } = node!;
  const seen = `Node ${version} (${path})`;
  if (fixes === undefined) return notAsked(`${seen} is newer than this release of Portico.`);
  const line = `${seen}: ${fixes.text}`;
  if (fixes.state === "fixed") return ok(line);
  return warning(
    fixes.state === "ended"
      ? "this version of Node.js gets no more security fixes"
      : "security fixes for this version of Node.js end soon",
    [line],
    "Deploy a newer Node: NodeRuntime.pinned(), with `version` and `integrity` to choose a version, or upgrade " +
      "Node.js on the host.",
  );
}

function askStore(evidence: Evidence): Verdict {
  return judged(evidence, evidence.drift?.store, "an activation was cut off, or its store is damaged");
}

function askFiles(evidence: Evidence): Verdict {
  return judged(evidence, evidence.drift?.files, "files are not as they were delivered");
}

function askUnits(evidence: Evidence): Verdict {
  return judged(evidence, evidence.drift?.units, "units are not as they were delivered");
}

function askRunning(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const { drift } = evidence;
  if (drift !== undefined && drift.running === undefined) {
    const silent = "The running proxy cannot be queried.";
    if (failed.has("proxy")) return explained("proxy", silent);
    return isStalled(evidence) && failed.has("units") ? explained("units", silent) : unknown(silent);
  }
  return judged(evidence, drift?.running, "the proxy runs another release or config than the installed one");
}

function askLogs(evidence: Evidence): Verdict {
  return judged(evidence, evidence.logs, "logs are not written to their files");
}

function askSpace(evidence: Evidence): Verdict {
  return judged(evidence, evidence.space, "a file system is full");
}

function askFirewall(evidence: Evidence): Verdict {
  const { drift } = evidence;
  if (drift !== undefined && drift.firewall === undefined)
    return ok(drift.firewallUnknown ?? "No packet filter was deployed.");
  if (drift?.firewallUnknown !== undefined && drift.firewall?.length === 0)
    return unknown(drift.firewallUnknown);
  return judged(evidence, drift?.firewall, "the packet filter is not loaded as it was delivered");
}

/** Warnings of the config's check that do not affect the proxy, but do affect its users. */
const TLS_CODES: readonly string[] = [
  "files.key-exposed",
  "files.certificate-expires-soon",
  "files.crl-expired",
  "files.crl-expires-soon",
  "files.certificate-not-yet-valid",
  "files.bad-certificate",
  "files.name-not-covered",
  "files.certificate-not-chosen",
];

function askTls(evidence: Evidence): Verdict {
  const { configWarnings } = evidence;
  if (configWarnings === undefined) return notSeen(evidence, "Key and certificate");
  const findings = configWarnings
    .filter(({ code }) => TLS_CODES.includes(code))
    .map(({ path, message, fix }) => ({ at: path, what: message, fix }));
  return judged(
    evidence,
    findings,
    "the private key is exposed, or the certificate lacks a name or is not valid for long",
  );
}

/**
 * An address that no interface has may be translated to one of the host's. Then the front end responds at it, or, if the
 * router lacks NAT loopback, packets leave from a private address, which shows a provider's NAT. Listeners only take
 * connections to addresses of the host itself.
 */
function askAddresses(evidence: Evidence): Verdict {
  const { ownAddresses, deployment, config, publicAddresses = [] } = evidence;
  if (ownAddresses === undefined) return notSeen(evidence, "Addresses of the host");
  const translated = publicAddresses.filter(
    ({ outcome, translatedTo }) => "response" in outcome || translatedTo !== undefined,
  );
  const isTranslated = (address: string): boolean => translated.some((one) => one.address === address);
  const listened = config.listeners
    .map(({ address }) => canonicalAddress(address))
    .filter((address) => !isWildcard(address) && !isLoopback(address));
  const given = (deployment?.network?.addresses ?? [])
    .map(canonicalAddress)
    .filter((address) => !isTranslated(address));
  const lacking = [...new Set([...given, ...listened])].filter((address) => !ownAddresses.has(address));
  const own = [...ownAddresses].filter((address) => !/^(?:127\.|::1$|fe80:)/.test(address)).join(", ");
  const fix = `Assign the address to the host, or deploy with an address that the host has: ${own || "none"} (ip address show).`;
  const routes = evidence.drift?.routes ?? [];
  if (lacking.length === 0 && routes.length > 0)
    return judged(
      evidence,
      routes,
      "the host has lost its default route: clients in other networks get no response",
    );
  if (lacking.length === 0)
    return ok(
      ...translated.flatMap(({ address, translatedTo }) =>
        translatedTo === undefined
          ? []
          : [`${address}: no interface has it; a router translates it to ${translatedTo}`],
      ),
    );
  return judged(
    evidence,
    lacking.map((at) => ({ at, what: `no interface has it; the host has: ${own || "none"}`, fix })),
    "the host lacks an address that it was deployed for",
  );
}

/** Rows that keep the health listener from responding, or say why it responds with something else. */
const NOT_READY = ["config", "proxy", "running"];

function askHealth({ config, health, units }: Evidence, failed: ReadonlySet<string>): Verdict {
  const { address: host, port } = config.healthListener!;
  const seen = "failure" in health! ? health.failure.message : String(health!.response.status);
  const at = `GET /readyz at ${endpoint({ host, port })}: ${seen}`;
  if (seen === "200") return ok(at);
  const cause = NOT_READY.find((id) => failed.has(id));
  if (cause !== undefined) return explained(cause, at);
  const log = `Read the log of the proxy: journalctl -u ${units?.proxy?.name ?? "portico.service"}`;
  if (seen === "503")
    return failure(
      "the proxy is stopping, no worker accepts connections, or a worker does not respond",
      [at],
      log,
    );
  if ("failure" in health!) return failure("no response from the address of the health listener", [at], log);
  const fix = `Stop the program that listens there (ss -ltnp 'sport = :${port}' shows it), or set another port of healthListener.`;
  return failure("another program responds at the address of the health listener", [at], fix);
}

/** Findings listed in one row; the next run shows the others. */
const LISTED_MAX = 12;

/** @param facts what that are shown beside the findings */
export function judged(
  evidence: Evidence,
  findings: readonly EvidenceFinding[] | undefined,
  cause: string,
  facts: readonly string[] = [],
): Verdict {
  if (findings === undefined) return notSeen(evidence, "This");
  if (findings.length === 0) return ok();
  const more = findings.length > LISTED_MAX ? [`… and ${findings.length - LISTED_MAX} more`] : [];
  const seen = findings.slice(0, LISTED_MAX).map(({ at, what }) => `${at}: ${what}`);
  const fixes = [...new Set(findings.slice(0, LISTED_MAX).map(({ fix }) => fix))];
  return failure(cause, [...seen, ...more, ...facts], fixes.join("; "));
}
