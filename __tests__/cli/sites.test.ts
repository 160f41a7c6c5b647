import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";

/** `--site` of commands that read files: a site beside one whose name begins with its own. */

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "portico-sites-"));
  for (const folder of ["etc/portico", "var/log/portico", "srv"])
    mkdirSync(join(root, folder), { recursive: true });
  save("etc/portico/portico.json", CONFIG);
  save("etc/portico/deployment.json", DEPLOYMENT);
  for (const site of ["a", "b"]) writeFileSync(join(root, `srv/${site}.env`), "URL=x\n");
  const lines = SERVERS.flatMap(([server, name]) => [
    logLine(server, name, "/x"),
    logLine(server, name, "/y"),
  ]);
  writeFileSync(join(root, "var/log/portico/access.log"), lines.join(""));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const save = (name: string, document: unknown): void =>
  writeFileSync(join(root, name), JSON.stringify(document));

async function portico(command: string): Promise<{ code: number; text: string }> {
  let text = "";
  const add = (more: string): void => void (text += more);
  return { code: await run(command.replaceAll("$", root).split(" "), { out: add, err: add }), text };
}

/** The names of virtual servers, their server names and sites. */
const SERVERS = [
  ["a", "a.example", "a"],
  ["a-redirect", "r.a.example", "a"],
  ["a-b", "b.example", "a-b"],
  ["alone", "alone.example", undefined],
] as const;

const CONFIG = {
  version: 1,
  logs: { access: { path: "/var/log/portico/access.log", format: "json" }, error: "off" },
  listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
  virtualServers: SERVERS.map(([name, served, site], i) => ({
    ...{ name, site, serverNames: [served], listeners: ["http"], default: i === 0 },
    routes: [{ name: "all", path: "/", match: "prefix", action: { type: "respond", status: 200 } }],
  })),
};

const envFile = (name: string, path: string, site?: string) => ({
  ...{ name, path, site, kind: "env" },
  items: [{ name: "URL", value: "x", code: `${name}-urls` }],
});

const DEPLOYMENT = {
  version: 1,
  config: "/etc/portico/portico.json",
  files: [{ path: "/etc/portico/portico.json", mode: "0644", sha256: "0".repeat(64), role: "config" }],
  services: { proxy: { service: "portico.service", socket: "portico.socket" } },
  settings: { files: [envFile("own", "/srv/a.env"), envFile("b", "/srv/b.env", "a-b")] },
  rows: [
    { code: "own-urls", title: "Own links", site: "a" },
    { code: "b-urls", title: "Links of b", site: "a-b" },
  ],
};

const logLine = (server: string, host: string, target: string): string =>
  `${JSON.stringify({
    ...{ time: new Date().toISOString(), remote_addr: "192.0.2.9", method: "GET", target },
    ...{ http_version: "1.1", scheme: "http", host, status: 200, body_bytes_sent: 5, request_time_ms: 1 },
    ...{ request_body_bytes: null, listener: "http", server, route: "all", upstream: null },
    ...{ request_id: `${server}${target.slice(1)}` },
  })}\n`;

const LOG = "log --root $ --no-follow --json";
const REPLAY = "replay $/var/log/portico/access.log --root $ --config $/etc/portico/portico.json --json";
const SHOW = "settings show --root $ --json";
const DOCTOR = "doctor --root $ --json";

const names = (text: string, of: RegExp): string[] => [
  ...new Set([...text.matchAll(of)].map(([, one]) => one!)),
];
const servers = (text: string): string[] => names(text, /"server":"([^"]+)"/g);
const files = (text: string): string[] => names(text, /"name": "(own|b)"/g);
const rows = (text: string): string[] => names(text, /"id": "((?:own|b)-urls)"/g);
const requests = (text: string): string[] => [String((JSON.parse(text) as { requests: number }).requests)];

test.each<[command: string, seen: (text: string) => string[], expected: string[]]>([
  [LOG, servers, ["a", "a-redirect", "a-b", "alone"]],
  [`${LOG} --site a`, servers, ["a", "a-redirect"]],
  [`${LOG} --site a-b`, servers, ["a-b"]],
  [`${LOG} --site alone`, servers, ["alone"]],
  [REPLAY, requests, ["8"]],
  [`${REPLAY} --site a`, requests, ["4"]],
  [`${REPLAY} --site a-b`, requests, ["2"]],
  [SHOW, files, ["own", "b"]],
  [`${SHOW} --site application`, files, ["own"]],
  [`${SHOW} --site a-b`, files, ["b"]],
  [DOCTOR, rows, ["own-urls", "b-urls"]],
  [`${DOCTOR} --site a-b`, rows, ["b-urls"]],
  [`${DOCTOR} --site a`, rows, ["own-urls"]],
  [`${DOCTOR} --site alone`, rows, []],
])("`%s`", async (command, seen, expected) => {
  expect(seen((await portico(command)).text)).toEqual(expected);
});

test.each([
  LOG,
  REPLAY,
  SHOW,
  DOCTOR,
  "check $/etc/portico/portico.json --live --json",
  "why /x --root $ --json",
])("`%s` names the sites that there are", async (command) => {
  const { code, text } = await portico(`${command} --site a-c`);
  expect(code).not.toBe(0);
  const { ok, problems } = JSON.parse(text) as { ok: boolean; problems: Record<string, string>[] };
  expect([ok, problems.length]).toEqual([false, 1]);
  const known = command === SHOW ? "application, a-b" : "a, a-b, alone";
  expect(problems[0]).toMatchObject({
    ...{ code: "control.unknown-site", path: "--site", received: '"a-c"', allowed: known },
    fix: expect.stringContaining("Did you mean `a"),
  });
});

test("a path and an id are looked for in the site", async () => {
  const why = async (about: string): Promise<string> => {
    const { code, text } = await portico(`why ${about} --root $`);
    return `${code} ${/virtual server +([a-z-]+)/.exec(text)?.[1] ?? /\[([a-z.-]+)\]/.exec(text)?.[1] ?? text}`;
  };
  expect(await why("/x --site a-b")).toBe("0 a-b");
  expect(await why("/x --site a")).toBe("0 a");
  expect(await why("a-redirectx --site a")).toBe("0 a-redirect");
  expect(await why("a-redirectx --site a-b")).toBe("1 files.request-not-found");
  expect(await why("http://b.example/ --site a-b")).toMatch(/^2 error: .*with --site, give a path/);
  expect(await why("/x")).toMatch(/^2 error: .*a path with --site/);
});

test("rows are below the names of their sites, those of the host first", async () => {
  const { text } = await portico("doctor --root $");
  const [host, ...grouped] = text.split(/^site /m);
  expect(host).toContain("[units]");
  expect(grouped.map((one) => one.split("\n")[0])).toEqual(["a", "a-b"]);
  expect(grouped[1]).toContain("Links of b");
});
