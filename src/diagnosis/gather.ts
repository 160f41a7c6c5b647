import { existsSync } from "node:fs";
import { lookup } from "node:dns/promises";
import { isIP } from "node:net";
import {
  type Deployment,
  parseConfigText,
  parseDeploymentText,
  type ProxyConfig,
  type Result,
} from "../model/index.js";
import { DEFAULT_HOST_PATHS } from "../render/hostPaths.js";
import { readText } from "../runtime/fileAccess.js";
import { loadConfig } from "../runtime/load.js";
import { planSettings, readOverrides } from "../settings/index.js";
import type { Evidence, PublicAddress, SeenResponse, SettingsSeen } from "./evidence.js";
import { expectedResponses } from "./expectedResponses.js";
import { isOpen, listeningSockets, ownAddresses, unitsOf } from "./hostFacts.js";
import { judge } from "./liveCheck.js";
import { mediaFileOf } from "./mediaFile.js";
import { checkMediaPermissions } from "./mediaPermissions.js";
import { probe, type ProbeOptions } from "./probe.js";

export interface DiagnosisOptions extends ProbeOptions {
  /** The deployment document; without one, what it would tell is unknown. */
  readonly deploymentFile: string;
  /** The proxy config, if it is not the one that the deployment names. */
  readonly configFile?: string;
  readonly place: Evidence["place"];
  /** Name or address that clients ask for; by default the one of SERVICE_URL, or the first of the config. */
  readonly host?: string;
  /** Where to connect; by default loopback on the host, and `host` from elsewhere. */
  readonly connect?: string;
  /** Addresses by which the outside reaches the host, besides those of the deployment's DNS records. */
  readonly publicAddresses: readonly string[];
  readonly mediaPath?: string;
  /** What opens the application's database, so that the settings stored in it are seen (spec 2.1). */
  readonly databasePassword?: string;
  readonly databaseOptionFile?: string;
}

/** Looks at everything that can be seen from here. Changes nothing; fails only without a config that can be read. */
export async function gather(options: DiagnosisOptions): Promise<Result<Evidence>> {
  const deployment = await readDeployment(options.deploymentFile);
  if (!deployment.ok) return deployment;
  const onHost = options.place === "host";
  const configFile = options.configFile ?? deployment.value?.config ?? DEFAULT_HOST_PATHS.config;
  const document = await readConfig(configFile);
  if (!document.ok) return document;
  const config = document.value;
  const target = targetOf(options, deployment.value, config);
  const [responses, publicAddresses, host] = await Promise.all([
    seenResponses(config, deployment.value, target, options),
    askPublicAddresses(config, deployment.value, target.host, options),
    onHost
      ? hostEvidence(configFile, deployment.value, options)
      : elsewhereEvidence(config, deployment.value, target.connect),
  ]);
  return {
    ok: true,
    value: {
      place: options.place,
      config,
      ...(deployment.value === undefined ? {} : { deployment: deployment.value }),
      responses,
      publicAddresses,
      ...host,
    },
  };
}

async function readDeployment(file: string): Promise<Result<Deployment | undefined>> {
  if (!existsSync(file)) return { ok: true, value: undefined };
  const read = await readText(file, file);
  return "problem" in read ? { ok: false, problems: [read.problem] } : parseDeploymentText(read.text);
}

async function readConfig(file: string): Promise<Result<ProxyConfig>> {
  const read = await readText(file, file);
  return "problem" in read ? { ok: false, problems: [read.problem] } : parseConfigText(read.text);
}

interface Target {
  /** What to ask for; undefined for the first name of the config. */
  readonly host?: string;
  /** Where to connect; undefined for loopback, or the listener's own address. */
  readonly connect?: string;
}

/** Clients use the address of SERVICE_URL, whatever the proxy's config says. */
function targetOf(
  options: DiagnosisOptions,
  deployment: Deployment | undefined,
  config: ProxyConfig,
): Target {
  const host = options.host ?? serviceUrlOf(deployment)?.hostname.replace(/^\[|\]$/g, "");
  const elsewhere = options.place === "elsewhere" ? (host ?? firstName(config)) : undefined;
  const connect = options.connect ?? elsewhere;
  return { ...(host === undefined ? {} : { host }), ...(connect === undefined ? {} : { connect }) };
}

/** SERVICE_URL; undefined where there is none, or something else stands in its place. */
function serviceUrlOf(deployment: Deployment | undefined): URL | undefined {
  const text = deployment?.settings?.values.serviceUrl;
  return text !== undefined && URL.canParse(text) ? new URL(text) : undefined;
}

function firstName(config: ProxyConfig): string | undefined {
  return config.virtualServers.flatMap((server) => server.serverNames).find((name) => name !== "_");
}

