import { request } from "node:http";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { logsIn, loopback } from "../../testkit/oneServer.js";
import { type Accepted, RawUpstream } from "../../testkit/peers.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { join } from "node:path";
import { writeFileSync } from "node:fs";

/** `--site` of commands that ask a running proxy: a site beside one whose name begins with its own. */

const OK = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
let folder: string;
let port: number;
let upstream: RawUpstream;
let portico: Portico;

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  upstream = await new RawUpstream((peer: Accepted) => {
    peer.socket.on("data", () => {
      if (!peer.received.includes(" /held ")) peer.send(OK);
    });
  }).listen();
  const config = siteConfig();
  writeFileSync(join(folder, "portico.json"), JSON.stringify(config));
  portico = await Portico.start(config, { env: { RUNTIME_DIRECTORY: folder } });
});

afterEach(async () => {
  killAll();
  await portico.gone;
  await upstream.close();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

const SITES = [
  ["a", "a"],
  ["a-b", "a-b"],
  ["a-b-more", "a-b"],
  ["alone", undefined],
] as const;

const siteConfig = (): ProxyConfigInput => ({
  version: 1,
  workers: 1,
  logs: logsIn(folder),
  listeners: [loopback("http", port)],
  upstreams: SITES.map(([name]) => ({
    name: `${name}-web`,
    url: `http://127.0.0.1:${upstream.port}`,
    idleConnectionsMax: 0,
  })),
  virtualServers: SITES.map(([name, site], i) => ({
    ...{ name, serverNames: [`${name}.example`], default: i === 0, listeners: ["http"] },
    site,
    routes: [{ name: "web", path: "/", match: "prefix", action: { type: "proxy", upstream: `${name}-web` } }],
  })),
});

async function cli(...args: string[]): Promise<string> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const code = await run([...args], { out: add, err: add });
  return `${code} ${text}`;
}

const control = (): string[] => ["--control", join(folder, "control.sock")];

/** The status of each virtual server. */
const statuses = async (method = "GET"): Promise<string> =>
  (await Promise.all(SITES.map(([name]) => statusOf(`${name}.example`, method)))).join(" ");

const statusOf = (host: string, method: string): Promise<number> =>
  new Promise((resolve, reject) => {
    request({ host: "127.0.0.1", port, method, agent: false, headers: { Host: host } }, (response) => {
      response.resume();
      resolve(response.statusCode!);
    })
      .on("error", reject)
      .end();
  });

test.each<[site: string[], expected: string]>([
  [[], "503 503 503 503"],
  [["--site", "a"], "503 200 200 200"],
  [["--site", "a-b"], "200 503 503 200"],
  [["--site", "alone"], "200 200 200 503"],
])("a maintenance with %j: %s", async (site, expected) => {
  expect(await cli("maintenance", "on", ...site, ...control())).toMatch(
    /^0 (?:every site|site "[a-z-]+") is/,
  );
  expect(await statuses()).toBe(expected);
  const [, name = "all"] = site;
  expect(await cli("maintenance", ...control())).toMatch(new RegExp(`^0 SITE .*\\n${name} `));
  expect(await cli("maintenance", "off", ...site, ...control())).toBe("0 maintenance has ended\n");
  expect(await statuses()).toBe("200 200 200 200");
});

test.each<[site: string[], expected: string]>([
  [[], "503 503 503 503"],
  [["--site", "a-b"], "200 503 503 200"],
])("a quiesce with %j refuses writes: %s", async (site, expected) => {
  const held = cli("quiesce", ...site, ...control(), "--", "sleep", "2");
  await eventually(async () => (await statuses("POST")) === expected, "for the refusal");
  expect(await statuses()).toBe("200 200 200 200");
  expect(await held).toBe("0 ");
});

test("a quiesce waits for no request to another site", async () => {
  const waiting = request({ port, path: "/held", method: "POST", headers: { Host: "a.example" } });
  waiting.on("error", () => undefined).end();
  await eventually(() => upstream.received.includes("/held"), "for the request");
  const quiet = (site: string): Promise<string> =>
    cli("quiesce", "--site", site, "--wait", "1s", "--refuse", "1s", ...control(), "--", "true");
  expect(await quiet("a-b")).toBe("0 ");
  expect(await quiet("a")).toMatch(/^124 [^]*POST \//);
  waiting.destroy();
});

test("the status has columns for sites, or what belongs to one", async () => {
  const upstreams = async (...site: string[]): Promise<string[]> => {
    const text = await cli("status", ...site, ...control());
    return text
      .split("\n")
      .filter((line) => line.includes("-web "))
      .map((line) => line.replace(/ +http.*/, ""));
  };
  expect((await upstreams()).map((line) => line.split(/ +/))).toEqual([
    ["a", "a-web"],
    ["a-b", "a-b-web"],
    ["a-b", "a-b-more-web"],
    ["", "alone-web"],
  ]);
  expect(await upstreams("--site", "a")).toEqual([expect.stringMatching(/^a +a-web$/)]);
  expect(await upstreams("--site", "alone")).toEqual(["alone-web"]);
});

test("a check asks for what belongs to the site, and is grouped by sites", async () => {
  const check = async (...more: string[]): Promise<string> =>
    (await cli("check", join(folder, "portico.json"), "--live", ...more, ...control())).slice(2);
  const all = await check();
  expect(
    all
      .split(/^(?=site )/m)
      .map((group) => [...group.matchAll(/^(?:site|PASS) +([a-z-]+)/gm)].map(([, name]) => name)),
  ).toEqual([["alone"], ["a", "a"], ["a-b", "a-b", "a-b-more"]]);
  expect([...(await check("--site", "a")).matchAll(/^PASS +(\S+)/gm)].map(([, name]) => name)).toEqual(["a"]);
  const { responses } = JSON.parse(await check("--json")) as { responses: { site?: string }[] };
  expect(responses.map(({ site }) => site)).toEqual(["a", "a-b", "a-b", undefined]);
});

test.each(["maintenance on", "maintenance off", "status", "quiesce", "check --live"])(
  "`%s` names the sites that there are",
  async (command) => {
    const file = command.startsWith("check") ? [join(folder, "portico.json")] : [];
    const rest = command === "quiesce" ? ["--", "true"] : [];
    const said = await cli(...command.split(" "), ...file, "--site", "a-c", ...control(), ...rest);
    expect(said).toMatch(/^[1-9]\d* --site: is not the name of a site \[control\.unknown-site\]/);
    expect(said).toContain("a, a-b, alone");
    expect(said).toContain("Did you mean `a-b`?");
  },
);
