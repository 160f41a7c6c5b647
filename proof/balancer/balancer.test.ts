import { type ChildProcess, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { everywhere, logsIn, loopback, oneServer, writeCertificate } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { Accepted } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Real load balancers in front (haproxy), and what nginx does with the header that they send. */

/** haproxy connects from here, and the client to haproxy from there. */
const BALANCER = "127.0.0.2";
const CLIENT = "127.0.0.5";
const VARIANTS = {
  "version 1": "send-proxy",
  "version 2": "send-proxy-v2",
  "version 2 with everything":
    "send-proxy-v2-ssl-cn proxy-v2-options crc32c,unique-id,authority,ssl,cert-cn,ssl-cipher,cert-key,cert-sig",
} as const;
type Variant = keyof typeof VARIANTS;
const ALL = Object.keys(VARIANTS) as Variant[];

let folder: string;
let tlsFiles: ReturnType<typeof writeCertificate>;
let portico: Portico;
let upstream: http.Server;
let own: { readonly http: number; readonly https: number };
/** haproxy's ports, by variant. */
let front: Record<Variant, { readonly http: number; readonly https: number }>;
const children: ChildProcess[] = [];
const at = (name: string): string => join(folder, name);

beforeAll(async () => {
  folder = openFolder();
  const free = await freePorts(2 + 2 * ALL.length);
  own = { http: free[0]!, https: free[1]! };
  front = Object.fromEntries(
    ALL.map((variant, i) => [variant, { http: free[2 + 2 * i]!, https: free[3 + 2 * i]! }]),
  ) as typeof front;
  tlsFiles = writeCertificate(folder, await issue({ type: "ec", names: ["one.example"] }));
  upstream = http.createServer((request, response) => {
    const hash = createHash("sha256");
    request.on("data", (chunk: Buffer) => hash.update(chunk));
    request.on("end", () => {
      response.end(`for ${request.headers["x-forwarded-for"] as string}, body ${hash.digest("hex")}`);
    });
  });
  upstream.listen(0, "127.0.0.1");
  await once(upstream, "listening");
  portico = await Portico.start(config());
  writeFileSync(at("haproxy.cfg"), haproxyConfig());
  start("haproxy", ["-db", "-f", at("haproxy.cfg")]);
  for (const { http: plain, https } of Object.values(front)) {
    await listening(plain);
    await listening(https);
  }
});

afterAll(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
  }
  await portico.stop();
  upstream.closeAllConnections();
  upstream.close();
});

function config(): ProxyConfigInput {
  const proxyProtocol = { from: [BALANCER] };
  const { port } = upstream.address() as net.AddressInfo;
  return oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [
      { ...loopback("http", own.http), proxyProtocol },
      { ...loopback("https", own.https, { ...tlsFiles, policy: "mozilla-modern" }), proxyProtocol },
    ],
    upstreams: [{ name: "echo", url: `http://127.0.0.1:${port}` }],
    routes: [everywhere({ type: "proxy", upstream: "echo" })],
  });
}

/** Every variant before both listeners, with checks by TCP alone, and one with checks by HTTP. */
function haproxyConfig(): string {
  const source = `source ${BALANCER}`;
  const sections = ALL.flatMap((variant, i) =>
    (["http", "https"] as const).map((name) => {
      const checks = name === "http" && i === 1 ? "check check-send-proxy" : "check";
      return `listen ${name}${i}
  bind 127.0.0.1:${front[variant][name]}
  ${name === "http" && i === 1 ? "option httpchk GET /check" : ""}
  unique-id-format %[uuid()]
  server portico 127.0.0.1:${own[name]} ${source} ${VARIANTS[variant]} ${checks}
`;
    }),
  );
  return `global
  maxconn 200
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  # On a busy machine a response may take longer than 100 ms, and who asks for a server that is down is cut off.
  timeout check 10s
  default-server inter 100 fall 50
${sections.join("\n")}`;
}

function start(program: string, args: readonly string[]): void {
  const child = spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] });
  children.push(child);
}

async function listening(port: number): Promise<void> {
  const open = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () => resolve(true));
      socket.on("error", () => resolve(false)).on("connect", () => socket.destroy());
    });
  await eventually(open, `something to listen on ${port}`);
}

async function connected(port: number, localAddress = CLIENT): Promise<net.Socket> {
  const socket = net.connect({ host: "127.0.0.1", port, localAddress });
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  return socket;
}

