import { existsSync } from "node:fs";
import path from "node:path";
import {
  type Deployment,
  DEPLOYMENT_FILE,
  entriesOfSite,
  formatProblem,
  parseDeploymentText,
  type Problem,
  type ProxyConfig,
  type Result,
  serversWithUpstream,
  siteNotIn,
  siteOf,
} from "../../model/index.js";
import { loadConfig } from "../../runtime/load/loadConfig.js";
import { readParsed } from "../../runtime/load/files.js";
import { readDocument, type DocumentSource } from "../document.js";
import { expectedResponses, mainName } from "../../host/diagnosis/expected/expectedResponses.js";
import { type CheckedResponse, checkLive, formatChecked } from "../../host/diagnosis/expected/liveCheck.js";
import { seePauses, withoutPaused } from "../../host/diagnosis/pauses.js";
import type { ListedPauses } from "../../runtime/supervisor/control/listedPauses.js";
import { checkedServer, seeUpstreamServers } from "../../host/diagnosis/upstreamServers.js";
import { isElsewhere } from "../../host/diagnosis/system/hostFacts.js";
import { imageFor } from "../../host/diagnosis/expected/imageFile.js";
import { EXIT, json, okText, type CommandOutput, problemsText, summary } from "../output.js";
import { refuseSite, rowsOfSite, textBySite } from "../sites.js";
import { previewConfig } from "../previewConfig.js";
import { checkStoredSettings, type DatabaseFlags } from "./storedSettingsOptions.js";

export interface CheckOptions {
  readonly json: boolean;
  /** Whether the files the config names are checked as well. */
  readonly files: boolean;
}

/** `portico check`: the config, and by default every file it names. */
export async function check(
  source: DocumentSource,
  options: CheckOptions,
  output: CommandOutput,
): Promise<number> {
  const result: CheckedDocument = options.files ? await loadConfig(source) : await readDocumentOnly(source);
  if (!result.ok) return refused(source, result.problems, options, output);
  const { file } = source;
  const { config, warnings } = result.value;
  if (options.json) {
    output.out(json({ file, ok: true, ...summary(config), problems: [], warnings }));
  } else {
    output.out(okText(file, config));
    for (const warning of warnings) output.err(`warning: ${formatProblem(warning)}\n`);
  }
  return EXIT.ok;
}

type CheckedDocument = Result<{ readonly config: ProxyConfig; readonly warnings: readonly Problem[] }>;

async function readDocumentOnly(source: DocumentSource): Promise<CheckedDocument> {
  const document = await readDocument(source.file);
  return document.ok ? { ok: true, value: { config: document.value, warnings: [] } } : document;
}

export interface LiveOptions extends DatabaseFlags {
  readonly json: boolean;
  readonly connect?: string;
  readonly host?: string;
  readonly imagePath?: string;
  readonly deployment?: string;
  readonly portOffset: number;
  readonly insecure: boolean;
  readonly timeoutMs: number;
  readonly control: string;
  readonly site?: string;
}

/**
 * `portico check --live`: checks that the running proxy responds as its deployment lists, or its config promises. It reads
 * no other file, so that it works from another machine and for users who may not read the key.
 */
