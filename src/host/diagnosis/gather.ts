import { existsSync, readFileSync } from "node:fs";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import { dirname, join } from "node:path";
import {
  canonicalAddress,
  clientPort,
  type Deployment,
  endpoint,
  type HealthListenerConfig,
  isLoopback,
  reachableAt,
  parseConfigText,
  parseDeploymentText,
  type ProxyConfig,
  type Result,
  siteNotIn,
  storedItems,
} from "../../model/index.js";
import { nodeFixes } from "../../model/host/nodeReleases.js";
import { printableValue } from "../../model/text/printable.js";
import { DEFAULT_HOST_PATHS } from "../../render/hostPaths.js";
import { readText } from "../../runtime/load/files.js";
import type { PathSource } from "../../runtime/files/trustedFile.js";
import type { ListedCertificate } from "../../runtime/supervisor/control/certificateList.js";
import { memoryKills } from "../../runtime/supervisor/report/cgroup.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { ListedPauses } from "../../runtime/supervisor/control/listedPauses.js";
import { seePauses, withoutPaused } from "./pauses.js";
import { loadConfig, logPaths } from "../../runtime/load/loadConfig.js";
import { listeningSockets } from "../../runtime/sockets/node/listeningSockets.js";
import { piecesText } from "../../runtime/sockets/node/pieces.js";
import { missingPieces } from "../../runtime/sockets/node/probe.js";
import { planSettings, readOverrides } from "../applicationSettings/index.js";
import type {
  Drift,
  Evidence,
  NodeSeen,
  PublicAddress,
  SeenResponse,
  SettingsSeen,
  EvidenceFinding,
  ProxyProcesses,
} from "./evidence.js";
import { expectedResponses, mainName, namedHost, type ProbeRequest } from "./expected/expectedResponses.js";
import {
  isElsewhere,
  isOpen,
  ownAddresses,
  translatedTo,
  unitsOf,
  type Units,
  type UnitState,
} from "./system/hostFacts.js";
import { askRows, judge } from "./expected/liveCheck.js";
import { logFindings, rotationFindings, scarceSpace } from "./logState.js";
import { imageFor } from "./expected/imageFile.js";
import { checkTrees, servedTrees } from "./treePermissions.js";
import { installedUnitProblems } from "./system/unitPaths.js";
import { certificatesWithTrustedFixes } from "./system/trustedFixes.js";
import { probe, type ProbeOptions } from "./expected/probe.js";
import { unfollowedLinks } from "./unfollowedLinks.js";
import { seeClientCertificates } from "./clientCertificates.js";
import { seeUpstreamServers } from "./upstreamServers.js";
import { isWanted, shownValue } from "./storedSettings.js";
import { foreignRules } from "./system/foreignRules.js";
import { askFromOutside, clientAddresses } from "./fromOutside.js";
import { legacyRules } from "./system/legacyRules.js";
import { listenOwner } from "../../runtime/listen/listenOwner.js";

export interface DiagnosisOptions extends ProbeOptions {
  /** The deployment document; without it, its content is unknown. */
  readonly deploymentFile: string;
  /** The proxy config, if it is not the one that the deployment names. */
  readonly configFile?: string;
  readonly place: Evidence["place"];
  /** Folder that stands for the host's `/`; only with the place `folder`. */
  readonly root?: string;
  /** Name or address that clients use; by default the first of the expected responses, or of the config. */
  readonly host?: string;
  /** The address to connect to; by default loopback on the host, and `host` from elsewhere. */
  readonly connect?: string;
  /** Addresses by which other networks reach the host, besides those of the deployment's DNS records. */
  readonly publicAddresses: readonly string[];
  readonly imagePath?: string;
  /** Path of the running proxy's control socket; without it the proxy is not asked for its certificates. */
  readonly control?: string;
  /** Password of the application's database, to read the settings stored in it (service 2.2). */
  readonly databasePassword?: string;
  readonly databaseOptionFile?: string;
  /** Node and the runtime, to ask the host from a network namespace; without them it is not asked from outside. */
  readonly programs?: readonly string[];
  /** The only site that is asked about; an unknown one is refused. */
  readonly site?: string | undefined;
  /** The activated deployment, even if its document has changed since, and how the host differs from it. */
  readonly activated?: { readonly drift: Drift; readonly deployment?: Deployment };
}

