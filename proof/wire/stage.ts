import { readFileSync } from "node:fs";
import { freePorts } from "../kit/ports.js";
import { installPortico, startPortico } from "../nginx/porticoServer.js";
import type { RunningProcess } from "../nginx/processes.js";
import { createSite, type Mode, type Ports } from "../nginx/site.js";
import { RecordingUpstream } from "./upstream.js";

/** The bundled proxy on the front end's config, in plain and in TLS mode, before upstreams that record. */
export interface Stage {
  readonly upstream: RecordingUpstream;
  readonly plain: Performer;
  readonly tls: Performer;
  stop(): Promise<void>;
}

/** One running proxy. */
export interface Performer {
  readonly ports: Ports;
  /** Master and workers. */
  readonly pids: readonly number[];
  /** What stands in the main error log by now. */
  errorLog(): string;
}

export async function startStage(): Promise<Stage> {
  const site = await createSite();
  const stops: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    const outcomes = await Promise.allSettled(stops.map((one) => one()));
    site.remove();
    for (const outcome of outcomes) if (outcome.status === "rejected") throw outcome.reason;
  };
  try {
    const [web, files, dav, ...listening] = (await freePorts(7)) as [number, number, number, ...number[]];
    const upstream = await RecordingUpstream.start([web, files, dav]);
    stops.push(() => upstream.close());
    const bundle = await installPortico(site);
    const start = async (mode: Mode, http: number, https: number): Promise<Performer> => {
      const ports = { http, https, web, files, dav };
      const process = await startPortico(bundle, mode, site, ports);
      stops.push(() => process.stop());
      const log = `${site.folder}/portico-${mode}/logs/error.log`;
      return { ports, pids: proxyProcesses(process), errorLog: () => read(log) };
    };
    const plain = await start("plain", listening[0]!, listening[1]!);
    const tls = await start("tls", listening[2]!, listening[3]!);
    return { upstream, plain, tls, stop };
  } catch (error) {
    await stop().catch(() => undefined);
    throw error;
  }
}

/** The proxy is a child of the shell that watches over it; its workers are children of its own. */
function proxyProcesses({ pid }: RunningProcess): number[] {
  const below = (parent: number): number[] => childrenOf(parent).flatMap((child) => [child, ...below(child)]);
  return below(pid).filter((child) => /portico/.test(commandOf(child)));
}

function childrenOf(pid: number): number[] {
  const text = read(`/proc/${pid}/task/${pid}/children`);
  return text.trim().split(" ").filter(Boolean).map(Number);
}

const commandOf = (pid: number): string => read(`/proc/${pid}/cmdline`);

/** Watches the memory of a proxy. @returns what tells by how many bytes it grew at most */
export function watchMemory({ pids }: Performer): () => number {
  const before = residentBytes(pids);
  let most = before;
  const look = (): void => void (most = Math.max(most, residentBytes(pids)));
  const timer = setInterval(look, 20).unref();
  return () => {
    clearInterval(timer);
    look();
    return most - before;
  };
}

/** Memory that the processes hold, in bytes. */
function residentBytes(pids: readonly number[]): number {
  const kibibytes = pids.map((pid) => Number(/^VmRSS:\s+(\d+)/m.exec(read(`/proc/${pid}/status`))?.[1] ?? 0));
  return kibibytes.reduce((sum, value) => sum + value, 0) * 1024;
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    // The process is gone.
    return "";
  }
}
