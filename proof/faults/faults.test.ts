import { execFileSync } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server, type ServerResponse } from "node:http";
import * as net from "node:net";
import { join } from "node:path";
import * as tls from "node:tls";
import { setTimeout as sleep } from "node:timers/promises";
import { FakedClock } from "../../testkit/fakedClock.js";
import { type FrontEnd, type FrontEndOptions, startFrontEnd } from "../../testkit/frontEnd.js";
import { freePort } from "../../testkit/ports.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";

/** What happens around a front end that is not its fault, and what its users see of it. */

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

const folder = (): string => {
  const made = publicFolder("portico-faults-");
  cleanups.push(() => rmSync(made, { recursive: true, force: true }));
  return made;
};

/** A front end whose three daemons are one port. */
async function frontEndOf(upstream: number, options: Partial<FrontEndOptions> = {}): Promise<FrontEnd> {
  const upstreams = { web: upstream, fileServer: upstream, webdav: upstream };
  const frontEnd = await startFrontEnd({ upstreams, ...options });
  cleanups.push(() => frontEnd.stop());
  return frontEnd;
}

async function daemon(body: string, address = "127.0.0.1", port = 0): Promise<Server> {
  const server = createServer((_request, response) => response.end(body)).listen(port, address);
  await once(server, "listening");
  cleanups.push(() => stop(server));
  return server;
}

function stop(server: Server): Promise<unknown> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(resolve));
}

/** Daemons by a name that stands in the hosts file which a test writes. */
const namedUpstreams: FrontEndOptions["change"] = (config) => ({
  ...config,
  upstreams: config.upstreams!.map((u) => ({ ...u, url: u.url?.replace("127.0.0.1", "backend.example") })),
});

const portOf = (server: net.Server): number => (server.address() as net.AddressInfo).port;

interface Response {
  readonly status: number;
  readonly date: string;
  readonly body: string;
}

