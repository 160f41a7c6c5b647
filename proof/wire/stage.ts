import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import { freePorts } from "../../testkit/ports.js";
import { procFile, resident, treeOf } from "../../testkit/processes.js";
import { installPortico, startPortico } from "./porticoServer.js";
import type { RunningProcess } from "./processes.js";
import { createSite, logsOf, type Mode, type Ports, type Site } from "./site.js";
import { RecordingUpstream, UPSTREAM_NAMES } from "./upstream.js";

/** A running proxy, and its upstreams. */
export interface Performer {
  readonly ports: Ports;
  readonly upstream: RecordingUpstream;
  /** Master and workers. */
  readonly pids: readonly number[];
  /** What stands in the main error log of `portico` by now. */
  errorLog(): string;
}

/** Starts a proxy in a mode of deployment, on ports and files of its site. */
export type Start = (mode: Mode, site: Site, ports: Ports) => Promise<RunningProcess>;

/** Proxies on the config of one site, each a process of its own before upstreams that record. */
export class Laboratory {
  private readonly stops: (() => Promise<void>)[] = [];

  private constructor(
    private readonly site: Site,
    private readonly bundle: string,
  ) {}

  static async open<T>(
    equip: (laboratory: Laboratory) => Promise<T>,
  ): Promise<T & { stop(): Promise<void> }> {
    const site = await createSite();
    const laboratory = new Laboratory(site, await installPortico(site));
    const stop = (): Promise<void> => laboratory.stop();
    try {
      return { ...(await equip(laboratory)), stop };
    } catch (error) {
      await stop().catch(() => undefined);
      throw error;
    }
  }

  /** @param upstream that of another proxy; by default it gets its own */
  async portico(mode: Mode, upstream?: RecordingUpstream): Promise<Performer> {
    return this.start(mode, (...where) => startPortico(this.bundle, ...where), upstream);
  }

  async start(mode: Mode, start: Start, shared?: RecordingUpstream): Promise<Performer> {
    const [http, https, ...others] = await freePorts(2 + UPSTREAM_NAMES.length);
    const own = Object.fromEntries(UPSTREAM_NAMES.map((name, i) => [name, others[i]!]));
    const ports = { ...own, ...shared?.ports, http: http!, https: https! } as Ports;
    const upstream = shared ?? (await RecordingUpstream.start(ports));
    this.stops.push(() => upstream.close());
    const process = await start(mode, this.site, ports);
    this.stops.push(() => process.stop());
    const log = path.join(logsOf(mode, this.site), "error.log");
    return {
      ports,
      upstream,
      pids: proxyProcesses(process),
      errorLog: () => (existsSync(log) ? readFileSync(log, "utf8") : ""),
    };
  }

  private async stop(): Promise<void> {
    const outcomes = await Promise.allSettled(this.stops.map((one) => one()));
    this.site.remove();
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  }
}

/** The front end in plain and in TLS mode, before the same upstreams. */
export interface Stage {
  readonly upstream: RecordingUpstream;
  readonly plain: Performer;
  readonly tls: Performer;
  stop(): Promise<void>;
}

export const startStage = (): Promise<Stage> =>
  Laboratory.open(async (laboratory) => {
    const plain = await laboratory.portico("plain");
    const { upstream } = plain;
    return { upstream, plain, tls: await laboratory.portico("tls", upstream) };
  });

/** The proxy is a child of the shell that watches over it; its workers are children of its own. */
const proxyProcesses = ({ pid }: RunningProcess): number[] =>
  treeOf(pid)
    .slice(1)
    .filter((child) => /portico/.test(procFile(child, "cmdline")));

/** Watches the memory of a proxy. @returns what tells by how many bytes it grew at most */
export function watchMemory({ pids }: Performer): () => number {
  const before = resident(pids);
  let most = before;
  const look = (): void => void (most = Math.max(most, resident(pids)));
  const timer = setInterval(look, 20).unref();
  return () => {
    clearInterval(timer);
    look();
    return most - before;
  };
}
