import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { run } from "../../src/cli/program.js";
import type { ProxyConfigInput, UpstreamInput } from "../../src/model/index.js";
import { KeepAliveClient } from "../../testkit/keepAliveClient.js";
import { logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { type Accepted, exchange, RawUpstream } from "../../testkit/peers.js";
import {
  alive,
  installedRuntime,
  killAll,
  openFolder,
  Portico,
  processes,
  SELDOM,
} from "../../testkit/portico.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** `portico upstreams` and what it orders, with master and workers as processes. */

let folder: string;
let port: number;
let servers: RawUpstream[];
/** Statuses of the servers' responses to checks. */
let health: Record<string, number>;
let portico: Portico;

beforeEach(async () => {
  folder = openFolder();
  port = await freePort();
  health = {};
  servers = await Promise.all(["a", "b"].map((text) => new RawUpstream(serving(text)).listen()));
});

afterEach(async () => {
  killAll();
  await Promise.all(servers.map((server) => server.close()));
  await eventually(() => processes("master").length === 0, "for the processes to go", SELDOM);
});

/** Requests for /held get no response; those for /fatal end their connection. */
const serving =
  (text: string) =>
  (peer: Accepted): void =>
    void peer.socket.on("data", (head) => {
      if (head.toString().includes(" /fatal ")) peer.socket.destroy();
      else if (head.toString().includes(" /health ")) peer.send(`HTTP/1.1 ${health[text] ?? 200} A\r\n\r\n`);
      else if (!head.toString().includes(" /held "))
        peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n${text}`);
    });

const url = (i: number): string => `http://127.0.0.1:${servers[i]!.port}`;

function config(more: Partial<UpstreamInput> = {}): ProxyConfigInput {
  const several = servers.map((_, i) => ({ url: url(i) }));
  return oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [loopback("http", port)],
    upstreams: [
      { name: "web", servers: several, idleConnectionsMax: 0, slowStartMs: 0, ...more },
      { name: "one", url: url(0) },
    ],
    routes: [{ name: "web", path: "/", match: "prefix", action: { type: "proxy", upstream: "web" } }],
  });
}

const start = async (runtime?: string, more?: Partial<UpstreamInput>): Promise<void> => {
  const env = { RUNTIME_DIRECTORY: folder };
  portico = await Portico.start(config(more), { env, runtime });
};

async function cli(...args: string[]): Promise<string> {
  let text = "";
  const add = (more: string): void => void (text += more);
  const code = await run([...args, "--control", join(folder, "control.sock")], { out: add, err: add });
  return `${code} ${text}`;
}

/** What `check --live` says of the servers. */
async function live(): Promise<string> {
  const said = await cli("check", "--live", "--json", portico.configFile);
  const { upstreamServers } = JSON.parse(said.slice(2)) as {
    upstreamServers: { pass: boolean; seen: string }[];
  };
  const rows = upstreamServers.map(({ pass, seen }) => `${pass ? "PASS" : "FAIL"}: ${seen}`);
  return `${said[0]!} ${rows.join("; ")}`;
}

const ask = (fields = "") =>
  exchange(port, `GET / HTTP/1.1\r\nHost: a\r\n${fields}Connection: close\r\n\r\n`);

/** Who responds to requests, one each on a connection of its own: either worker gets some. */
async function responders(fields = ""): Promise<string> {
  const responses: string[] = [];
  for (let i = 0; i < 12; i++) {
    const { status, body } = await ask(fields);
    responses.push(status === 200 ? body : String(status));
  }
  return [...new Set(responses)].toSorted().join();
}

test("a drained server keeps what it has and gets nothing new, over a worker's death, a reload and an upgrade", async () => {
  await start(await installedRuntime());
  const held = await KeepAliveClient.connect(port);
  held.send("/held");
  await eventually(async () => /up +1$/m.test(await cli("upstreams")), "for the request");
  const at = new RegExp(`${url(0)} +up +1$`, "m").test(await cli("upstreams")) ? 0 : 1;
  const other = at === 0 ? "b" : "a";
  const said = `0 upstream "web": its server ${url(at)} is drained: it gets no new request, and has 1 in progress\n`;
  expect(await cli("upstreams", "drain", "web", url(at))).toBe(said);
  expect(await responders()).toBe(other);
  const listed = JSON.parse((await cli("upstreams", "--json")).slice(2)) as unknown;
  const server = (i: number) => ({ url: url(i), backup: false, drained: i === at, outIn: 0, ignoredIn: 0 });
  expect(listed).toMatchObject({ ok: true, upstreams: [{ name: "web", servers: [server(0), server(1)] }] });
  held.socket.destroy();

  const workers = portico.workers();
  for (const pid of workers) process.kill(pid, "SIGKILL");
  await eventually(() => portico.workers().filter((pid) => !workers.includes(pid)).length === 2);
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await responders()).toBe(other);
  const first = portico.pid;
  expect(await cli("upgrade")).toMatch(/^0 /);
  await eventually(() => !alive(first), "for the old master to go");
  expect(await responders()).toBe(other);
  expect(await cli("upstreams")).toMatch(new RegExp(`^web +${url(at)} +drained +0$`, "m"));
  expect(await cli("upstreams", "undrain", "web", url(at))).toMatch(/^0 .* gets requests again\n$/);
  expect(await responders()).toBe("a,b");
});

