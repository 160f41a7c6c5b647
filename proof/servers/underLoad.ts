import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import * as net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { UpstreamInput } from "../../src/model/index.js";
import { everywhere, loopback, logsIn, oneServer } from "../../testkit/oneServer.js";
import { freePorts } from "../../testkit/ports.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";
import { type Fault, type Report, reportOf } from "./judge.js";
import { Load } from "./load.js";

/** Three servers behind a proxy are killed, hung, slowed, drained and brought back, one after the other, under load. */

export interface Options {
  readonly uploadBytes: number;
  /** How often all of it is done, to another server each time. */
  readonly cycles: number;
}

export const PROXIES = ["portico", "haproxy"] as const;
type ProxyName = (typeof PROXIES)[number];

const SERVERS = 3;
/** A read goes on to another server after it, and so each fault that leaves a server silent takes longer. */
const READ_MS = 1_500;
/** What must not be sent twice waits for a server that hangs. */
const WRITE_MS = 60_000;
/** A check that takes as long has failed: a busy machine must not take servers away that are up. */
const CHECK_MS = 2_000;
const SEEN_MS = 500;

/** A proxy under test. */
interface Proxy {
  readonly port: number;
  drain(server: number, drained: boolean): Promise<void>;
  stop(): Promise<void>;
}

export async function underLoad(name: ProxyName, { uploadBytes, cycles }: Options): Promise<Report> {
  const folder = mkdtempSync(join(tmpdir(), "portico-servers-"));
  chmodSync(folder, 0o755);
  const ports = await freePorts(SERVERS);
  const servers = ports.map((port, i) => new Server(i, port));
  try {
    await Promise.all(servers.map((server) => server.start()));
    const proxy = await { portico: startPortico, haproxy: startHaproxy }[name](folder, ports);
    const load = new Load(proxy.port, uploadBytes);
    const faults: Fault[] = [];
    for (let cycle = 0; cycle < cycles; cycle++)
      await breakAndMend(servers[cycle % SERVERS]!, proxy, (fault) => faults.push(fault));
    const done = await load.stop();
    await proxy.stop();
    const begunAt = new Map<number, Set<number>>();
    for (const { index, begun } of servers)
      for (const id of begun) begunAt.set(id, (begunAt.get(id) ?? new Set()).add(index));
    return reportOf(name, done, faults, begunAt);
  } finally {
    for (const server of servers) server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function breakAndMend(server: Server, proxy: Proxy, note: (fault: Fault) => void): Promise<void> {
  const { index } = server;
  const now = (): number => performance.now();
  await sleep(500);
  const killed = now();
  await server.killed();
  // The proxy, which is busy too, may send something to a connection before its turn to see the end comes.
  note({ server: index, kind: "killed", from: killed, to: now() + SEEN_MS });
  await sleep(1_500);
  await server.start();
  await sleep(1_500);
  const hung = now();
  server.signal("SIGSTOP");
  await sleep(2_500);
  server.signal("SIGCONT");
  // A request without a response in time was with it since before that.
  note({ server: index, kind: "hung", from: hung, to: now() });
  await sleep(1_500);
  server.slow(300);
  await sleep(1_000);
  server.slow(0);
  await proxy.drain(index, true);
  await sleep(1_000);
  await proxy.drain(index, false);
  await sleep(500);
}

class Server {
  /** Ids of requests that it has begun to read. */
  readonly begun = new Set<number>();
  private child: ChildProcess | undefined;

  constructor(
    readonly index: number,
    private readonly port: number,
  ) {}

  async start(): Promise<void> {
    const file = join(__dirname, "server.ts");
    const child = fork(file, [String(this.port)], { execArgv: ["--import", "tsx"] });
    this.child = child;
    await new Promise<void>((ready, failed) => {
      child.on("message", (message: { begun?: number }) => {
        if (message.begun === undefined) ready();
        else this.begun.add(message.begun);
      });
      child.once("exit", (code) => failed(new Error(`server ${this.index} ended with ${code}`)));
    });
  }

  signal(signal: NodeJS.Signals): void {
    this.child?.kill(signal);
  }

  kill(): void {
    this.signal("SIGKILL");
  }

  async killed(): Promise<void> {
    const gone = once(this.child!, "exit");
    this.kill();
    await gone;
  }

  slow(slowMs: number): void {
    this.child?.send({ slowMs });
  }
}

async function startPortico(folder: string, ports: readonly number[]): Promise<Proxy> {
  const [port] = (await freePorts(1)) as [number];
  const urls = ports.map((one) => `http://127.0.0.1:${one}`);
  const upstream = (name: string, readTimeoutMs: number): UpstreamInput => ({
    name,
    servers: urls.map((url) => ({ url })),
    balance: "leastConnections",
    readTimeoutMs,
    slowStartMs: 1_000,
    health: { path: "/health", intervalMs: CHECK_MS, fall: 2, rise: 2 },
  });
  const config = oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [loopback("http", port)],
    upstreams: [upstream("reads", READ_MS), upstream("writes", WRITE_MS)],
    routes: [
      { name: "reads", path: "/read", action: { type: "proxy", upstream: "reads" } },
      everywhere({ type: "proxy", upstream: "writes" }),
    ],
  });
  const file = join(folder, "portico.json");
  writeFileSync(file, JSON.stringify(config));
  const child = spawn(process.execPath, [await sharedBundle(), "serve", file], {
    stdio: ["ignore", "ignore", "pipe"],
    env: { ...process.env, RUNTIME_DIRECTORY: folder },
  });
  let said = "";
  child.stderr.on("data", (text: Buffer) => (said += text.toString()));
  await listening(port, () => said);
  const control = join(folder, "control.sock");
  return {
    port,
    drain: async (server, drained) => {
      const command = drained ? "drain" : "undrain";
      for (const name of ["reads", "writes"]) {
        const outcome = await askMaster(control, { command, name, server: urls[server]! }, 10_000);
        if (!outcome.ok) throw new Error(outcome.problems[0]!.message);
      }
    },
    stop: () => ended(child),
  };
}

