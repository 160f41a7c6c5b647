import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Evidence } from "../../src/host/diagnosis/evidence.js";
import { diagnose } from "../../src/host/diagnosis/rows/rows.js";
import { parseConfig } from "../../src/model/index.js";
import { piecesText, switchedOff, WITHOUT } from "../../src/runtime/sockets/node/pieces.js";
import { KNOWN_VERSIONS } from "../../src/runtime/sockets/node/probe.js";
import { freePort } from "../../testkit/ports.js";
import versions from "../../proof/nodeVersions/package-lock.json";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";

/** A Node that lacks what has no public name, or does something else by it: portico says so, and serves. */

/** Before anything of portico runs: `layer` is what all handles of sockets inherit from. */
const UNKNOWN = `
Object.defineProperty(process, "version", { value: "v99.0.0" });
const layer = Object.getPrototypeOf(process.binding("pipe_wrap").Pipe.prototype);
`;

test.each([
  ["no way to a bound socket", `delete require("net")._createServerHandle;`, "boundSockets"],
  [
    "no such option of V8",
    `const processes = require("child_process");
     const { spawn } = processes;
     processes.spawn = (node, args, options) =>
       spawn(node, args.map((arg) => arg === "--single-threaded-gc" ? "--no-such-option" : arg), options);`,
    "singleThreadedGc",
  ],
  [
    "a hidden layer below streams",
    `process.binding = () => { throw new Error("Access to this API has been restricted"); };`,
    "directReads, directWrites",
  ],
  [
    "other names for a socket's settings",
    `const symbols = Object.getOwnPropertySymbols;
     Object.getOwnPropertySymbols = (of) => symbols(of).filter((s) => s.description !== "kBufferCb");`,
    "readBuffers",
  ],
  [
    "writes that only Node itself may make",
    `${UNKNOWN}
     const { writeLatin1String } = layer;
     layer.writeLatin1String = function (request, text) {
       return request.handle === undefined ? 0 : writeLatin1String.call(this, request, text);
     };`,
    "directWrites",
  ],
  [
    "no way from TLS to TCP",
    `${UNKNOWN}
     Object.defineProperty(require("tls").TLSSocket.prototype, "_parent", { get() {}, set() {} });`,
    // Node 20 itself takes this way when it reads.
    process.version.startsWith("v20.") ? "readBuffers, tcpBelowTls" : "tcpBelowTls",
  ],
  [
    "accepted sockets that read elsewhere",
    `${UNKNOWN}
     const { useUserBuffer } = layer;
     layer.useUserBuffer = function (into) {
       if (this.reading !== true) useUserBuffer.call(this, into);
     };`,
    "readBuffers",
  ],
  [
    "writes that do not tell how much of them is left",
    `${UNKNOWN}
     const { readStart } = layer;
     layer.readStart = function () {
       Object.defineProperty(this, "writeQueueSize", { value: undefined });
       return readStart.call(this);
     };`,
    "unsentBytes",
  ],
])("with %s it serves, and says so once", async (_, doctor, pieces) => {
  const folder = openFolder();
  const preload = join(folder, "doctor.cjs");
  writeFileSync(preload, doctor);
  const port = await freePort();
  const portico = await Portico.start(servedConfig(port, folder), {
    env: { NODE_OPTIONS: `--require ${preload}`, [WITHOUT]: "" },
  });
  const client = await KeepAliveClient.connect(port);
  for (let i = 0; i < 3; i++) expect((await client.ask("/")).body).toBe("served");
  client.socket.destroy();
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(await portico.stop()).toBe(0);
  expect(portico.errors.match(/lacks [\w, ]+/g)).toEqual([`lacks ${pieces} `]);
});

test("`portico doctor` has a row for what is missing, and only then", () => {
  const config = parseConfig(servedConfig(80, "/"));
  if (!config.ok) throw new Error("the config is valid");
  const evidence: Evidence = { place: "host", config: config.value, responses: [] };
  const rows = diagnose(evidence);
  const lacking = diagnose({ ...evidence, missingPieces: "Node v99.0.0 lacks unsentBytes" });
  expect(rows.map(({ id }) => id)).not.toContain("node");
  expect(lacking.filter(({ id }) => !rows.some((row) => row.id === id))).toEqual([
    expect.objectContaining({
      id: "node",
      status: "failed",
      evidence: ["Node v99.0.0 lacks unsentBytes"],
      fix: expect.stringContaining(KNOWN_VERSIONS.at(-1)!) as string,
    }),
  ]);
});

test("an unknown version that has everything does without nothing, and its trial leaves nothing open", async () => {
  const { version } = process;
  const open = (): number =>
    readFileSync("/proc/self/net/unix", "latin1").split(`@portico ${process.pid} `).length - 1;
  Object.defineProperty(process, "version", { value: "v99.0.0", configurable: true, writable: true });
  try {
    await jest.isolateModulesAsync(async () => {
      const { unused } = await import("../../src/runtime/sockets/node/pieces.js");
      const { missingPieces } = await import("../../src/runtime/sockets/node/probe.js");
      const without = unused();
      expect(await missingPieces()).toEqual(without);
      expect(await missingPieces()).toEqual(without);
    });
    await eventually(() => open() === 0, "for its sockets to close");
  } finally {
    Object.defineProperty(process, "version", { value: version, configurable: true, writable: true });
  }
});

test("a Node that has everything is not mentioned, but a wrong name is", () => {
  const saved = process.env[WITHOUT];
  try {
    process.env[WITHOUT] = "";
    if (saved === undefined) expect(piecesText()).toBeUndefined();
    process.env[WITHOUT] = "directWrite";
    expect(piecesText()).toMatch(/^PORTICO_NODE_WITHOUT names directWrite: known are all, boundSockets, /);
  } finally {
    if (saved === undefined) delete process.env[WITHOUT];
    else process.env[WITHOUT] = saved;
  }
});

test("the variable names pieces, separated by commas, or all of them", () => {
  const off = (text: string) => switchedOff({ [WITHOUT]: text }).pieces;
  expect(off(" directReads , unsentBytes")).toEqual(["directReads", "unsentBytes"]);
  expect(off("all")).toHaveLength(7);
  expect(off("")).toEqual([]);
});

test("known Node versions are those that the tests run on, the deployed one among them", () => {
  const packages = Object.values(versions.packages).filter((found) => "version" in found);
  expect(packages.map(({ version }) => `v${version}`)).toEqual(KNOWN_VERSIONS);
  const deployed = versions.packages["node_modules/node-24"];
  const runtime = readFileSync(join(__dirname, "../../src/constructs/host/nodeRuntime.ts"), "utf8");
  expect(runtime).toContain(`DEFAULT_VERSION = "${deployed.version}"`);
  expect(runtime).toContain(deployed.integrity);
});

const servedConfig = (port: number, folder: string) =>
  oneServer({
    logs: { access: "off", error: { path: join(folder, "error.log") } },
    listeners: [loopback("http", port)],
    routes: [fixed("served")],
  });
