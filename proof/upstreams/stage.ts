import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput, RouteInput, UpstreamInput } from "../../src/model/index.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { freePorts } from "../../testkit/ports.js";
import { childrenOf, descriptorsOf } from "../../testkit/processes.js";
import { eventually } from "../../testkit/waiting.js";
import { requireServers, Server, type ServerName } from "./servers.js";

/** Longer than servers keep connections, so that they are the ones that close. */
const KEPT_LONG_MS = 5_000;

/** Real servers behind one front end: `/NAME/ACTION`, and `/NAME-kept/ACTION` with connections that are kept longer. */
export class Stage {
  private constructor(
    readonly frontEnd: FrontEnd,
    private readonly servers: ReadonlyMap<ServerName, Server>,
    private readonly worker: number,
    private readonly descriptors: Readonly<Record<string, number>>,
  ) {}

  static async start(names: readonly ServerName[]): Promise<Stage> {
    const servers = await Promise.all(names.map((name) => Server.start(name)));
    const [web, fileServer, webdav] = await freePorts(3);
    const frontEnd = await startFrontEnd({
      upstreams: { web: web!, fileServer: fileServer!, webdav: webdav! },
      change: (config) => withServers(config, servers),
    });
    const worker = workerOf(frontEnd);
    const byName = new Map(servers.map((server) => [server.name, server]));
    return new Stage(frontEnd, byName, worker, descriptorKinds(worker));
  }

  get port(): number {
    return this.frontEnd.plainPort;
  }

  server(name: ServerName): Server {
    return this.servers.get(name)!;
  }

  /** Stops the front end's worker for a time, and then waits for what was begun meanwhile. */
  async whileStopped(begin: () => Promise<readonly Promise<unknown>[]>): Promise<void> {
    process.kill(this.worker, "SIGSTOP");
    let begun: readonly Promise<unknown>[] = [];
    try {
      begun = await begin();
    } finally {
      process.kill(this.worker, "SIGCONT");
    }
    await Promise.all(begun);
  }

  /** The server of each connection of the front end to one of these. */
  connectionsTo(names: readonly ServerName[]): ServerName[] {
    const ports = new Map(names.map((name) => [this.server(name).port, name]));
    return connectionsTo(new Set(ports.keys())).map((port) => ports.get(port)!);
  }

  /** What the servers' runs must have left: nothing. To be asked when all clients are gone. */
  async conserved(): Promise<void> {
    let left: unknown;
    const isClean = (): boolean => {
      const connections = this.connectionsTo([...this.servers.keys()]);
      left = { connections, descriptors: descriptorKinds(this.worker) };
      return connections.length === 0 && sameCounts(descriptorKinds(this.worker), this.descriptors);
    };
    await eventually(isClean, "for all to be as before", {
      seen: () => JSON.stringify({ before: this.descriptors, left }),
      ms: KEPT_LONG_MS + 5_000,
      everyMs: 50,
    });
    const worker = workerOf(this.frontEnd);
    expect({ worker, critical: criticalLines(this.frontEnd), stderr: this.frontEnd.stderr() }).toEqual({
      worker: this.worker,
      critical: [],
      stderr: "",
    });
  }

  async stop(): Promise<void> {
    await this.frontEnd.stop();
    await Promise.all([...this.servers.values()].map((server) => server.stop()));
  }
}

/** A stage for the tests of a file. */
export function stageOf(names: readonly ServerName[]): () => Stage {
  requireServers();
  let stage: Stage | undefined;
  beforeAll(async () => {
    stage = await Stage.start(names);
  });
  afterAll(() => stage?.stop());
  return () => stage!;
}

function withServers(config: ProxyConfigInput, servers: readonly Server[]): ProxyConfigInput {
  const upstreams = servers.flatMap(({ name, port }): UpstreamInput[] => [
    // Without `holdMs`, so that requests meet a server that is gone.
    { name, url: `http://127.0.0.1:${port}`, holdMs: 0 },
    { name: `${name}-kept`, url: `http://127.0.0.1:${port}`, holdMs: 0, idleTimeoutMs: KEPT_LONG_MS },
  ]);
  const routes = upstreams.map(({ name }): RouteInput => ({
    name,
    path: `/${name}/`,
    match: "prefix",
    action: { type: "proxy", upstream: name },
  }));
  return {
    ...config,
    upstreams: [...config.upstreams!, ...upstreams],
    virtualServers: config.virtualServers.map((server) =>
      server.name === "application" ? { ...server, routes: [...routes, ...server.routes] } : server,
    ),
  };
}

function workerOf({ process: master }: FrontEnd): number {
  const [worker, ...others] = childrenOf(master.pid!);
  if (worker === undefined || others.length > 0) throw new Error("the front end has one worker");
  return worker;
}

/** How many descriptors a process has of each kind: names without their numbers. */
function descriptorKinds(pid: number): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const name of descriptorsOf(pid)) {
    const kind = name.replace(/\d+/g, "N");
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

const sameCounts = (a: Readonly<Record<string, number>>, b: Readonly<Record<string, number>>): boolean =>
  Object.keys({ ...a, ...b }).every((kind) => a[kind] === b[kind]);

/** In `/proc/net/tcp`: what the kernel keeps after a connection's end. */
const TIME_WAIT = "06";

/** The port of each connection to one of these ports, from any process. */
function connectionsTo(ports: ReadonlySet<number>): number[] {
  const [, ...lines] = readFileSync("/proc/net/tcp", "latin1").trim().split("\n");
  return lines.flatMap((line) => {
    const [, , remote, state] = line.trim().split(/\s+/);
    const port = Number.parseInt(remote!.split(":")[1]!, 16);
    return state !== TIME_WAIT && ports.has(port) ? [port] : [];
  });
}

function criticalLines({ logDirectory }: FrontEnd): string[] {
  return readdirSync(logDirectory)
    .filter((name) => name.includes("error"))
    .flatMap((name) => readFileSync(join(logDirectory, name), "latin1").split("\n"))
    .filter((line) => /\[(?:crit|alert|emerg)\]/.test(line));
}