/** As near to it as its settings allow: what was without a response goes on to another server if it may be repeated. */
async function startHaproxy(folder: string, ports: readonly number[]): Promise<Proxy> {
  const [port] = (await freePorts(1)) as [number];
  const control = join(folder, "haproxy.sock");
  const servers = ports.map((one, i) => `  server s${i} 127.0.0.1:${one}`).join("\n");
  const backend = (name: string, serverTimeout: number, more: string): string => `backend ${name}
  balance leastconn
  option redispatch 1
  retries 3
  timeout server ${serverTimeout}
${more}  option httpchk GET /health
  default-server check inter ${CHECK_MS} fall 2 rise 2 slowstart 1s observe layer4 error-limit 1 on-error mark-down
${servers}
`;
  const retry = "  retry-on conn-failure empty-response response-timeout\n";
  writeFileSync(
    join(folder, "haproxy.cfg"),
    `global
  stats socket ${control} level admin
defaults
  mode http
  timeout connect 3s
  timeout client 60s
  timeout check ${CHECK_MS}
frontend front
  bind 127.0.0.1:${port}
  use_backend reads if METH_GET
  default_backend writes
${backend("reads", READ_MS, retry)}${backend("writes", WRITE_MS, "")}`,
  );
  const child = spawn("haproxy", ["-db", "-f", join(folder, "haproxy.cfg")], {
    stdio: "ignore",
  });
  await listening(port);
  return {
    port,
    drain: async (server, drained) => {
      for (const backend of ["reads", "writes"]) {
        const socket = net.connect(control);
        socket.end(`set server ${backend}/s${server} state ${drained ? "drain" : "ready"}\n`).resume();
        await once(socket, "close");
      }
    },
    stop: () => ended(child),
  };
}

async function listening(port: number, seen = (): string => ""): Promise<void> {
  const open = (): Promise<boolean> =>
    new Promise((resolve) => {
      const socket = net.connect(port, "127.0.0.1", () => resolve(true));
      socket.on("error", () => resolve(false)).on("connect", () => socket.destroy());
    });
  await eventually(open, `something to listen on ${port}`, { seen });
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "exit");
}