interface Shown {
  readonly overview: {
    readonly upstreams: { readonly name: string; readonly servers: { readonly state: string }[] }[];
  };
}

test("checks of the only server watch it and take nothing out; a server that nobody asked is not up", async () => {
  const only = {
    servers: undefined,
    url: url(0),
    health: { path: "/health", intervalMs: 100, fall: 1, rise: 1 },
  };
  await start(undefined, only);
  const states = async (): Promise<string> => {
    const { overview } = JSON.parse((await cli("status", "--json")).slice(2)) as Shown;
    return overview.upstreams.map(({ name, servers: all }) => `${name}: ${all[0]!.state}`).join();
  };
  await eventually(async () => (await states()) === "web: up,one: unasked", "for the first check", SELDOM);
  health = { a: 500 };
  await eventually(
    async () => (await states()) === "web: down,one: unasked",
    "for a check that fails",
    SELDOM,
  );
  expect(await responders()).toBe("a");
  // On a busy machine, a single check may get no response in time.
  const shown = async (command: string, text: RegExp): Promise<void> =>
    eventually(async () => text.test(await cli(command)), `for ${text.source}`, SELDOM);
  await shown("status", /error: Upstream web: its server http:\S+ is down: status 500/);
  await shown("upstreams", /^web +\S+ +down +0 +status 500$/m);
  expect(readFileSync(join(folder, "error.log"), "utf8")).toMatch(
    /its server http:\S+ is down, by its checks: status 500/,
  );
  expect(await cli("upstreams", "drain", "web", url(0))).toMatch(/^1 [^]*control\.unknown-server/);
  health = {};
  await eventually(
    async () => (await states()) === "web: up,one: unasked",
    "for a check that passes",
    SELDOM,
  );
  await servers[0]!.close();
  await eventually(async () => (await responders()) === "502", "for requests that fail", SELDOM);
  await eventually(async () => (await states()).startsWith("web: down"), "for a check that fails", SELDOM);
});

test("with all of them drained there is 503; a server that leaves the config is forgotten; unknown ones are named", async () => {
  await start();
  await cli("upstreams", "drain", "web", url(0));
  expect(await cli("upstreams", "drain", "web", url(1))).toContain(
    "; no server is left, so requests get 503\n",
  );
  expect(await responders()).toBe("503");
  const { upstreams, ...rest } = config();
  portico.rewrite({ ...rest, upstreams: [{ name: "web", url: url(0) }, upstreams![1]!] });
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await cli("upstreams")).toBe("0 no upstream has several servers or health checks\n");
  expect(await responders()).toBe("a");
  portico.rewrite(config());
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await responders()).toBe("a,b");
  const wrong = await cli("upstreams", "drain", "one", url(0));
  expect(wrong).toMatch(/^1 NAME: .*\[control\.unknown-server\]\n +received: "one"\n +allowed: +web\n/);
  expect(await cli("upstreams", "undrain", "web", "http://127.0.0.1:1")).toContain(`${url(0)}, ${url(1)}`);
});

test("sessions stay with their servers over a worker's death, a reload, an upgrade and a crash", async () => {
  await start(await installedRuntime(), { sticky: { cookie: "bound" } });
  const bound = new Map<string, string>();
  while (bound.size < 2) {
    const { headers, body } = await ask();
    bound.set(body, `Cookie: ${headers["set-cookie"]!.split(";")[0]}\r\n`);
  }
  const stay = async (): Promise<void> => {
    for (const [server, cookie] of bound) expect(await responders(cookie)).toBe(server);
  };
  await stay();
  const workers = portico.workers();
  for (const pid of workers) process.kill(pid, "SIGKILL");
  await eventually(() => portico.workers().filter((pid) => !workers.includes(pid)).length === 2);
  await stay();
  expect(await cli("reload")).toMatch(/^0 /);
  await stay();
  const first = portico.pid;
  expect(await cli("upgrade")).toMatch(/^0 /);
  await eventually(() => !alive(first), "for the old master to go");
  await stay();
  for (const pid of [...processes("master"), ...processes("worker")]) process.kill(pid, "SIGKILL");
  await eventually(
    () => processes("master").length + processes("worker").length === 0,
    "for all to go",
    SELDOM,
  );
  await start(undefined, { sticky: { cookie: "bound" } });
  await stay();
});

