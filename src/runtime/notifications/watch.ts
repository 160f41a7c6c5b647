import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { type Notice, noticesOf } from "./notice.js";

/** Regular checks of the master, as notices. All functions are pure except `disksOf`, which reads the host's disks. */

/** A server of an upstream that gets no requests, although it is not drained. */
export interface DownServer {
  readonly upstream: string;
  readonly url: string;
  readonly why?: string | undefined;
}

/** Since when servers are down. A server that is up only for a moment between two checks still counts as down. */
export class DownTimes {
  private readonly seen = new Map<string, { since: number; last: number }>();

  /** @returns notices of those that are down for long enough */
  notices(down: readonly DownServer[], afterMs: number, now: number): readonly Notice[] {
    const notices = down.flatMap(({ upstream, url, why }) => {
      const key = `upstream/${upstream} ${url}`;
      const known = this.seen.get(key) ?? { since: now, last: now };
      this.seen.set(key, { ...known, last: now });
      const ms = now - known.since;
      if (ms < afterMs) return [];
      const minutes = Math.max(1, Math.round(ms / 60_000));
      const server = { url, state: "down", failures: 0, why, minutes } as const;
      return noticesOf("upstream", { upstreams: [{ name: upstream, servers: [server] }] });
    });
    for (const [key, { last }] of this.seen) if (now - last > FORGET_MS) this.seen.delete(key);
    return notices;
  }
}

const FORGET_MS = 30_000;

/** How full the disk of a directory is. */
export interface WatchedDisk {
  readonly path: string;
  /** Free shares of the space for ordinary users, from 0 to 1. */
  readonly freeBytes: number;
  readonly freeInodes: number;
}

/** Disks with less room than they should have. */
export const fullDisks = (disks: readonly WatchedDisk[], percentMin: number): readonly WatchedDisk[] =>
  disks.filter(({ freeBytes, freeInodes }) => Math.min(freeBytes, freeInodes) * 100 < percentMin);

/**
 * The disks of these files and directories, each once; for a missing path, the disk of the nearest existing directory.
 */
export async function disksOf(paths: readonly string[]): Promise<readonly WatchedDisk[]> {
  const found = new Map<number, WatchedDisk>();
  for (const path of paths) {
    const at = await existing(path);
    if (at === undefined || found.has(at.device)) continue;
    const { bavail, blocks, ffree, files } = await statfs(at.path);
    found.set(at.device, {
      path: at.path,
      freeBytes: blocks === 0 ? 1 : bavail / blocks,
      // Some file systems count none.
      freeInodes: files === 0 ? 1 : ffree / files,
    });
  }
  return [...found.values()];
}

async function existing(path: string): Promise<{ path: string; device: number } | undefined> {
  for (let at = path; ; at = dirname(at)) {
    const found = await stat(at).catch(() => undefined);
    if (found?.isDirectory() === true) return { path: at, device: found.dev };
    if (at === dirname(at)) return undefined;
  }
}

/** Unexpected ends of workers. */
export class WorkerEnds {
  private ends: { at: number; how: string }[] = [];

  add(how: string, at: number): void {
    this.ends = [...this.ends.slice(-(LOOP_ENDS * 2)), { at, how }];
  }

  /** A notice while several of them ended lately. */
  notices(now: number): readonly Notice[] {
    this.ends = this.ends.filter(({ at }) => Math.abs(now - at) < LOOP_MS);
    const last = this.ends.at(-1);
    if (last === undefined || this.ends.length < LOOP_ENDS) return [];
    const workerEnds = { count: this.ends.length, minutes: LOOP_MS / 60_000, last: last.how };
    return noticesOf("worker", { workerEnds });
  }
}

const LOOP_MS = 600_000;
const LOOP_ENDS = 3;
