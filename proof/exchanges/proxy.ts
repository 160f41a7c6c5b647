import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { type FrontEnd, startFrontEnd } from "../kit/frontEnd.js";
import { LIMITED_BYTES } from "./case.js";
import { LANE_MIN } from "./input.js";
import { Lane } from "./lane.js";

/**
 * The deployed proxy with one worker and the lanes as its upstreams. It runs in processes of its own, as it is bundled and
 * deployed: what the kernel joins and splits is real then, a fault ends a worker and not the tool, and two processors are
 * used.
 */
export class Proxy {
  private constructor(
    private readonly frontEnd: FrontEnd,
    readonly lanes: readonly Lane[],
  ) {}

  static async start(laneCount: number): Promise<Proxy> {
    const started: { frontEnd?: FrontEnd } = {};
    const lanes: Lane[] = [];
    for (let i = 0; i < laneCount; i++) lanes.push(await Lane.start(LANE_MIN + i, () => started.frontEnd!));
    const unused = lanes[0]!.upstreamPort;
    const frontEnd = await startFrontEnd({
      upstreams: { web: unused, fileServer: unused, webdav: unused },
      change: (config) => withLanes(config, lanes),
    });
    started.frontEnd = frontEnd;
    return new Proxy(frontEnd, lanes);
  }

  /** Process ids of its workers: another one took the place of one that died. */
  workers(): string {
    const { pid } = this.frontEnd.process;
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim();
  }

  get stderr(): string {
    return this.frontEnd.stderr();
  }

  async errorLog(): Promise<string> {
    await sleep(LOGGED_MS);
    return readFileSync(join(this.frontEnd.logDirectory, ERROR_LOG), "latin1");
  }

  async stop(): Promise<void> {
    await this.frontEnd.stop();
    await Promise.all(this.lanes.map((lane) => lane.stop()));
  }
}

/** How long it takes until what was logged is in the file. */
const LOGGED_MS = 300;
const ERROR_LOG = "exchanges.error.log";

function withLanes(config: ProxyConfigInput, lanes: readonly Lane[]): ProxyConfigInput {
  const routes = lanes.flatMap(({ number }) =>
    ["e", "m"].map((kind) => ({
      name: `${kind}${number}`,
      path: `/${kind}${number}`,
      action: { type: "proxy" as const, upstream: `lane${number}` },
      ...(kind === "m" ? { requestBodyBytesMax: LIMITED_BYTES } : {}),
    })),
  );
  const here = { name: "here", path: "/here", action: { type: "respond" as const, status: 200 } };
  const log = config.logs?.error;
  const path = typeof log === "object" && "path" in log ? join(log.path, "..", ERROR_LOG) : undefined;
  if (path === undefined) throw new Error("the deployed config has no error log");
  return {
    ...config,
    workers: 1,
    logs: { access: "off", error: { path } },
    upstreams: [
      ...(config.upstreams ?? []),
      ...lanes.map(({ number, upstreamPort }) => ({
        name: `lane${number}`,
        url: `http://127.0.0.1:${upstreamPort}`,
        // Nothing is closed for idleness while a case runs, however slow the machine is.
        idleTimeoutMs: 60_000,
      })),
    ],
    virtualServers: [
      {
        name: "exchanges",
        serverNames: ["h"],
        listeners: config.listeners.filter(({ name }) => name !== "redirect").map(({ name }) => name),
        routes: [...routes, here],
      },
      ...config.virtualServers,
    ],
  };
}