test("a server that requests found to fail is out, in the worker that saw it", async () => {
  await start();
  await servers[0]!.close();
  // The check's own request may have been the first to meet it.
  expect(await live()).toMatch(
    /^1 FAIL: (?:a connection from here failed|left out by 1 worker: connect\(\) failed).*ECONNREFUSED.*; PASS: up, /,
  );
  expect(await responders()).toBe("b");
  const met = String.raw`connect\(\) failed \(111: ECONNREFUSED\) while connecting to upstream`;
  const listed = await cli("upstreams");
  expect(listed).toMatch(new RegExp(`^web +${url(0)} +out in [12] workers? +0 +${met}$`, "m"));
  expect(listed).toMatch(/IN PROGRESS +WHY$/m);
  expect(await live()).toMatch(new RegExp(`^1 FAIL: left out by [12] workers?: ${met}; PASS: up, `));
  expect(await cli("upstreams", "drain", "web", url(0))).toMatch(/^0 /);
  expect(await live()).toMatch(
    /^0 PASS: drained by command, with \d in progress; PASS: up, with \d in progress$/,
  );
  servers.shift();
});

test("a server whose checks fail is down in all workers, over an upgrade too, until they succeed", async () => {
  await start(await installedRuntime(), { health: { path: "/health", intervalMs: 500, fall: 2, rise: 2 } });
  const log = (): string => readFileSync(join(folder, "error.log"), "utf8");
  const down = `upstream "web": its server ${url(0)} is down, by its checks: `;
  health["a"] = 500;
  await eventually(() => log().includes(down), "for it to be down", { seen: log });
  await eventually(async () => (await responders()) === "b", "for the workers to know");
  // On a busy machine a check may also have got no response in time.
  const why = "(?:status 500|no response within 500 ms)";
  expect(await cli("upstreams")).toMatch(new RegExp(`^web +${url(0)} +down +0 +${why}$`, "m"));
  const live = await cli("check", "--live", portico.configFile);
  expect(live).toMatch(
    new RegExp(
      `FAIL  upstream web: server ${url(0)} \\| expected it gets requests \\| seen down by its checks: ${why}\n`,
    ),
  );
  const first = portico.pid;
  expect(await cli("upgrade")).toMatch(/^0 /);
  await eventually(() => !alive(first), "for the old master to go");
  expect(await responders()).toBe("b");
  expect(log().split(down)).toHaveLength(2);
  health = {};
  await eventually(() => log().includes(`${url(0)} is up again, by its checks`), "for it to be up");
  await eventually(async () => (await responders()) === "a,b", "for the workers to know");
  health["b"] = 500;
  await eventually(async () => (await responders()) === "a", "for the other to be down");
  portico.rewrite(config());
  expect(await cli("reload")).toMatch(/^0 /);
  expect(await responders()).toBe("a,b");
});

test("requests that no server responds to leave none out while checks succeed, and not all without checks", async () => {
  const fatal = async (): Promise<void> => {
    const lost = "POST /fatal HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    for (let i = 0; i < 20; i++) expect((await exchange(port, lost)).status).toBe(502);
  };
  await start(undefined, { health: { path: "/health", intervalMs: 1_000 } });
  const checked = (): boolean => servers.every(({ received }) => received.split(" /health ").length > 2);
  await eventually(checked, "for a check of each server");
  await fatal();
  expect(await cli("upstreams")).toMatch(new RegExp(`${url(0)} +up +0\nweb +${url(1)} +up +0\n$`));
  expect(await responders()).toBe("a,b");
  portico.rewrite(config());
  expect(await cli("reload")).toMatch(/^0 /);
  // A worker that has had few of these requests still leaves one server out.
  let [listed, seen] = ["", ""];
  const allFail = async (): Promise<boolean> => {
    await fatal();
    listed = await cli("upstreams");
    return / failing in /.test(listed) && !/ out in /.test(listed);
  };
  await eventually(allFail, "for no worker to leave out a server", { seen: () => listed });
  const why = "upstream (?:prematurely )?closed connection.*";
  expect(await cli("upstreams")).toMatch(new RegExp(`${url(0)} +failing in [12] workers? +0 +${why}$`, "m"));
  const ignored =
    /^0 PASS: up in [12] workers? only because requests failed at all servers: upstream .*; PASS: up in /;
  // A response to a request of the check itself brings one server back, and so leaves the other one out.
  const isIgnored = async (): Promise<boolean> => {
    await fatal();
    seen = await live();
    return ignored.test(seen);
  };
  await eventually(isIgnored, "for the check", { seen: () => seen });
  expect(await responders()).not.toMatch(/5\d\d/);
});

test("after a pause longer than the idle time, no request goes to a connection that the upstream closed in it", async () => {
  await start(undefined, { servers: [{ url: url(0) }], idleConnectionsMax: 4, idleTimeoutMs: 300 });
  const [worker, other] = portico.workers();
  // The client is the first one's.
  process.kill(other!, "SIGSTOP");
  try {
    const client = await KeepAliveClient.connect(port);
    for (let pauses = 0; pauses < 5; pauses++) {
      await client.ask();
      const kept = servers[0]!.connections.at(-1)!;
      process.kill(worker!, "SIGSTOP");
      client.socket.write("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\na");
      kept.socket.destroy();
      await sleep(600);
      process.kill(worker!, "SIGCONT");
      expect((await client.response()).status).toBe(200);
    }
    client.socket.destroy();
  } finally {
    process.kill(other!, "SIGCONT");
  }
});