/** One request on a connection of its own; rejects if the connection ends without a whole response. */
async function get(port: number, path = "/sync/", from = "127.0.0.1"): Promise<Response> {
  const socket = net.connect({ port, host: "127.0.0.1", localAddress: from });
  socket.setTimeout(20_000, () => socket.destroy(new Error("no response")));
  socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n`);
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  const [head = "", body = ""] = text.split("\r\n\r\n");
  const length = /^content-length: (\d+)/im.exec(head)?.[1];
  if (head === "" || (length !== undefined && Number(length) !== body.length)) throw new Error("cut off");
  return { status: Number(head.split(" ")[1]), date: /^Date: (.*)$/m.exec(head)?.[1]?.trim() ?? "", body };
}

const responds = (port: number, status: number, path?: string): Promise<boolean> =>
  get(port, path).then(
    (response) => response.status === status,
    () => false,
  );

const errorLog = (frontEnd: FrontEnd): string => {
  const file = join(frontEnd.logDirectory, "error.log");
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};

const accessLogs = ({ logDirectory }: FrontEnd): string =>
  readdirSync(logDirectory)
    .filter((name) => name.includes("access"))
    .map((name) => readFileSync(join(logDirectory, name), "utf8"))
    .join("");

const occurrences = (text: string, words: string): number => text.split(words).length - 1;

describe("connections", () => {
  test("of one client beyond its limit are closed, reported once, and others are served", async () => {
    const upstream = await daemon("yes");
    const frontEnd = await frontEndOf(portOf(upstream), {
      proxy: { limits: { connectionsPerClientMax: 3 } },
    });
    const { plainPort } = frontEnd;
    const greedy = Array.from({ length: 8 }, () =>
      net.connect({ port: plainPort, host: "127.0.0.1", localAddress: "127.0.0.9" }),
    );
    cleanups.push(() => greedy.forEach((socket) => socket.destroy()));
    for (const socket of greedy) socket.resume().on("error", () => undefined);
    const open = (): number => greedy.filter((socket) => !socket.destroyed && !socket.readableEnded).length;
    await eventually(() => open() === 3, "for five to be closed");
    await expect(get(plainPort, "/sync/", "127.0.0.9")).rejects.toThrow();
    expect(await get(plainPort)).toMatchObject({ status: 200, body: "yes" });
    const words = "limits.connectionsPerClientMax (3) is reached by 127.0.0.9";
    await eventually(() => errorLog(frontEnd).includes(words), "for the warning");
    expect(occurrences(errorLog(frontEnd), words)).toBe(1);
    for (const socket of greedy) socket.destroy();
    await eventually(
      () =>
        get(plainPort, "/sync/", "127.0.0.9").then(
          (a) => a.body === "yes",
          () => false,
        ),
      "for its places to be free",
    );
  });

  test("of trusted proxies are limited only together", async () => {
    const upstream = await daemon("yes");
    const { plainPort } = await frontEndOf(portOf(upstream), {
      proxy: { limits: { connectionsPerClientMax: 1 }, trustedProxies: ["127.0.0.9"] },
    });
    const kept = net.connect({ port: plainPort, host: "127.0.0.1", localAddress: "127.0.0.9" });
    cleanups.push(() => kept.destroy());
    await once(kept, "connect");
    expect(await get(plainPort, "/sync/", "127.0.0.9")).toMatchObject({ status: 200 });
  });

  test("wait while descriptors are exhausted, are accepted when they return, and the log says so", async () => {
    const upstream = await daemon("yes");
    const frontEnd = await frontEndOf(portOf(upstream), { under: ["prlimit", "--nofile=80:80"] });
    const sockets = Array.from({ length: 150 }, () =>
      net.connect(frontEnd.plainPort, "127.0.0.1").on("error", () => undefined),
    );
    cleanups.push(() => sockets.forEach((socket) => socket.destroy()));
    await eventually(() => errorLog(frontEnd).includes("too many open files"), "for the log to say so");
    for (const socket of sockets) socket.destroy();
    await eventually(() => responds(frontEnd.plainPort, 200), "for a response");
    await eventually(() => errorLog(frontEnd).includes("files can be opened again"), "for the all-clear");
    expect(occurrences(errorLog(frontEnd), "too many open files")).toBe(1);
  });
});

describe("an upstream", () => {
  /** How a daemon misbehaves on a connection, and what a client gets. */
  const CASES: readonly [string, (socket: net.Socket) => void, number | "cut off"][] = [
    ["that resets is 502", (socket) => socket.once("data", () => socket.resetAndDestroy()), 502],
    ["that closes at once is 502", (socket) => socket.resume().end(), 502],
    ["that hangs is 504", (socket) => socket.resume(), 504],
    [
      "that dies in the middle cuts the client off",
      (socket) => socket.once("data", () => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")),
      "cut off",
    ],
    [
      "that trickles is waited for",
      (socket) => {
        // All of it takes longer than the time between two reads may: a limit on the whole would end it.
        let left = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        socket.once("data", function trickle() {
          socket.write(left[0]!);
          left = left.slice(1);
          if (left !== "") setTimeout(trickle, 60);
        });
      },
      200,
    ],
  ];

  /** One front end for all of them, whose daemons come and go on one port. */
  let shared: FrontEnd | undefined;
  let port: number;
  afterAll(() => shared?.stop());
  async function shareFrontEnd(): Promise<FrontEnd> {
    if (shared !== undefined) return shared;
    // Listened on often: no connection that another test opens meanwhile may take it.
    port = await freePort();
    const patience = { holdMs: 0, connectTimeoutMs: 2_000, sendTimeoutMs: 2_000, readTimeoutMs: 1_000 };
    const upstreams = { web: port, fileServer: port, webdav: port };
    const change: FrontEndOptions["change"] = (config) => ({
      ...config,
      upstreams: config.upstreams!.map((u) => ({ ...u, ...patience })),
    });
    return (shared = await startFrontEnd({ upstreams, change }));
  }

  test.each(CASES)("%s, and is used again when it works", async (_name, misbehave, expected) => {
    const { plainPort } = await shareFrontEnd();
    const bad = net
      .createServer((socket) => misbehave(socket.on("error", () => undefined)))
      .listen(port, "127.0.0.1");
    await once(bad, "listening");
    if (expected === "cut off") await expect(get(plainPort)).rejects.toThrow("cut off");
    else expect((await get(plainPort)).status).toBe(expected);
    await new Promise((resolve) => bad.close(resolve));
    expect(await responds(plainPort, 502)).toBe(true);
    await daemon("well again", "127.0.0.1", port);
    expect(await get(plainPort)).toMatchObject({ status: 200, body: "well again" });
  });

  test.each(["http", "https"])("that takes no more of an upload: its %s client may leave", async (scheme) => {
    const stuck = net.createServer({ pauseOnConnect: true }, (socket) => socket.on("error", () => undefined));
    stuck.listen(0, "127.0.0.1");
    await once(stuck, "listening");
    const frontEnd = await frontEndOf(portOf(stuck));
    const tcp = net.connect(scheme === "http" ? frontEnd.plainPort : frontEnd.tlsPort, "127.0.0.1");
    const client = scheme === "http" ? tcp : tls.connect({ socket: tcp, rejectUnauthorized: false });
    for (const socket of [tcp, client]) socket.on("error", () => undefined);
    client.write("PUT /synchttp/x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 50000000\r\n\r\n");
    client.write(Buffer.alloc(50_000_000));
    // Until all buffers on the way are full, and nothing is read or written any more.
    await sleep(1_500);
    tcp.resetAndDestroy();
    await eventually(
      () => accessLogs(frontEnd).includes('"PUT /synchttp/x HTTP/1.1" 499 '),
      "for the line of an upload that was given up",
      { seen: () => accessLogs(frontEnd) },
    );
    stuck.close();
  });

  test("with a name of several addresses, of which one responds, is read like any other", async () => {
    const port = await freePort();
    const hosts = join(folder(), "hosts");
    writeFileSync(hosts, "127.0.0.2 backend.example\n127.0.0.3 backend.example\n127.0.0.1 localhost\n");
    await daemon("of the second", "127.0.0.3", port);
    const { plainPort } = await frontEndOf(port, {
      under: ["unshare", "--mount", "sh", "-c", `mount --bind ${hosts} /etc/hosts && exec "$0" "$@"`],
      change: namedUpstreams,
    });
    for (let i = 0; i < 3; i++)
      expect(await get(plainPort)).toMatchObject({ status: 200, body: "of the second" });
  });

  test("with a name is followed when its address changes, although its connections are never idle", async () => {
    const port = await freePort();
    const hosts = join(folder(), "hosts");
    writeFileSync(hosts, "127.0.0.2 backend.example\n127.0.0.1 localhost\n");
    await daemon("old", "127.0.0.2", port);
    await daemon("new", "127.0.0.3", port);
    const { plainPort } = await frontEndOf(port, {
      under: ["unshare", "--mount", "sh", "-c", `mount --bind ${hosts} /etc/hosts && exec "$0" "$@"`],
      change: namedUpstreams,
    });
    expect((await get(plainPort)).body).toBe("old");
    writeFileSync(hosts, "127.0.0.3 backend.example\n127.0.0.1 localhost\n");
    const start = Date.now();
    await eventually(async () => (await get(plainPort)).body === "new", "for the new address", {
      everyMs: 50,
    });
    expect(Date.now() - start).toBeLessThan(15_000);
  });
});

test("a full disk stops the logs and nothing else, is reported once, and lines that waited are written", async () => {
  const upstream = await daemon("yes");
  const mount = folder();
  const logs = join(mount, "logs");
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k,mode=0755", "tmpfs", mount]);
  cleanups.push(() => execFileSync("umount", ["--lazy", mount]));
  mkdirSync(logs);
  const { plainPort, ...rest } = await frontEndOf(portOf(upstream), {
    change: (config) => JSON.parse(JSON.stringify(config).replaceAll(/"[^"]*\/logs\//g, `"${logs}/`)),
  });
  const ballast = join(mount, "ballast");
  execFileSync("sh", ["-c", `dd if=/dev/zero of=${ballast} bs=4k 2>/dev/null || true`]);
  for (let i = 0; i < 60; i++)
    expect((await get(plainPort, `/sync/${"x".repeat(100)}${i}`)).status).toBe(200);
  await eventually(() => /ENOSPC|No space left/.test(rest.stderr()), "for standard error to say so");
  expect(occurrences(rest.stderr(), "web.access.log cannot be written")).toBe(1);
  rmSync(ballast);
  await eventually(
    () => occurrences(readFileSync(join(logs, "web.access.log"), "utf8"), "GET /sync/x") === 60,
    "for every line",
  );
});