async function seenResponses(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  target: Target,
  options: DiagnosisOptions,
): Promise<SeenResponse[]> {
  const given = options.mediaPath ?? deployment?.probe.mediaPath;
  const mediaPath = given ?? (options.place === "host" ? await mediaFileOf(config, undefined) : undefined);
  const serviceUrl = serviceUrlOf(deployment);
  const rows = expectedResponses(config, {
    ...target,
    ...(serviceUrl === undefined ? {} : { origin: serviceUrl.origin }),
    ...(mediaPath === undefined ? {} : { mediaPath }),
  });
  return Promise.all(
    rows.map(async (row) => {
      const outcome = row.notProbed === undefined ? await probe(row.request, options) : undefined;
      return { row, outcome, checked: judge(row, outcome) };
    }),
  );
}

/** Asks for the default page by every address of the outside. */
async function askPublicAddresses(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  host: string | undefined,
  options: DiagnosisOptions,
): Promise<PublicAddress[]> {
  const records = deployment?.network?.dnsRecords.map(({ value }) => value) ?? [];
  const named = host !== undefined && isIP(host) === 0 ? await resolved(host) : [];
  const addresses = [...new Set([...options.publicAddresses, ...records, ...named])];
  const own = ownAddresses();
  return Promise.all(
    addresses.map(async (address) => {
      const rows = expectedResponses(config, { connect: address, ...(host === undefined ? {} : { host }) });
      const request = rows.find((row) => row.notProbed === undefined)?.request;
      const outcome =
        request === undefined
          ? { failure: { code: "", message: "nothing is served there" } }
          : await probe(request, options);
      return { address, own: own.has(address), outcome };
    }),
  );
}

async function resolved(name: string): Promise<string[]> {
  try {
    return (await lookup(name, { all: true })).map(({ address }) => address);
  } catch {
    // Without a record there is no public address to try.
    return [];
  }
}

async function hostEvidence(
  configFile: string,
  deployment: Deployment | undefined,
  options: DiagnosisOptions,
): Promise<Partial<Evidence>> {
  const [loaded, units, settings, media] = await Promise.all([
    loadConfig({ file: configFile, logToStderr: true }),
    deployment === undefined ? undefined : unitsOf(deployment.services),
    deployment?.settings === undefined ? undefined : seenSettings(deployment, deployment.settings, options),
    deployment?.media === undefined ? undefined : seenMedia(deployment.media),
  ]);
  return {
    configProblems: loaded.ok ? [] : loaded.problems,
    configWarnings: loaded.ok ? loaded.value.warnings : [],
    sockets: listeningSockets(),
    ...(units === undefined ? {} : { units }),
    ...(settings === undefined ? {} : { settings }),
    ...(media === undefined ? {} : { media }),
  };
}

/** Avatars lie in a directory of their own, or in the one of that name below the media. */
function seenMedia({
  directory,
  avatarDirectory = `${directory}/avatars`,
}: NonNullable<Deployment["media"]>) {
  return checkMediaPermissions(existsSync(avatarDirectory) ? { directory, avatarDirectory } : { directory });
}

async function seenSettings(
  { database }: Deployment,
  settings: NonNullable<Deployment["settings"]>,
  { databasePassword, databaseOptionFile, timeoutMs }: DiagnosisOptions,
): Promise<SettingsSeen> {
  const { files, problems } = await planSettings(settings);
  const inFiles = files.flatMap(({ path, findings }) =>
    findings
      .filter(({ state }) => state === "different" || state === "missing")
      .map(({ item, wanted, found, line }) => ({
        item,
        wanted,
        ...(found === undefined ? {} : { found }),
        where: line === undefined ? path : `${path}:${line}`,
      })),
  );
  if (database === undefined) return { deviations: inFiles, problems, database: NO_DATABASE };
  const seen = await readOverrides({
    ...database,
    timeoutMs,
    ...(databasePassword === undefined ? {} : { password: databasePassword }),
    ...(databaseOptionFile === undefined ? {} : { optionFile: databaseOptionFile }),
  });
  if (!seen.looked)
    return { deviations: inFiles, problems, database: `The database was not asked: ${seen.why}.` };
  const wanted = {
    SERVICE_URL: settings.values.serviceUrl,
    FILE_SERVER_ROOT: settings.values.fileServerRoot,
  };
  const stored = seen.overrides
    .map(({ item, stored: value }) => ({
      item,
      wanted: wanted[item],
      found: value.kind === "text" ? value.text : "a value that cannot be read",
      where: "stored in the application's database, which has priority",
    }))
    .filter((one) => one.found.replace(/\/$/, "") !== one.wanted);
  return { deviations: [...inFiles, ...stored], problems, database: "The database stores no other values." };
}

const NO_DATABASE = "The database was not asked: the deployment does not name one.";

/** Which ports are open for another machine. */
async function elsewhereEvidence(
  config: ProxyConfig,
  deployment: Deployment | undefined,
  connect: string | undefined,
): Promise<Partial<Evidence>> {
  if (connect === undefined) return {};
  const hidden = deployment?.network?.loopbackPorts ?? [];
  const ports = [...new Set([...config.listeners.map(({ port }) => port), ...hidden])];
  const open = await Promise.all(ports.map((port) => isOpen(connect, port, PORT_MS)));
  return { openPorts: new Map(ports.map((port, i) => [port, open[i]!])) };
}

const PORT_MS = 3_000;
