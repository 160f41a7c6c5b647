import { randomBytes } from "node:crypto";
import { execFileSync } from "node:child_process";
import {
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { createServer, type Server } from "node:http";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { handOver } from "../../src/runtime/load/credentialSet.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { issue } from "../../testkit/certificates.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * A running master whose files are replaced one after the other: each reload is refused at once, and the next one, the
 * next upgrade and the end are as if nothing had been.
 */

const asRoot = process.geteuid!() === 0 ? test : test.skip;
const APP = 42_424;
const SECRET = "root-only-secret";

let folder: string;
let ports: [number, number];
let upstream: Server;
let portico: Portico | undefined;
const at = (name: string): string => join(folder, name);
const control = (): string => at("runtime/control.sock");

beforeEach(async () => {
  folder = openFolder();
  ports = (await freePorts(2)) as [number, number];
  for (const name of ["conf", "root"]) mkdirSync(at(name));
  writeFileSync(at("root/secret"), SECRET, { mode: 0o600 });
  upstream = createServer((request, response) => response.end(request.headers["x-api-key"])).listen(ports[1]);
});
afterEach(async () => {
  upstream.close();
  killAll();
});

async function config(): Promise<ProxyConfigInput> {
  const { key, cert } = await issue({ type: "ec", names: ["a.example"] });
  const contents = {
    field: "a-value",
    tickets: randomBytes(48).toString("base64"),
    page: "<!doctype html><title>404</title>",
    key,
    certificate: cert,
  };
  for (const [name, content] of Object.entries(contents))
    writeFileSync(at(`conf/${name}`), content, { mode: name === "page" ? 0o644 : 0o600 });
  const tls = {
    certificate: at("conf/certificate"),
    key: at("conf/key"),
    policy: "mozilla-intermediate" as const,
  };
  const [tlsPort] = (await freePorts(1)) as [number];
  return oneServer({
    workers: 1,
    listeners: [loopback("http", ports[0]), loopback("https", tlsPort, tls)],
    ticketKeys: { file: at("conf/tickets") },
    upstreams: [{ name: "u", url: `http://127.0.0.1:${ports[1]}` }],
    server: { errorPages: [{ statuses: [404], file: at("conf/page") }] },
    routes: [
      {
        name: "r",
        path: "/",
        match: "prefix",
        action: { type: "proxy", upstream: "u", setHeadersFromCredential: { "X-Api-Key": at("conf/field") } },
      },
    ],
  });
}

const reload = async (): Promise<string> => {
  const began = Date.now();
  const outcome = await askMaster(control(), { command: "reload" }, 15_000);
  expect(Date.now() - began).toBeLessThan(10_000);
  return outcome.ok ? "ok" : outcome.problems.map((p) => p.code).join(" ");
};

const REPLACED: readonly [string, (file: string) => void][] = [
  ["files.untrusted-path", (file) => (symlinkSync("/etc/shadow", file), lchownSync(file, APP, APP))],
  ["files.untrusted-path", (file) => (symlinkSync(at("root/secret"), file), lchownSync(file, APP, APP))],
  ["files.not-a-file", (file) => execFileSync("mkfifo", [file])],
  ["files.not-a-file", (file) => mkdirSync(file)],
  ["files.not-a-file", (file) => execFileSync("mknod", [file, "c", "1", "5"])],
  ["files.too-large", (file) => (writeFileSync(file, ""), truncateSync(file, 2 ** 30))],
];

/** A page is sent to clients, by the rule of static files. */
const OF_PAGES: Readonly<Record<string, string>> = {
  "files.untrusted-path": "files.unreadable",
  "files.too-large": "config.bad-error-page",
};

asRoot(
  "a reload refuses each object in the place of each file at once; then reload, upgrade and SIGTERM work",
  async () => {
    mkdirSync(at("runtime"));
    portico = await Portico.start(await config(), { env: { RUNTIME_DIRECTORY: at("runtime") } });
    const files = [...readdirSync(at("conf")).map((name) => at(`conf/${name}`)), portico.configFile];
    expect(await reload()).toBe("ok");
    for (const file of files) {
      renameSync(file, `${file}.good`);
      for (const [code, put] of REPLACED) {
        // The operator names the config: a link is the operator's own choice there.
        if (file === portico.configFile && code === "files.untrusted-path") continue;
        put(file);
        const codes = file.endsWith("page") ? (OF_PAGES[code] ?? code) : code;
        expect(`${file} ${await reload()}`).toBe(`${file} ${codes}`);
        rmSync(file, { recursive: true });
      }
      renameSync(`${file}.good`, file);
    }
    expect(await reload()).toBe("ok");
    lchownSync(at("conf"), APP, APP);
    expect(await reload()).toMatch(/^(files\.untrusted-path ?){4}$/);
    lchownSync(at("conf"), 0, 0);
    expect(await reload()).toBe("ok");
    const response = await fetch(`http://127.0.0.1:${ports[0]}/`, { headers: { host: "a.example" } });
    expect(await response.text()).toBe("a-value");
    const upgraded = await askMaster(control(), { command: "upgrade" }, 30_000);
    expect(upgraded.ok).toBe(true);
    for (const pid of processes("master")) process.kill(pid, "SIGTERM");
    await eventually(() => processes("master").length === 0, "for both masters to end", SELDOM);
    await portico.gone;
    expect(portico.output + portico.errors).not.toContain(SECRET);
    expect(portico.output + portico.errors).not.toContain(
      readFileSync("/etc/shadow", "utf8").split("\n")[0]!,
    );
  },
  120_000,
);

asRoot("files that root passes to the service: refused at once, and nothing is passed", async () => {
  const run = at("run");
  const file = at("conf/key");
  const pass = async (): Promise<string> => {
    const passed = await handOver(run, [{ name: "key", file }], { uid: APP, gid: APP });
    return passed.ok ? "ok" : passed.problems.map(({ code }) => code).join(" ");
  };
  for (const [code, put] of REPLACED) {
    put(file);
    expect(await pass()).toBe(code);
    lchownSync(at("conf"), APP, APP);
    expect(await pass()).toBe("files.untrusted-path");
    lchownSync(at("conf"), 0, 0);
    rmSync(file, { recursive: true });
  }
  expect(readdirSync(run)).toEqual([]);
  writeFileSync(file, "key");
  expect(await pass()).toBe("ok");
});