test("the wall clock may jump: nothing is cut off, logged or counted for it, and Date follows", async () => {
  const upstream = createServer((request, response) => {
    if (request.url === "/sync/slow") return void response.write("first ");
    request.resume().on("end", () => response.end("yes"));
  }).listen(0, "127.0.0.1");
  await once(upstream, "listening");
  cleanups.push(() => stop(upstream));
  const asked = nextRequest(upstream, "/sync/slow");
  const clock = new FakedClock(folder());
  const frontEnd = await frontEndOf(portOf(upstream), {
    under: clock.under,
    change: (config) =>
      JSON.parse(JSON.stringify(config).replaceAll(/("path":"[^"]*access\.log")/g, '$1,"format":"json"')),
  });
  const { plainPort } = frontEnd;
  const open = (head: string): net.Socket => {
    const socket = net.connect(plainPort, "127.0.0.1");
    cleanups.push(() => socket.destroy());
    socket.write(head);
    return socket;
  };
  const kept = open("");
  const slow = open("GET /sync/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  let downloaded = "";
  slow.on("data", (chunk: Buffer) => (downloaded += chunk.toString()));
  const upload = open("PUT /sync/up HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 7\r\n\r\n");
  const download = await asked;
  await eventually(() => downloaded.includes("first"), "for the first bytes");
  for (const jump of ["+1d", "+365d", "-1d", "-3000d", "+3000d"]) {
    clock.jump(jump);
    const wanted = Date.now() + Number(/^([+-]\d+)/.exec(jump)![1]) * 86_400_000;
    await eventually(
      async () => Math.abs(Date.parse((await get(plainPort)).date) - wanted) < 60_000,
      `for Date to follow ${jump}`,
    );
    kept.write("GET /sync/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    expect(String((await nextEvent(kept, "data"))[0])).toContain("200 OK");
    upload.write("x");
    download.write(jump);
    await eventually(() => downloaded.includes(jump), "for more bytes");
    // Longer than between two looks at the deadlines.
    await sleep(600);
  }
  upload.write("xx");
  expect(String((await nextEvent(upload, "data"))[0])).toContain("200 OK");
  download.end("last");
  await eventually(() => downloaded.endsWith("last\r\n0\r\n\r\n"), "for the last bytes");
  const logged = (): { time: string; request_time_ms: number }[] =>
    accessLogs(frontEnd)
      .split("\n")
      .filter((line) => line.includes('"/sync/'))
      .map((line) => JSON.parse(line));
  await eventually(() => accessLogs(frontEnd).includes("/sync/slow"), "for the log");
  expect(logged().filter(({ request_time_ms: ms }) => ms < 0 || ms > 60_000)).toEqual([]);
  for (const path of ["slow", "up"])
    expect(
      logged().find((line) => JSON.stringify(line).includes(`/sync/${path}"`))!.request_time_ms,
    ).toBeGreaterThan(3_000);
});

/** The response to the first request for a path. */
const nextRequest = (server: Server, path: string): Promise<ServerResponse> =>
  new Promise((resolve) =>
    server.on("request", (request, response) => {
      if (request.url === path) resolve(response);
    }),
  );