/** Gathers everything that can be seen from here. Changes nothing; fails only if no config can be read. */
export async function gather(options: DiagnosisOptions): Promise<Result<Evidence>> {
  const { activated } = options;
  const read = await readDeployment(options.deploymentFile);
  const last = activated?.deployment;
  const usable = read.ok && (read.value !== undefined || last === undefined);
  const deployment = usable || last === undefined ? read : { ok: true as const, value: last };
  if (!deployment.ok) return deployment;
  const onHost = options.place === "host";
  const onHostFile = deployment.value?.config ?? DEFAULT_HOST_PATHS.config;
  const configFile = options.configFile ?? join(options.root ?? "/", onHostFile);
  const by = onHost && options.configFile === undefined ? "named" : "operator";
  const document = await readConfig(configFile, by);
  if (!document.ok) return document;
  const config = document.value;
  const unknown = siteNotIn(config, options.site);
  if (unknown !== undefined) return { ok: false, problems: [unknown] };
  if (options.place === "folder") return folderEvidence(configFile, config, deployment.value, options);
  const target = targetOf(options, deployment.value, config);
  const pauses = onHost ? await seePauses(options.control, CONTROL_MS) : undefined;
  const [responses, publicAddresses, host] = await Promise.all([
    seenResponses(config, deployment.value, target, options, pauses),
    askPublicAddresses(config, deployment.value, target.host, options),
    onHost
      ? hostEvidence(configFile, config, deployment.value, options)
      : elsewhereEvidence(config, deployment.value, target.connect),
  ]);
  const outside =
    onHost && pauses === undefined && target.connect === undefined
      ? await seeOutside(configFile, config, deployment.value, options, { ...host, responses })
      : {};
  return {
    ok: true,
    value: {
      ...outside,
      place: options.place,
      config,
      deployment: deployment.value,
      responses,
      publicAddresses,
      pauses,
      ...host,
    },
  };
}

async function readDeployment(file: string): Promise<Result<Deployment | undefined>> {
  if (!existsSync(file)) return { ok: true, value: undefined };
  const read = await readText(file, file, { by: "operator" });
  return "problem" in read
    ? { ok: false, problems: [read.problem] }
    : inFile(file, parseDeploymentText(read.text));
}

async function readConfig(file: string, by: PathSource): Promise<Result<ProxyConfig>> {
  const read = await readText(file, file, { by });
  return "problem" in read
    ? { ok: false, problems: [read.problem] }
    : inFile(file, parseConfigText(read.text));
}

/** Two documents are read: a problem names the one it is about. */
function inFile<T>(file: string, read: Result<T>): Result<T> {
  if (read.ok) return read;
  const at = (path: string): string => (path === "" ? file : `${file}: ${path}`);
  return { ok: false, problems: read.problems.map((p) => ({ ...p, path: at(p.path) })) };
}

interface Target {
  /** Name to request; undefined for the first name in the config. */
  readonly host?: string;
  /** The address to connect to; undefined for loopback, or the listener's own address. */
  readonly connect?: string;
}

/** Clients use the name of the expected responses, whatever the proxy's config has. */
function targetOf(
  options: DiagnosisOptions,
  deployment: Deployment | undefined,
  config: ProxyConfig,
): Target {
  const host = options.host ?? namedHost(deployment?.expect ?? []);
  const elsewhere = options.place === "elsewhere" ? (host ?? mainName(config)) : undefined;
  const connect = options.connect ?? elsewhere;
  return { host, connect };
}

async function seenResponses(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  target: Target,
  options: DiagnosisOptions,
  pauses: ListedPauses | undefined,
): Promise<SeenResponse[]> {
  const given = options.imagePath ?? deployment?.probe.imagePath;
  const expect = deployment?.expect;
  const search = given === undefined && options.place === "host";
  const image = search ? await imageFor(config, expect, undefined) : {};
  const rows = expectedResponses(config, {
    ...target,
    asClients: options.place === "elsewhere" || (target.connect !== undefined && isElsewhere(target.connect)),
    expect,
    ...(given === undefined ? image : { imagePath: given }),
  });
  const asked = await askRows(withoutPaused(rows, config, pauses), options);
  return asked.map(({ row, outcome }) => ({ row, outcome, checked: judge(row, outcome) }));
}

