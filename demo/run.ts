import path from "node:path";
import { buildBundle } from "../build/bundle.js";
import { buildSchema } from "../build/schema.js";
import { BUNDLE } from "../build/paths.js";
import { imageFor } from "../src/host/diagnosis/expected/imageFile.js";
import { expectedResponses } from "../src/host/diagnosis/expected/expectedResponses.js";
import { checkLive, type CheckedResponse } from "../src/host/diagnosis/expected/liveCheck.js";
import { DEPLOYMENT_FILE, formatProblem, parseDeploymentText } from "../src/model/index.js";
import { readParsed } from "../src/runtime/load/files.js";
import { previewConfig } from "../src/cli/previewConfig.js";
import { daemonPorts, type Host, prepareHosts, sitePaths } from "./host.js";
import { freePortOffset, type Preview, startPreview } from "./previewProcess.js";
import { responseTable, shownPath, whatNext } from "./report.js";
import type { Mode } from "./synthesize.js";
import { startUpstreams, type Upstreams } from "./upstreams/index.js";

export interface DemoOptions {
  /** End after the checks. */
  readonly once: boolean;
  /** Folder that the hosts are laid out below. */
  readonly out: string;
}

/** What has to be undone at the end, last first. */
const cleanups: (() => Promise<void>)[] = [];

/** Shows the whole front end. @returns the exit code */
export async function runDemo(options: DemoOptions): Promise<number> {
  const bundle = await step(
    "Build the proxy",
    "See the error above; `npm run build` shows all of it.",
    () => {
      buildSchema();
      return buildBundle();
    },
  );
  say(
    `  ${shownPath(BUNDLE)}: ${(bundle.bytes / 1024).toFixed(0)} KiB${bundle.changed ? "" : ", unchanged"}`,
  );
  const { plain, tls } = await step(
    `Synthesize main.ts and lay the hosts out below ${shownPath(options.out)}`,
    "`npx tsx main.ts` shows more.",
    () => prepareHosts(options.out),
  );
  say(`  ${[plain, tls].map((host) => `${shownPath(host.root)}: ${host.files.length} files`).join(", ")}`);
  const upstreams = await step("Start the daemons behind the proxy", "Free some ports on 127.0.0.1.", () =>
    startUpstreams(sitePaths(plain.config), daemonPorts(plain.config)),
  );
  cleanups.push(() => upstreams.stop());
  for (const { name, port, wantedPort } of upstreams.daemons) {
    const moved = port === wantedPort ? "" : ` (${wantedPort} is taken by another program)`;
    say(`  ${name.padEnd(10)} http://127.0.0.1:${port}${moved}`);
  }
  const first = await serveAndCheck(plain, upstreams);
  await first.preview.stop();
  const second = await serveAndCheck(tls, upstreams);
  const rows = [...first.rows, ...second.rows];
  say(`\n${responseTable(rows)}`);
  const allPass = rows.every((row) => row.pass);
  if (options.once) return allPass ? 0 : 1;
  return keepServing(tls, second);
}

/** Moved like the ports of the front end. */
const STATUS_PORT = 9_145;

const statusUrl = (offset: number): string => `http://127.0.0.1:${STATUS_PORT + offset}/status`;

interface Served {
  readonly preview: Preview;
  readonly offset: number;
  readonly rows: readonly (CheckedResponse & { readonly mode: Mode })[];
}

/** Serves a laid-out host with the bundle, and asks for what `portico check --live` asks for. */
async function serveAndCheck(host: Host, upstreams: Upstreams): Promise<Served> {
  const offset = await freePortOffset([
    ...host.config.listeners.map((listener) => listener.port),
    STATUS_PORT,
  ]);
  const preview = startPreview(host.root, offset, overrides(host, upstreams), STATUS_PORT + offset);
  cleanups.push(() => preview.stop());
  await step(
    `Serve ${host.mode} mode on ${host.config.listeners.map((l) => l.port + offset).join(" and ")}`,
    `Try it alone: node dist/portico.mjs check --root ${shownPath(host.root)}`,
    () => preview.ready,
  );
  say(`  ${statusUrl(offset)} shows what goes on`);
  const config = previewConfig(host.config, { portOffset: offset });
  if (!config.ok) throw new Error("the preview serves what cannot be previewed");
  const deployment = await readParsed(path.join(host.root, DEPLOYMENT_FILE), parseDeploymentText);
  if (!deployment.ok) throw new Error(deployment.problems.map(formatProblem).join("\n"));
  const { expect = [] } = deployment.value;
  const image = await imageFor(config.value, expect, host.root);
  const expected = expectedResponses(config.value, {
    expect,
    ...image,
  });
  const checked = checkLive(expected, { timeoutMs: 10_000, insecure: true });
  const rows = await Promise.race([checked, preview.died.then((why) => Promise.reject(new Error(why)))]);
  return { preview, offset, rows: rows.map((row) => ({ ...row, mode: host.mode })) };
}

/** Other addresses for the daemons that did not get their usual port. */
function overrides(host: Host, upstreams: Upstreams): Record<string, string> {
  const moved = upstreams.daemons.filter((daemon) => daemon.port !== daemon.wantedPort);
  return Object.fromEntries(
    moved.map(({ name, port }) => [host.upstreamNames[name], `http://127.0.0.1:${port}`]),
  );
}

async function keepServing(host: Host, { preview, offset }: Served): Promise<number> {
  const url = (scheme: "http" | "https"): string => {
    const listener = host.config.listeners.find((l) => l.protocol === scheme)!;
    return `${scheme}://127.0.0.1:${listener.port + offset}`;
  };
  const { config, configFile, root } = host;
  const running = {
    status: statusUrl(offset),
    http: url("http"),
    https: url("https"),
    paths: sitePaths(config),
    hostRoot: root,
    configFile,
  };
  say(whatNext({ ...running, proxyPid: preview.pid! }));
  say("Requests as they are logged follow. Stop with Ctrl-C.");
  preview.follow();
  throw new Error(await preview.died);
}

/** Runs one step; a failure names the step and what to do. */
async function step<T>(name: string, fix: string, run: () => Promise<T>): Promise<T> {
  say(name);
  try {
    return await run();
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}\nfix: ${fix}`, { cause: error });
  }
}

function say(text: string): void {
  console.log(text);
}

/** Undoes everything. */
export async function cleanUp(): Promise<void> {
  for (const undo of cleanups.splice(0).reverse()) await undo();
}
