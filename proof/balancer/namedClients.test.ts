import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import * as net from "node:net";
import { join } from "node:path";
import type { ProxyConfigInput, UpstreamInput } from "../../src/model/index.js";
import { issue } from "../../testkit/certificates.js";
import { logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { Accepted } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Debian's nginx and haproxy as upstreams that take the client from the header which Portico sends (`proxyProtocol`). */

const CLIENT = "127.0.0.5";
/** A trusted proxy, which names its clients. */
const PROXY = "127.0.0.9";
const VERSIONS = ["v1", "v2"] as const;

let folder: string;
let portico: Portico;
/** Of Portico over IPv4 and IPv6, of nginx over both, of haproxy over both and over TLS. */
let ports: readonly number[];
const children: ChildProcess[] = [];
const at = (name: string): string => join(folder, name);
const upstreams = (): Readonly<Record<string, string>> => ({
  "nginx over IPv4": `http://127.0.0.1:${ports[2]}`,
  "nginx over IPv6": `http://[::1]:${ports[3]}`,
  "nginx at a Unix socket": `unix:${at("nginx.sock")}`,
  "haproxy over IPv4": `http://127.0.0.1:${ports[4]}`,
  "haproxy over IPv6": `http://[::1]:${ports[5]}`,
  "haproxy at a Unix socket": `unix:${at("haproxy.sock")}`,
  "haproxy over TLS": `https://127.0.0.1:${ports[6]}`,
});
const UPSTREAMS = [
  "nginx over IPv4",
  "nginx over IPv6",
  "nginx at a Unix socket",
  "haproxy over IPv4",
  "haproxy over IPv6",
  "haproxy at a Unix socket",
  "haproxy over TLS",
];

beforeAll(async () => {
  folder = openFolder();
  chmodSync(folder, 0o777);
  ports = await freePorts(7);
  const { key, cert } = await issue({ type: "ec", names: ["one.example"] });
  writeFileSync(at("both.pem"), `${cert}${key}`);
  writeFileSync(at("nginx.conf"), nginxConfig());
  writeFileSync(at("haproxy.cfg"), haproxyConfig());
  start("nginx", ["-c", at("nginx.conf"), "-e", at("nginx.log")]);
  start("haproxy", ["-db", "-f", at("haproxy.cfg")]);
  for (const file of ["nginx.pid", "nginx.sock", "haproxy.sock"])
    await eventually(() => existsSync(at(file)), `${file} to be there`);
  portico = await Portico.start(config());
});

afterAll(async () => {
  for (const child of children) {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
  }
  await portico.stop();
});

const upstreamName = (upstream: string, version: string): string =>
  `${upstream} ${version}`.toLowerCase().replaceAll(" ", "-");

function config(): ProxyConfigInput {
  const each = VERSIONS.flatMap((proxyProtocol) =>
    UPSTREAMS.map((upstream): UpstreamInput => {
      const url = upstreams()[upstream]!;
      const tls = url.startsWith("https") ? { tls: { verify: false } } : {};
      return { name: upstreamName(upstream, proxyProtocol), url, proxyProtocol, ...tls };
    }),
  );
  const checked = VERSIONS.map((proxyProtocol): UpstreamInput => {
    const servers = UPSTREAMS.map((upstream) => ({ url: upstreams()[upstream]! }));
    const health = { path: "/check", intervalMs: 300, fall: 2 };
    return { name: `checked-${proxyProtocol}`, servers, health, proxyProtocol, tls: { verify: false } };
  });
  const all = [...each, ...checked];
  return oneServer({
    workers: 2,
    trustedProxies: [PROXY],
    logs: logsIn(folder),
    listeners: [loopback("v4", ports[0]!), { ...loopback("v6", ports[1]!), address: "::1" }],
    upstreams: all,
    routes: all.map(({ name }) => ({ name, path: `/${name}`, action: { type: "proxy", upstream: name } })),
  });
}

/** What it says: client and its port, and where the client connected to; and which request of its connection it is. */
function nginxConfig(): string {
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
    (name) => `${name}_temp_path ${at(`${name}-temp`)};`,
  );
  const listens = [`127.0.0.1:${ports[2]}`, `[::1]:${ports[3]}`, `unix:${at("nginx.sock")}`];
  const message =
    "$proxy_protocol_addr $proxy_protocol_port $proxy_protocol_server_addr $proxy_protocol_server_port";
  return `daemon off; worker_processes 1; pid ${at("nginx.pid")}; error_log ${at("nginx.log")} info;
events {}
http {
  access_log off; client_max_body_size 0; ${temporary.join(" ")}
  server {
    ${listens.map((where) => `listen ${where} proxy_protocol;`).join(" ")}
    location / { return 200 "${message}, request $connection_requests"; }
  }
}
`;
}

