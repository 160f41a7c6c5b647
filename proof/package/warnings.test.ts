import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a program that synthesizes prints, run as the docs have it. */

const root = join(__dirname, "..", "..");
// In the project, so that the program finds what it imports.
mkdirSync(join(root, "out"), { recursive: true });
const folder = mkdtempSync(join(root, "out", "warnings-"));
afterAll(() => rmSync(folder, { recursive: true }));

const program = (body: string): string => `
import { App, TerraformStack } from "cdktf";
import { Application, FrontEnd, Mode } from "../../src/index.js";

const app = new App({ outdir: ${JSON.stringify(mkdtempSync(join(tmpdir(), "portico-warnings-")))} });
const stack = new TerraformStack(app, "portico");
const files = new FrontEnd(stack, "files", {
  host: { address: "192.0.2.10", publicName: "files.example.org" },
  mode: Mode.tls(),
  application: Application.fileSync({ installDirectory: "/srv/sync" }),
  service: { runtimeBundle: ${JSON.stringify(__filename)} },
});
${body}
`;

function run(body: string, env: NodeJS.ProcessEnv = {}) {
  const file = join(folder, "main.ts");
  writeFileSync(file, program(body));
  const tsx = join(root, "node_modules", "tsx", "dist", "cli.mjs");
  const all = { ...process.env, ...env };
  const { status, stderr, stdout } = spawnSync(process.execPath, [tsx, file], { encoding: "utf8", env: all });
  return { status, stderr, stdout };
}

const IDLE =
  "warning: portico/files/Proxy/Upstreams/idle: No route uses this upstream: add a route with `Action.proxy(upstream)`, or remove the upstream.\n";
const EMPTY =
  "warning: portico/files/Proxy/VirtualServers/empty: This virtual server has no routes: it responds to every request with 404.\n";
const MISTAKES = `
files.proxy.addUpstream("idle", { url: "http://10.0.0.1" });
files.proxy.addVirtualServer("empty", { serverNames: ["e.example"], listeners: [files.listeners.http!] });
`;

test.each([
  ["nothing for a usual front end", "app.synth();", {}, []],
  ["each warning once", `${MISTAKES}app.synth();`, {}, [EMPTY, IDLE]],
  // It shows what is in the manifest itself, and repeats what programs write as errors.
  [
    "nothing for cdktf's command line",
    `${MISTAKES}app.synth();`,
    { CDKTF_CONTINUE_SYNTH_ON_ERROR_ANNOTATIONS: "true" },
    [],
  ],
  [
    "each warning once however often the app is synthesized",
    `${MISTAKES}app.synth();\napp.synth();`,
    {},
    [EMPTY, IDLE],
  ],
  ["nothing before the app is synthesized", MISTAKES, {}, []],
])("standard error has %s", (_, body, env, expected) => {
  expect(run(body, env)).toEqual({ status: 0, stderr: expected.join(""), stdout: "" });
});
