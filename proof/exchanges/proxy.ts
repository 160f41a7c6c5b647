import { readFileSync, rmSync } from "node:fs";
import { publicFolder } from "../../testkit/publicFolder.js";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput, UpstreamInput } from "../../src/model/index.js";
import { type BoundSocket, holdSocket } from "../../src/runtime/sockets/node/socketHolder.js";
import { issue } from "../../testkit/certificates.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { Watched } from "../../testkit/level.js";
import { FILLED_MEMORY } from "../../testkit/sharedBundle.js";
import { LANE_MIN } from "../wire/http1Input.js";
import { Lane } from "../wire/lane.js";
import { HOST, STREAM_RESETS_PER_SECOND_MAX } from "../wire/timeline.js";
import { FILES, routeOf, TARGETS, upstreamOf } from "./targets.js";

/**
 * The deployed proxy with one worker and the lanes as its upstreams. It runs in processes of its own, as it is bundled and
 * deployed: what the kernel joins and splits is real then, a fault ends a worker and not the tool, and two processors are
 * used.
 */
export class Proxy {
  private watched: Watched | undefined;

  private constructor(
    private readonly frontEnd: FrontEnd,
    readonly lanes: readonly Lane[],
    private readonly deaf: Deaf,
    private readonly folder: string,
  ) {}

  static async start(laneCount: number): Promise<Proxy> {
    const started: { frontEnd?: FrontEnd } = {};
    const lanes: Lane[] = [];
    const folder = publicFolder("portico-exchanges-");
    const place = { folder, certificate: await issue({ names: ["upstream.test"], type: "ec" }) };
    for (let i = 0; i < laneCount; i++)
      lanes.push(await Lane.start(LANE_MIN + i, place, () => started.frontEnd!));
    const unused = Number(new URL(lanes[0]!.urls.tcp).port);
    const deaf = new Deaf();
    const frontEnd = await startFrontEnd({
      upstreams: { web: unused, fileServer: unused, webdav: unused },
      media: FILES,
      under: ["env", FILLED_MEMORY],
      change: (config) => withLanes(config, lanes, deaf.upstream),
    });
    started.frontEnd = frontEnd;
    const proxy = new Proxy(frontEnd, lanes, deaf, folder);
    proxy.watched = await Watched.start(frontEnd);
    return proxy;
  }

  /** Whether another worker has taken the place of one, since this or `atRest` was called. */
  get died(): boolean {
    return this.watched!.died;
  }

  /** The whole error log, once all that was logged so far is in it. */
  async errorLog(): Promise<string> {
    await sleep(LOGGED_MS);
    return readFileSync(join(this.frontEnd.logDirectory, ERROR_LOG), "latin1");
  }

  /** Waits until it holds nothing that it did not hold at first. @returns what it still does after that time */
  async atRest(patienceMs: number): Promise<string[]> {
    for (const lane of this.lanes) lane.hangUp();
    return this.watched!.atRest(patienceMs);
  }

  async stop(): Promise<void> {
    await this.frontEnd.stop();
    this.deaf.stop();
    await Promise.all(this.lanes.map((lane) => lane.stop()));
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** How long it takes until what was logged is in the file. */
const LOGGED_MS = 300;
const ERROR_LOG = "exchanges.error.log";

/** An upstream that accepts nothing, and whose queue is full: connections to it are neither made nor refused. */
class Deaf {
  private readonly socket: BoundSocket;
  private readonly waiting: net.Socket[];

  constructor() {
    const held = holdSocket({ host: "127.0.0.1", port: 0, backlog: 1 });
    if (typeof held === "number") throw new Error(`errno ${held}`);
    this.socket = held;
    this.waiting = Array.from({ length: DEAF_QUEUE }, () =>
      net.connect(held.port, "127.0.0.1").on("error", () => undefined),
    );
  }

  get upstream(): UpstreamInput {
    const url = `http://127.0.0.1:${this.socket.port}`;
    return { name: upstreamOf(0, TARGETS.deaf), url, connectTimeoutMs: CONNECT_MS };
  }

  stop(): void {
    for (const socket of this.waiting) socket.destroy();
    this.socket.close();
  }
}

const DEAF_QUEUE = 4;

/** Nothing is closed for idleness while a case runs, however slow the machine is. */
const IDLE_MS = 60_000;
/** Longer than responses are held. */
const QUEUE_MS = 1_500;
const CONNECT_MS = 400;

function withLanes(config: ProxyConfigInput, lanes: readonly Lane[], other: UpstreamInput): ProxyConfigInput {
  const log = config.logs?.error;
  const logs = typeof log === "object" && "path" in log ? join(log.path, "..") : undefined;
  if (logs === undefined) throw new Error("the deployed config has no error log");
  const routes = lanes.flatMap(({ number }) =>
    Object.values(TARGETS).map((to) => routeOf(number, to, join(logs, "../media"))),
  );
  const listeners = config.listeners.filter(({ name }) => name !== "redirect").map(({ name }) => name);
  // Whatever host is asked for, its routes respond.
  const others = config.virtualServers.map((server) =>
    listeners.some((name) => server.listeners?.includes(name)) ? { ...server, default: false } : server,
  );
  const here = { name: "here", path: "/here", action: { type: "respond" as const, status: 200 } };
  return {
    ...config,
    workers: 1,
    limits: { ...config.limits, streamResetsPerSecondMax: STREAM_RESETS_PER_SECOND_MAX },
    logs: { access: "off", error: { path: join(logs, ERROR_LOG) } },
    upstreams: [
      ...(config.upstreams ?? []),
      ...lanes.flatMap(({ number, urls }) => {
        const idle = { idleTimeoutMs: IDLE_MS };
        const narrow = { connectionsMax: 1, queueTimeoutMs: QUEUE_MS };
        return [
          { ...idle, url: urls.tcp, name: upstreamOf(number, TARGETS.plain) },
          { ...idle, url: urls.tls, name: upstreamOf(number, TARGETS.secure), tls: { verify: false } },
          { ...idle, url: urls.unix, name: upstreamOf(number, TARGETS.unix) },
          { ...idle, ...narrow, url: urls.tcp, name: upstreamOf(number, TARGETS.narrow) },
        ];
      }),
      other,
    ],
    virtualServers: [
      {
        name: "exchanges",
        serverNames: [HOST],
        listeners,
        default: true,
        routes: [...routes, here],
      },
      ...others,
    ],
  };
}
