import { stat, statfs } from "node:fs/promises";
import { dirname } from "node:path";
import { certificateEnd, daysLeftText } from "../../model/certificateEnd.js";
import type { Notice } from "./notice.js";

/** Regular checks of the master, as notices. All functions are pure except `disksOf`, which reads the host's disks. */

/** A certificate in service. Times are in milliseconds since 1970. */
export interface WatchedCertificate {
  readonly names: readonly string[];
  readonly source: "files" | "acme" | "temporary";
  readonly from: string;
  readonly notBefore: number;
  readonly notAfter: number;
  readonly lastError?: { readonly message: string; readonly fix: string };
}

/** Certificates that end soon, or that an authority does not issue. */
export function certificateNotices(
  certificates: readonly WatchedCertificate[],
  daysMax: number,
  now: number,
): readonly Notice[] {
  return certificates.flatMap(({ names, source, from, notBefore, notAfter, lastError }) => {
    const left = notAfter - now;
    const waits = source === "temporary" && lastError !== undefined;
    if (certificateEnd({ notBefore, notAfter }, now, daysMax) === "later" && !waits) return [];
    const about = `the certificate of ${listOf(names)}`;
    const failed = lastError === undefined ? "" : `; the last attempt failed: ${lastError.message}`;
    const what = waits
      ? `${from} has not issued ${about}; browsers get a temporary certificate${failed}`
      : left <= 0
        ? `${about} has expired${failed}`
        : `${about} expires in ${daysLeftText(left)}, and was not renewed${failed}`;
    const byFiles = `Renew ${from} on the host; portico then loads the new file without a reload.`;
    const byAcme = "See `portico certificates`; `portico certificates renew` asks the authority again.";
    const fix = lastError?.fix ?? (source === "files" ? byFiles : byAcme);
    return [{ key: `certificate/${names.join(",").slice(0, 200)}`, what, fix }];
  });
}

const listOf = ([first = "", ...others]: readonly string[]): string =>
  others.length === 0 ? first : `${first} and ${others.length} more`;

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
      const cause = why === undefined ? "" : `: ${why}`;
      const what = `upstream "${upstream}": its server ${url} has been down for ${minutes} min${cause}`;
      const fix =
        "Start the server, or find out why it does not respond; `portico upstreams` shows all servers.";
      return [{ key, what, fix }];
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
export function diskNotices(disks: readonly WatchedDisk[], percentMin: number): readonly Notice[] {
  return disks.flatMap(({ path, freeBytes, freeInodes }) => {
    const free = Math.min(freeBytes, freeInodes);
    if (free * 100 >= percentMin) return [];
    const of = freeBytes <= freeInodes ? "its bytes" : "its inodes";
    const what = `the disk of ${path} is nearly full: ${(free * 100).toFixed(1)} % of ${of} are free`;
    const fix =
      "Free space: remove old logs or caches, or use a larger disk. On a full disk, log lines and new certificates are lost.";
    return [{ key: `disk/${path}`, what, fix }];
  });
}

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
    const what = `workers end repeatedly: ${this.ends.length} in the last ${LOOP_MS / 60_000} minutes; the last one ${last.how}`;
    const fix =
      "Read the error log and `journalctl -u portico`; the requests of a worker that ends are lost.";
    return [{ key: "worker/restarts", what, fix }];
  }
}

const LOOP_MS = 600_000;
const LOOP_ENDS = 3;
