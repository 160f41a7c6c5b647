import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput, UpstreamInput } from "../../src/model/index.js";
import { logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { exchange } from "../../testkit/peers.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { testWith } from "../../testkit/testWith.js";
import { eventually } from "../../testkit/waiting.js";

/** `spread`: the addresses of a name are servers, which come and go with what /etc/hosts says. */

const NAME = "web.spread.example";

let folder: string;
let port: number;
let to: number;
let portico: Portico;
const servers = new Map<string, http.Server>();

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  to = 0;
  for (const address of ["127.0.0.2", "127.0.0.3", "127.0.0.4"]) await serve(address);
});

afterEach(async () => {
  killAll();
  for (const server of servers.values()) server.closeAllConnections();
  for (const server of servers.values()) server.close();
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

/** Responds with its own address. */
async function serve(address: string): Promise<void> {
  const server = http.createServer((request, response) => {
    response.end(request.url === "/host" ? request.headers.host : address);
  });
  server.listen(to, address);
  await once(server, "listening");
  to = (server.address() as AddressInfo).port;
  servers.set(address, server);
}

/** What the proxy finds: it has an /etc/hosts of its own. */
function resolves(...addresses: readonly string[]): void {
  const lines = addresses.map((address) => `${address} ${NAME}\n`);
  writeFileSync(join(folder, "hosts"), `127.0.0.1 localhost\n${lines.join("")}`);
}

const ownHosts = (): string =>
  `exec unshare --mount sh -c 'mount --bind ${join(folder, "hosts")} /etc/hosts; exec "$0" "$@"' "$0" "$@"`;

const url = (address: string): string => `http://${address}:${to}`;

function config(more: Partial<UpstreamInput> = {}): ProxyConfigInput {
  const web = { name: "web", url: url(NAME), spread: true, slowStartMs: 0, ...more };
  return oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [loopback("http", port)],
    upstreams: [web],
    routes: [{ name: "web", path: "/", match: "prefix", action: { type: "proxy", upstream: "web" } }],
  });
}

const start = async (more?: Partial<UpstreamInput>): Promise<void> =>
  void (portico = await Portico.start(config(more), {
    env: { RUNTIME_DIRECTORY: folder },
    before: ownHosts(),
  }));

async function cli(...args: string[]): Promise<string> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const code = await run([...args, "--control", join(folder, "control.sock")], { out: add, err: add });
  return `${code} ${text}`;
}

const ask = (fields = "", path = "/") =>
  exchange(port, `GET ${path} HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`);

/** Who responds to requests, one each on a connection of its own: either worker gets some. */
async function responders(fields = ""): Promise<string> {
  const responses: string[] = [];
  for (let i = 0; i < 12; i++) {
    const { status, body } = await ask(fields);
    responses.push(status === 200 ? body : String(status));
  }
  return [...new Set(responses)].toSorted().join();
}

testWith("root", "unshare")("addresses come and go, with their sessions, drains and checks", async () => {
  resolves("127.0.0.2", "127.0.0.3");
  await start({ sticky: { cookie: "bound" }, health: { tcp: true, intervalMs: 100, fall: 2, rise: 2 } });
  expect(await responders()).toBe("127.0.0.2,127.0.0.3");
  const log = (): string => readFileSync(join(folder, "error.log"), "utf8");
  const bound = await ask();
  const cookie = `Cookie: ${/set-cookie: (bound=[^;]+)/i.exec(bound.head)![1]!}\r\n`;
  expect(await responders(cookie)).toBe(bound.body);

  resolves("127.0.0.2", "127.0.0.3", "127.0.0.4");
  await eventually(async () => (await responders()) === "127.0.0.2,127.0.0.3,127.0.0.4", "for one more");
  expect(await responders(cookie)).toBe(bound.body);
  const changed = `the servers of ${url(NAME)} are now ${url("127.0.0.2")}, `;
  await eventually(() => log().includes(changed), "for it to be logged");

  expect(await cli("upstreams", "drain", "web", url("127.0.0.2"))).toMatch(/^0 /);
  expect(await responders()).toBe("127.0.0.3,127.0.0.4");
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await responders()).toBe("127.0.0.3,127.0.0.4");
  expect(await cli("upstreams")).toMatch(new RegExp(`^web +${url("127.0.0.2")} +drained +0$`, "m"));

  servers.get("127.0.0.3")!.close();
  await eventually(() => log().includes(`${url("127.0.0.3")} is down, by its checks`), "for its check");
  expect(await responders()).toBe("127.0.0.4");

  resolves("127.0.0.2");
  await eventually(() => log().includes(`are now ${url("127.0.0.2")}\n`), "for the others to go");
  expect(await responders()).toBe("503");
  expect(await cli("upstreams", "undrain", "web", url("127.0.0.2"))).toMatch(/^0 /);
  expect(await responders()).toBe("127.0.0.2");
  expect(await cli("upstreams", "drain", "web", url("127.0.0.4"))).toContain(`allowed:  ${url("127.0.0.2")}`);
});

testWith("root", "unshare")(
  "a lookup that fails changes nothing; before the first, the name is one server",
  async () => {
    resolves();
    await start();
    expect(await responders()).toBe("502");
    expect(await cli("upstreams")).toContain(url(NAME));
    resolves("127.0.0.2");
    await eventually(
      async () => (await cli("upstreams")).includes(url("127.0.0.2")),
      "for the first address",
    );
    expect(await responders()).toBe("127.0.0.2");
    resolves();
    const log = (): string => readFileSync(join(folder, "error.log"), "utf8");
    await eventually(
      () => log().includes(`the name in ${url(NAME)} was not found`),
      "for the lookup to fail",
    );
    expect(await responders()).toBe("127.0.0.2");
    // Alone, it is not left out: what it does is the truth.
    servers.get("127.0.0.2")!.close();
    for (let i = 0; i < 5; i++) expect((await ask()).status).toBe(502);
    expect(log()).not.toContain("is left out");
    expect(portico.ended).toBe(false);
  },
);
