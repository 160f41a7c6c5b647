import path from "node:path";
import { parseArgs } from "node:util";
import { buildBundle } from "../build/bundle.js";
import { BUNDLE, ROOT } from "../build/paths.js";
import { mediaFileOf } from "../src/diagnosis/mediaFile.js";
import { expectedResponses } from "../src/diagnosis/expectedResponses.js";
import { checkLive, type CheckedResponse } from "../src/diagnosis/liveCheck.js";
import { previewConfig } from "../src/cli/previewConfig.js";
import { daemonPorts, type Host, prepareHosts, sitePaths } from "./host.js";
import { freePortOffset, type Preview, startPreview } from "./previewProcess.js";
import { responseTable, shownPath, whatNext } from "./report.js";
import type { Mode } from "./synthesize.js";
import { startUpstreams, type Upstreams } from "./upstreams/index.js";

const HELP = `npm start [-- OPTIONS]: the whole front end on this machine, without Terraform, root or network

Synthesizes main.ts in both modes, lays the files out below out/, starts small stand-ins for the three daemons, serves
each mode with the bundled proxy on loopback and checks every expected response. Then goes on serving TLS mode until
Ctrl-C. Nothing is touched outside out/, dist/ and a temporary folder.

  --once      end after the checks; the exit code is 0 if all of them pass
  --out DIR   lay the hosts out below another folder than out/
  --help      print this
`;

/** What has to be undone at the end, last first. */
const cleanups: (() => Promise<void>)[] = [];

async function main(): Promise<number> {
  const options = readOptions();
  if (typeof options === "number") return options;
  const bundle = await step(
    "Build the proxy",
    "See the error above; `npm run build` shows all of it.",
    buildBundle,
  );
  say(
    `  ${shownPath(BUNDLE)}: ${(bundle.bytes / 1024).toFixed(0)} KiB${bundle.changed ? "" : ", unchanged"}`,
  );
  const { plain, tls } = await step(
    `Synthesize main.ts and lay the hosts out below ${shownPath(options.out)}`,
    "Run `npx tsx main.ts` by itself to see more.",
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

interface Served {
  readonly preview: Preview;
  readonly offset: number;
  readonly rows: readonly (CheckedResponse & { readonly mode: Mode })[];
}

/** Serves a laid-out host with the bundle, and asks for what `portico check --live` asks for. */
async function serveAndCheck(host: Host, upstreams: Upstreams): Promise<Served> {
  const offset = await freePortOffset(host.config.listeners.map((listener) => listener.port));
  const preview = startPreview(host.root, offset, overrides(host, upstreams));
  cleanups.push(() => preview.stop());
  await step(
    `Serve ${host.mode} mode on ${host.config.listeners.map((l) => l.port + offset).join(" and ")}`,
    `Try it by itself: node dist/portico.mjs check --root ${shownPath(host.root)}`,
    () => preview.ready,
  );
  const config = previewConfig(host.config, { portOffset: offset });
  if (!config.ok) throw new Error("the preview serves what cannot be previewed");
  const mediaPath = await mediaFileOf(config.value, host.root);
  const expected = expectedResponses(config.value, mediaPath === undefined ? {} : { mediaPath });
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

function readOptions(): { once: boolean; out: string } | number {
  try {
    const { values } = parseArgs({
      options: { once: { type: "boolean" }, out: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help === true) {
      say(HELP.trimEnd());
      return 0;
    }
    return { once: values.once === true, out: path.resolve(values.out ?? path.join(ROOT, "out")) };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
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

async function cleanUp(): Promise<void> {
  for (const undo of cleanups.splice(0).reverse()) await undo();
}

let finishing = false;

/** Ends the demo once, with the first reason there was: stopping the proxy must not count as its failure. */
async function finish(code: number, message: string): Promise<void> {
  if (finishing) return;
  finishing = true;
  if (message !== "") (code === 0 ? console.log : console.error)(message);
  await cleanUp();
  process.exit(code);
}

// Being stopped is the expected end of a demo.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => void finish(0, "\nStopping the proxy and the daemons."));
}
main().then(
  (code) => finish(code, ""),
  (error: Error) => finish(1, `\nThe demo failed. ${error.message}`),
);