/** Requests the default page at every public address. */
async function askPublicAddresses(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  host: string | undefined,
  options: DiagnosisOptions,
): Promise<PublicAddress[]> {
  const records = deployment?.network?.dnsRecords.map(({ value }) => value) ?? [];
  const named = host !== undefined && isIP(host) === 0 ? await resolved(host) : [];
  const own = ownAddresses();
  // An address that is translated to one of the host's responds too.
  const translated = (deployment?.network?.addresses ?? [])
    .map(canonicalAddress)
    .filter((address) => !own.has(address));
  const known = [...options.publicAddresses, ...records, ...translated].map(canonicalAddress);
  const all = new Set([...known, ...named.map(canonicalAddress)]);
  const addresses = [...all].filter((address) => !isLoopback(address));
  return Promise.all(
    addresses.map(async (address) => {
      const rows = expectedResponses(config, {
        connect: address,
        asClients: !own.has(address),
        expect: deployment?.expect,
        host,
      });
      const request = rows.find((row) => row.notProbed === undefined)?.request;
      const outcome =
        request === undefined
          ? { failure: { code: "", message: "nothing is served there" } }
          : await probe(request, options);
      const onHost = options.place === "host" && translated.includes(address);
      const inner = onHost ? await translatedTo(address) : undefined;
      return {
        address,
        own: own.has(address),
        ...(known.includes(address) || own.has(address) ? {} : { name: host! }),
        translatedTo: inner,
        outcome,
      };
    }),
  );
}

async function resolved(name: string): Promise<string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    // A name without a record has no public address to try.
    return [];
  }
}

async function hostEvidence(
  configFile: string,
  config: ProxyConfig,
  deployment: Deployment | undefined,
  options: DiagnosisOptions,
): Promise<Partial<Evidence>> {
  const { healthListener } = config;
  const { control } = options;
  const trees = servedTrees(config, deployment?.trees);
  const [loaded, units, settings, readable, links, certificates, health, upstreams, clients] =
    await Promise.all([
      loadConfig({ file: configFile, parsed: config, logToStderr: true }),
      deployment === undefined ? undefined : unitsOf(deployment.services),
      deployment?.settings === undefined ? undefined : seenSettings(deployment, deployment.settings, options),
      trees.length === 0 ? undefined : checkTrees(trees),
      unfollowedLinks(config),
      config.certificateAuthorities.length === 0 ? undefined : seenCertificates(control, config),
      healthListener === undefined ? undefined : probe(readyRequest(healthListener), options),
      control === undefined ? undefined : seeUpstreamServers(config, control, CONTROL_MS),
      control === undefined ? undefined : seeClientCertificates(config, control, CONTROL_MS),
    ]);
  const unit = units?.proxy;
  const processes = await seeProcesses(config, units, control, CONTROL_MS);
  const rotation = deployment === undefined ? undefined : await rotationFindings(deployment);
  const unitProblems = await installedUnitProblems(deployment?.files ?? []);
  await missingPieces();
  const lacking = piecesText();
  const kills = unit === undefined || unit.mainPid === 0 ? 0 : memoryKills(`/proc/${unit.mainPid}`);
  return {
    ownAddresses: ownAddresses(),
    logs: logFindings(config, unit?.mainPid ?? 0, unit?.name ?? "portico.service"),
    space: await scarceSpace([...FILLED, ...logPaths(config).map((path) => dirname(path))]),
    rotation,
    drift: options.activated?.drift,
    processes,
    configProblems: [...(loaded.ok ? [] : loaded.problems), ...unitProblems],
    configWarnings: loaded.ok ? loaded.value.warnings : [],
    sockets: listeningSockets(),
    node: nodeSeen(),
    missingPieces: lacking,
    ...(kills === 0 ? {} : { memoryKills: kills }),
    certificates,
    health,
    ...(upstreams === undefined || "why" in upstreams ? {} : { upstreamServers: upstreams }),
    ...(clients === undefined ? {} : { clientCertificates: clients }),
    units,
    settings,
    trees: readable,
    links,
  };
}