const EMPTY = createHash("sha256").digest("hex");
const expected = `for ${CLIENT}, body ${EMPTY}`;

describe.each(ALL)("haproxy sends %s", (variant) => {
  test("over HTTP/1.1, again and again on one connection", async () => {
    const peer = new Accepted(await connected(front[variant].http));
    for (let i = 1; i < 4; i++) {
      peer.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
      await peer.until(({ received }) => received.split(expected).length === i + 1);
    }
    peer.socket.destroy();
  });

  test("over HTTP/2 and TLS", async () => {
    const socket = await connected(front[variant].https);
    const createConnection = () =>
      tls.connect({ socket, servername: "one.example", rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    const session = http2.connect("https://one.example", { createConnection });
    const responses = await Promise.all(
      Array.from({ length: 5 }, async () =>
        (await session.request({}).setEncoding("utf8").toArray()).join(""),
      ),
    );
    expect(new Set(responses)).toEqual(new Set([expected]));
    session.destroy();
  });

  test("before an upload", async () => {
    const body = randomBytes(5_000_000);
    const peer = new Accepted(await connected(front[variant].http));
    peer.send(`PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`).send(body);
    await peer.receives(`for ${CLIENT}, body ${createHash("sha256").update(body).digest("hex")}`);
    peer.socket.destroy();
  });
});

test("its checks pass and are not errors; those by HTTP come from itself", async () => {
  const log = (): string => readFileSync(at("access.log"), "utf8");
  await eventually(() => log().split("/check").length > 3, "checks by HTTP", { seen: log });
  const lines = log().trim().split("\n");
  expect(lines.filter((line) => line.includes("/check") && !line.startsWith(`${BALANCER} `))).toEqual([]);
  expect(lines.filter((line) => !line.includes("/check") && !line.startsWith(`${CLIENT} `))).toEqual([]);
  expect(readFileSync(at("error.log"), "utf8")).not.toMatch(/PROXY|TLS/);
});

describe("nginx, which decisions 4.10 differs from", () => {
  const HEADER = "PROXY TCP4 192.0.2.1 198.51.100.2 55555 443\r\n";
  const REQUEST = "GET / HTTP/1.0\r\n\r\n";
  let port: number;

  beforeAll(async () => {
    [port] = (await freePorts(1)) as [number];
    chmodSync(folder, 0o777);
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (n) => `${n}_temp_path ${at(n)};`,
    );
    writeFileSync(
      at("nginx.conf"),
      `daemon off; worker_processes 1; pid ${at("nginx.pid")}; error_log ${at("nginx.log")} info;
events {}
http {
  access_log off; ${temporary.join(" ")}
  server {
    listen 127.0.0.1:${port} proxy_protocol;
    set_real_ip_from ${BALANCER};
    real_ip_header proxy_protocol;
    location / { return 200 "client $remote_addr, header $proxy_protocol_addr."; }
  }
}
`,
    );
    start("nginx", ["-c", at("nginx.conf"), "-e", at("nginx.log")]);
    await eventually(() => existsSync(at("nginx.pid")), "nginx to start");
    await listening(port);
  });

  async function response(from: string, ...pieces: readonly string[]): Promise<string> {
    const peer = new Accepted(await connected(port, from));
    for (const piece of pieces) {
      peer.send(piece);
      await sleep(50);
    }
    await peer.until(({ closed, ended }) => closed || ended);
    return peer.received.slice(peer.received.indexOf("client "));
  }

  test("requires a header from everyone, and reads it from everyone", async () => {
    expect(await response(BALANCER, HEADER + REQUEST)).toBe("client 192.0.2.1, header 192.0.2.1.");
    expect(await response(CLIENT, HEADER + REQUEST)).toBe(`client ${CLIENT}, header 192.0.2.1.`);
    expect(await response(CLIENT, REQUEST)).toBe("");
  });

  test("closes a connection whose header comes in pieces, and reports checks of the port", async () => {
    expect(await response(BALANCER, HEADER.slice(0, 20), HEADER.slice(20) + REQUEST)).toBe("");
    (await connected(port, BALANCER)).end();
    const log = (): string => readFileSync(at("nginx.log"), "utf8");
    const reported = `client closed connection while reading PROXY protocol, client: ${BALANCER}`;
    await eventually(() => log().includes(reported), "nginx to report it", { seen: log });
  });
});
