import { readLogFile } from "./accessLogFile.js";
import type { ConfigLog } from "./configLogs.js";
import { type LogEntry, readEntry } from "./logEntry.js";
import { linesBackwards, LogTail, rotatedLogs } from "./logFiles.js";
import type { Matches } from "./logFilter.js";

/** A line that is shown, and the log that it is from. */
export interface FollowedLine {
  readonly entry: LogEntry;
  readonly log: ConfigLog;
}

/** The lines of several logs, in the order of their times as far as they are there together, and then as they come. */
export class LogFollower {
  private readonly tails: readonly { readonly log: ConfigLog; readonly tail: LogTail }[];
  private came: FollowedLine[] = [];

  constructor(
    logs: readonly ConfigLog[],
    private readonly matches: Matches,
    private readonly take: (followed: FollowedLine) => void,
  ) {
    this.tails = logs.map((log) => ({
      log,
      tail: new LogTail(log.path, (line) => {
        const entry = this.wanted(log, line);
        if (entry !== undefined) this.came.push({ entry, log });
      }),
    }));
  }

  /**
   * Reads lines that were written before.
   *
   * @param since lines from this time on, in milliseconds since 1970, also of rotated logs
   * @param lines without that, how many of the last lines
   * @returns paths of the logs that cannot be read
   */
  async begin({
    since,
    lines,
  }: {
    readonly since: number | undefined;
    readonly lines: number;
  }): Promise<readonly string[]> {
    const before: FollowedLine[] = [];
    const unreadable: string[] = [];
    for (const { log, tail } of this.tails) {
      const end = tail.begin();
      if (end === undefined) unreadable.push(log.path);
      if (since === undefined) before.push(...this.lastOf(log, end ?? 0, lines));
      else before.push(...(await this.sinceThen(log, end ?? 0, since)));
    }
    before.sort((a, b) => a.entry.time - b.entry.time);
    before.slice(since === undefined ? Math.max(0, before.length - lines) : 0).forEach(this.take);
    return unreadable;
  }

  /** Reads lines that were written since the last call. */
  poll(): void {
    for (const { tail } of this.tails) tail.poll();
    const { came } = this;
    this.came = [];
    came.sort((a, b) => a.entry.time - b.entry.time).forEach(this.take);
  }

  close(): void {
    for (const { tail } of this.tails) tail.close();
  }

  private wanted(log: ConfigLog, line: string): LogEntry | undefined {
    const entry = readEntry(log.kind, line);
    return entry !== undefined && this.matches(entry, log) ? entry : undefined;
  }

  private lastOf(log: ConfigLog, end: number, lines: number): FollowedLine[] {
    const found: FollowedLine[] = [];
    if (lines === 0) return found;
    for (const line of linesBackwards(log.path, end, LAST_BYTES_MAX)) {
      const entry = this.wanted(log, line);
      if (entry !== undefined && found.unshift({ entry, log }) >= lines) break;
    }
    return found;
  }

  private async sinceThen(log: ConfigLog, end: number, since: number): Promise<FollowedLine[]> {
    const found: FollowedLine[] = [];
    const add = (line: string): boolean => {
      const entry = readEntry(log.kind, line);
      if (entry === undefined) return true;
      if (entry.time >= since && found.length < FOUND_MAX && this.matches(entry, log))
        found.push({ entry, log });
      // Workers write independently, so lines are not strictly in order.
      return entry.time >= since - DISORDER_MS && found.length < FOUND_MAX;
    };
    for (const line of linesBackwards(log.path, end)) if (!add(line)) return found;
    for (const { path, until, compressed } of rotatedLogs(log.path)) {
      if (until < since - DISORDER_MS) break;
      if (compressed) await readLogFile(path, (line) => void add(line), UNPACKED);
      else for (const line of linesBackwards(path)) if (!add(line)) return found;
    }
    return found;
  }
}

/** The limit of a log that was rotated and compressed. */
const UNPACKED = { bytesMax: 1_073_741_824, links: true } as const;
/** The part of each log that is read if few lines are wanted and a filter matches few. */
const LAST_BYTES_MAX = 67_108_864;
const DISORDER_MS = 5_000;
/** More lines than anyone reads would fill the memory. */
const FOUND_MAX = 200_000;