function nodeSeen(): NodeSeen {
  const { node: version } = process.versions;
  const fixes = nodeFixes(version, Date.now());
  return { version, path: process.execPath, fixes };
}

/** The request for readiness; for a wildcard address, at loopback. */
function readyRequest({ address: at, port }: HealthListenerConfig): ProbeRequest {
  const address = reachableAt(at);
  return { scheme: "http", address, port, host: endpoint({ host: address, port }), path: "/readyz" };
}

async function seenCertificates(
  control: string | undefined,
  config: ProxyConfig,
): Promise<readonly ListedCertificate[] | undefined> {
  if (control === undefined) return undefined;
  const outcome = await askMaster(control, { command: "certificates" }, CONTROL_MS);
  const found = outcome.ok ? outcome.value.certificates : undefined;
  return found && certificatesWithTrustedFixes(found, config);
}

const CONTROL_MS = 5_000;

/** The directories that a deployment and its proxy write to. */
const FILLED = ["/", "/etc", "/usr", "/var", "/var/lib/portico", "/run", "/tmp"];

async function seenSettings(
  { database }: Deployment,
  settings: NonNullable<Deployment["settings"]>,
  { databasePassword, databaseOptionFile, timeoutMs, root }: DiagnosisOptions,
): Promise<SettingsSeen> {
  const { files, problems } = await planSettings(settings, root);
  const inFiles = files.flatMap(({ source, path, findings }) =>
    findings
      .map((finding, i) => ({ ...finding, code: source.items[i]!.code }))
      .filter(({ state }) => state === "different" || state === "missing")
      .map(({ item, wanted, found, line, code }) => ({
        item,
        wanted,
        found: found === undefined ? undefined : printableValue(found),
        where: line === undefined ? path : `${path}:${line}`,
        code,
      })),
  );
  if (database === undefined || root !== undefined) {
    const why = root === undefined ? NO_DATABASE : NOT_IN_FILES;
    return { deviations: inFiles, problems, database: why };
  }
  const access = {
    ...database,
    timeoutMs,
    password: databasePassword,
    optionFile: databaseOptionFile,
  };
  const items = storedItems(settings);
  const seen = await readOverrides(access, [...items.keys()]);
  if (!seen.looked)
    return { deviations: inFiles, problems, database: `The database was not queried: ${seen.why}.` };
  const stored = seen.overrides
    .filter(({ item, stored: value }) => !isWanted(value, items.get(item)!.wanted))
    .map(({ item, stored: value }) => ({
      ...items.get(item)!,
      item,
      found: shownValue(value),
      where: "stored in the application's database, which has priority",
    }));
  return { deviations: [...inFiles, ...stored], problems, database: "The database stores no other values." };
}

const NOT_IN_FILES = "The database was not queried: only files are checked.";
const NO_DATABASE = "The database was not queried: the deployment does not name one.";

/** Evidence from files alone, where no proxy runs with them. */
async function folderEvidence(
  file: string,
  config: ProxyConfig,
  deployment: Deployment | undefined,
  options: DiagnosisOptions,
): Promise<Result<Evidence>> {
  const { root = "/", place } = options;
  const loaded = await loadConfig({ file, parsed: config, root, logToStderr: true });
  const { settings } = deployment ?? {};
  return {
    ok: true,
    value: {
      ...{ place, config, responses: [], publicAddresses: [] },
      deployment,
      configProblems: loaded.ok ? [] : loaded.problems,
      configWarnings: loaded.ok ? loaded.value.warnings : [],
      ...(settings === undefined ? {} : { settings: await seenSettings(deployment!, settings, options) }),
    },
  };
}

/** Which ports are open for another machine. */
async function elsewhereEvidence(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  connect: string | undefined,
): Promise<Partial<Evidence>> {
  if (connect === undefined) return {};
  if (isIP(connect) === 0 && (await resolved(connect)).length === 0) return { unresolved: connect };
  const hidden = deployment?.network?.loopbackPorts ?? [];
  const ports = [...new Set([...config.listeners.map(clientPort), ...hidden])];
  const open = await Promise.all(ports.map((port) => isOpen(connect, port, PORT_MS)));
  return { openPorts: new Map(ports.map((port, i) => [port, open[i]!])) };
}