function haproxyConfig(): string {
  const binds = [
    `127.0.0.1:${ports[4]}`,
    `[::1]:${ports[5]}`,
    `unix@${at("haproxy.sock")} mode 777`,
    `127.0.0.1:${ports[6]} ssl crt ${at("both.pem")}`,
  ];
  return `global
  maxconn 200
defaults
  mode http
  timeout client 30s
  timeout http-request 30s
frontend all
  ${binds.map((where) => `bind ${where} accept-proxy`).join("\n  ")}
  http-request return status 200 content-type text/plain lf-string "%[src] %[src_port] %[dst] %[dst_port], request 1"
`;
}

function start(program: string, args: readonly string[]): void {
  children.push(spawn(program, args, { stdio: ["ignore", "ignore", "inherit"] }));
}

async function connected(port: number, localAddress: string): Promise<net.Socket> {
  const socket = net.connect({ host: localAddress === "::1" ? "::1" : "127.0.0.1", port, localAddress });
  socket.on("error", () => socket.destroy());
  await once(socket, "connect");
  return socket;
}

describe.each(VERSIONS)("%s", (version) => {
  test.each(UPSTREAMS)("%s learns who the client is, request by request", async (upstream) => {
    const name = upstreamName(upstream, version);
    const socket = await connected(ports[0]!, CLIENT);
    const peer = new Accepted(socket);
    const said = `${CLIENT} ${socket.localPort} 127.0.0.1 ${ports[0]}, request 1`;
    for (let i = 1; i < 4; i++) {
      peer.send(`GET /${name} HTTP/1.1\r\nHost: a\r\n\r\n`);
      await peer.until(({ received }) => received.split(said).length === i + 1);
    }
    const body = randomBytes(300_000);
    peer.send(`PUT /${name} HTTP/1.1\r\nHost: a\r\nContent-Length: ${body.length}\r\n\r\n`).send(body);
    await peer.until(({ received }) => received.split(said).length === 5);
    socket.destroy();

    const other = await connected(ports[1]!, "::1");
    const six = new Accepted(other);
    six.send(`GET /${name} HTTP/1.1\r\nHost: a\r\n\r\n`);
    await six.receives(`::1 ${other.localPort} ::1 ${ports[1]}, request 1`);
    other.destroy();
  });

  test("two clients of one trusted proxy's connection are told apart", async () => {
    const socket = await connected(ports[0]!, PROXY);
    const peer = new Accepted(socket);
    for (const client of ["192.0.2.4", "192.0.2.5"]) {
      peer.send(
        `GET /${upstreamName(UPSTREAMS[0]!, version)} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${client}\r\n\r\n`,
      );
      // nginx and haproxy write port 0 as nothing.
      await peer.receives(`${client}  127.0.0.1 ${ports[0]}, request 1`);
    }
    // One of another family than the listener.
    peer.send(
      `GET /${upstreamName("haproxy over IPv4", version)} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 2001:db8::9\r\n\r\n`,
    );
    await peer.receives(/2001:db8::9 {2}::ffff:127\.0\.0\.1 /);
    socket.destroy();
  });

  test("checks are connections of the proxy's own, and all servers are up", async () => {
    const name = `checked-${version}`;
    const seen = new Set<string>();
    const from = Date.now();
    while (Date.now() - from < 1_500) {
      const socket = await connected(ports[0]!, CLIENT);
      const peer = new Accepted(socket);
      peer.send(`GET /${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      await peer.until(({ closed, ended }) => closed || ended);
      expect(peer.received).toContain(`${CLIENT} `);
      seen.add(peer.received.slice(0, 12));
    }
    expect([...seen]).toEqual(["HTTP/1.1 200"]);
    expect(readFileSync(at("error.log"), "utf8")).not.toMatch(/is down|left out/);
    expect(readFileSync(at("nginx.log"), "utf8")).not.toContain("broken header");
  });
});