export async function checkRunning(
  source: DocumentSource,
  options: LiveOptions,
  output: CommandOutput,
): Promise<number> {
  const document = await readDocument(source.file);
  const moved = document.ok ? previewed(document.value, options.portOffset) : document;
  if (!moved.ok) return refused(source, moved.problems, options, output);
  const config = moved.value;
  const unknown = siteNotIn(config, options.site);
  if (unknown !== undefined) return refuseSite(unknown, options.json, output);
  const deployment = await deploymentOf(source, options.deployment);
  if (!deployment.ok) return refused(source, deployment.problems, options, output);
  const expect = deployment.value?.expect;
  const { imagePath } = options;
  const image = imagePath === undefined ? await imageFor(config, expect, source.root) : { imagePath };
  const { connect } = options;
  const all = expectedResponses(config, {
    ...options,
    asClients: connect !== undefined && isElsewhere(connect),
    ...(expect === undefined ? {} : { expect }),
    ...image,
  });
  const rows = rowsOfSite(all, config, options.site);
  const [responses, stored, servers] = await Promise.all([
    checkLive(withoutPaused(rows, config, await pausesHere(options)), options),
    checkStoredSettings(ofSite(deployment.value, options.site), options),
    checkServers(config, options),
  ]);
  const checked = [...responses, ...servers.rows];
  const failed = checked.filter((row) => !row.pass).length;
  const overridden = stored.looked && stored.rows.some((row) => !row.pass);
  const ok = failed === 0 && !overridden;
  if (options.json) {
    const host = options.host ?? mainName(config);
    output.out(
      json({
        file: source.file,
        ok,
        host,
        insecure: options.insecure,
        responses,
        upstreamServers: servers.rows,
        storedSettings: stored,
      }),
    );
  } else {
    output.out(textBySite(checked, (row) => `${formatChecked(row)}\n`));
    const what = servers.rows.length === 0 ? "responses" : "responses and servers";
    output.out(`${source.file}: ${checked.length - failed} of ${checked.length} ${what} as expected\n`);
    if (servers.why !== undefined)
      output.err(`note: the servers of upstreams were not checked: ${servers.why}\n`);
    if (stored.looked) output.out(stored.rows.map((row) => `${formatChecked(row)}\n`).join(""));
    else output.err(`note: settings in the application's database were not checked: ${stored.why}\n`);
    if (options.insecure && rows.some((row) => row.request.scheme === "https")) {
      output.err(
        "note: the certificate was not verified, because it may be self-signed; --no-insecure verifies it\n",
      );
    }
  }
  return ok ? EXIT.ok : EXIT.failed;
}

/** The same with the settings of one site only. */
function ofSite(deployment: Deployment | undefined, site: string | undefined): Deployment | undefined {
  const files = entriesOfSite(deployment?.settings?.files ?? [], site);
  const settings = deployment?.settings && files.length > 0 ? { ...deployment.settings, files } : undefined;
  return deployment && { ...deployment, settings };
}

/** A preview has no control socket, and another machine none of the host's addresses. */
const isHere = ({ connect, portOffset }: LiveOptions): boolean =>
  portOffset === 0 && (connect === undefined || !isElsewhere(connect));

const pausesHere = async (options: LiveOptions): Promise<ListedPauses | undefined> =>
  isHere(options) ? seePauses(options.control, options.timeoutMs) : undefined;

/** Servers of upstreams that have several, as the running proxy and connections from here see them. */
async function checkServers(
  config: ProxyConfig,
  options: LiveOptions,
): Promise<{ readonly rows: readonly CheckedResponse[]; readonly why?: string }> {
  const { control, timeoutMs, site } = options;
  const seen = isHere(options) ? await seeUpstreamServers(config, control, timeoutMs) : undefined;
  if (seen === undefined) return { rows: [] };
  if ("why" in seen) return { rows: [], why: seen.why };
  const rows = seen.flatMap((server) => {
    const sites = serversWithUpstream(config, server.upstream).map(siteOf);
    if (site !== undefined && !sites.includes(site)) return [];
    const [own, ...others] = new Set(sites);
    return others.length === 0 && own !== undefined
      ? { ...checkedServer(server), site: own }
      : checkedServer(server);
  });
  return { rows: rowsOfSite(rows, config) };
}

/** The host's deployment, if the config is the one that it names. */
async function deploymentOf(
  { file, root = "/" }: DocumentSource,
  given: string | undefined,
): Promise<Result<Deployment | undefined>> {
  if (given !== undefined) return readParsed(given, parseDeploymentText);
  const own = path.join(root, DEPLOYMENT_FILE);
  if (!existsSync(own)) return { ok: true, value: undefined };
  const parsed = await readParsed(own, parseDeploymentText);
  if (!parsed.ok) return parsed;
  return {
    ok: true,
    value: path.join(root, parsed.value.config) === path.resolve(file) ? parsed.value : undefined,
  };
}

function previewed(config: ProxyConfig, portOffset: number): Result<ProxyConfig> {
  return portOffset === 0 ? { ok: true, value: config } : previewConfig(config, { portOffset });
}

function refused(
  { file }: DocumentSource,
  problems: readonly Problem[],
  options: { readonly json: boolean },
  output: CommandOutput,
): number {
  output.out(options.json ? json({ file, ok: false, problems }) : problemsText(file, problems));
  return EXIT.failed;
}