const PORT_MS = 3_000;

/** The options of a diagnosis that this needs. */
interface AskingFrom {
  readonly programs?: readonly string[];
  readonly deploymentFile: string;
  readonly host?: string;
  readonly timeoutMs: number;
}

/** Asks from a network beside the host, where this program may make one; and looks for rules in the way there. */
async function seeOutside(
  configFile: string,
  config: ProxyConfig,
  deployment: Deployment | undefined,
  { programs, deploymentFile, host, timeoutMs }: AskingFrom,
  { units, responses = [] }: Partial<Evidence>,
): Promise<Pick<Evidence, "outside" | "foreignRules" | "rulesUnseen">> {
  if (programs === undefined || process.geteuid!() !== 0) return {};
  const ports = [...new Set(config.listeners.map(({ port }) => port))];
  const vrrp = deployment?.services.keepalived !== undefined;
  const [rules, legacy] = [await foreignRules(ports, vrrp), await legacyRules(ports, vrrp)];
  const all = [...(rules ?? []), ...legacy.rules];
  const seen = {
    ...(rules === undefined && all.length === 0 ? {} : { foreignRules: all }),
    rulesUnseen: legacy.unseen,
  };
  // Why nothing responds then has other rows.
  const isSilent = responses.every(({ outcome }) => outcome === undefined || "failure" in outcome);
  if (isSilent || (units !== undefined && units.proxy?.state !== "active")) return seen;
  const outside = await askFromOutside(clientAddresses(ownAddresses(), deployment), {
    programs,
    configFile,
    timeoutMs: Math.min(timeoutMs, OUTSIDE_MS),
    ...(existsSync(deploymentFile) ? { deploymentFile } : {}),
    host,
  });
  return { outside, ...seen };
}

/** The network is in this machine, so nothing takes long on it. */
const OUTSIDE_MS = 4_000;

/** Asks the main process, which asks its workers. */
async function seeProcesses(
  config: ProxyConfig,
  units: Units | undefined,
  control: string | undefined,
  timeoutMs: number,
): Promise<ProxyProcesses> {
  const { proxy, proxySocket } = units ?? {};
  const strangers =
    proxy === undefined ? [] : strangersOf(config, [proxy, ...(proxySocket ? [proxySocket] : [])]);
  if (control === undefined || proxy?.state !== "active") return { silentWorkers: [], strangers };
  const outcome = await askMaster(control, { command: "holdings" }, timeoutMs);
  if (outcome.ok) {
    const silent = (outcome.value.workers ?? []).filter(({ holdings }) => holdings === undefined);
    return { silentWorkers: silent.map(({ pid }) => pid), strangers };
  }
  const [{ message }] = outcome.problems as [(typeof outcome.problems)[number]];
  return { silentMaster: message, silentWorkers: [], strangers };
}

/** systemd has the sockets of a unit that it starts on demand. */
const SYSTEMD = "1";

function strangersOf({ listeners }: ProxyConfig, units: readonly UnitState[]): EvidenceFinding[] {
  const names = units.map(({ name }) => name);
  const findings = listeners.flatMap(({ address, port }): EvidenceFinding[] => {
    const owner = listenOwner(address, port);
    const unit = owner === undefined || owner.pid === SYSTEMD ? undefined : unitOfProcess(owner.pid);
    if (owner === undefined || unit === undefined || names.includes(unit)) return [];
    const end = unit === "" ? `kill ${owner.pid}` : `systemctl disable --now ${unit}`;
    const fix = `${end} && systemctl enable --now ${names.toReversed().join(" ")}`;
    return [
      { at: endpoint({ host: address, port }), what: `${owner.text} listens there, not the proxy`, fix },
    ];
  });
  return findings;
}

/** The unit of the system that a process belongs to; empty if it belongs to none, undefined if it has ended. */
function unitOfProcess(pid: string): string | undefined {
  try {
    const [, unit = ""] = /^0::\/(?:[^/\n]+\.slice\/)*([^/\n]+\.service)/m.exec(
      readFileSync(`/proc/${pid}/cgroup`, "utf8"),
    ) ?? ["", ""];
    return unit.startsWith("user@") ? "" : unit;
  } catch {
    return undefined;
  }
}
