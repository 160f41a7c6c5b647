import fs from "node:fs";
import { tally } from "../exchange/tally.js";
import { dirname } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type Problem, problem } from "../../model/serving.js";
import { logFix } from "../load/files.js";
import { systemReason } from "../files/systemReason.js";
import { APPEND, FileRefused, openLog } from "../files/trustedFile.js";
import {
  cutLine,
  openStream,
  STREAM_LINE_BYTES_MAX,
  type StreamName,
  wholeLines,
  writesMayWait,
} from "./standardStreams.js";

/** A file by its path, or a stream of the process. */
export type LogTarget = { readonly path: string } | { readonly stream: StreamName };

/**
 * A file or a stream that lines are appended to, off the hot path.
 *
 *     append ──> pending (text) ──> batch (bytes) ──> one fs.write at a time, O_APPEND
 *
 * Several workers append to the same file: every write is whole lines, and O_APPEND keeps two writes apart. If the disk
 * is full or slow the lines wait, up to {@link HELD_BYTES_MAX}; more are dropped and counted, and requests are still
 * served. A path that cannot be opened is tried again every {@link REOPEN_MS}.
 *
 * A stream is never reopened. If no process reads from the stream, lines wait in the same way. Each write has whole
 * lines that fit into one system call, so that lines of several workers are not mixed (`standardStreams.ts`).
 */
export class LogFile {
  /** Longest line, its line feed included. */
  readonly lineBytesMax: number;
  private fd: number | undefined;
  /** Whether a write takes as long as the reader of a stream likes. */
  private mayWait = false;
  private pending = "";
  private batch: Buffer | undefined;
  private writing = false;
  private timer: NodeJS.Timeout | undefined;
  private dropped = 0;
  private failing = false;
  /** When to try again to write to a full pipe. */
  private fullMs = FULL_MIN_MS;
  private idle: (() => void)[] = [];
  /** Set while the path cannot be opened. */
  private reopenTimer: NodeJS.Timeout | undefined;

  /**
   * @param report called once when lines cannot be written, and once when they can be again
   * @param instead takes the lines as long as the file cannot be opened; without it they wait
   */
  constructor(
    private readonly target: LogTarget,
    private readonly report: (message: string) => void,
    public instead?: LogFile | undefined,
  ) {
    this.lineBytesMax = "stream" in target ? STREAM_LINE_BYTES_MAX : Infinity;
  }

  /** Adds one line, its line feed included. One that is longer than `lineBytesMax` is cut. */
  append(text: string): void {
    const line = cutLine(text, this.lineBytesMax);
    if (this.fd === undefined && this.reopenTimer !== undefined && this.instead !== undefined)
      return this.instead.append(line);
    if (this.held + line.length > HELD_BYTES_MAX) return this.drop();
    this.pending += line;
    if (this.pending.length >= BATCH_BYTES) this.startWrite();
    else this.schedule(FLUSH_MS);
  }

  /**
   * Opens the file, and creates its directory if that is missing. Returns the problem if that fails; it is then tried
   * again from time to time. Idempotent.
   */
  open(): Problem | undefined {
    return this.fd === undefined ? this.reopen() : undefined;
  }

  /**
   * Opens the path again, so that a rotated file is released. If that fails the old file stays in use, and it is tried
   * again from time to time. Lines that wait go to the new file: the old one may be compressed as soon as the signal is
   * sent.
   */
  reopen(): Problem | undefined {
    clearTimeout(this.reopenTimer);
    this.reopenTimer = undefined;
    const { target } = this;
    if ("stream" in target) return undefined;
    try {
      const old = this.fd;
      this.fd = openLog(target.path, makeLog);
      if (this.pending !== "") this.schedule(FLUSH_MS);
      // A write in progress still needs the old descriptor.
      if (old !== undefined && !this.writing) fs.closeSync(old);
      else if (old !== undefined) this.idle.push(() => fs.close(old, () => undefined));
      return undefined;
    } catch (error) {
      this.reopenTimer = setTimeout(() => this.tryAgain(), REOPEN_MS).unref();
      if (this.fd === undefined && this.instead !== undefined) {
        // The lines are written one by one, because a stream cuts lines that are too long.
        for (const line of this.pending.split("\n").slice(0, -1)) this.instead.append(`${line}\n`);
        this.pending = "";
      }
      return notWritable(target.path, error as NodeJS.ErrnoException);
    }
  }

  private tryAgain(): void {
    if (this.reopen() !== undefined) return;
    const lost = this.dropped > 0 ? `; ${this.dropped} lines were dropped` : "";
    this.report(`${this.name} is written again${lost}`);
    this.dropped = 0;
  }

  /** Resolves when everything appended so far is written, or cannot be. */
  async flush(): Promise<void> {
    const patientUntil = performance.now() + PATIENCE_MS;
    const isFull = (): boolean => this.fullMs > FULL_MIN_MS && performance.now() < patientUntil;
    // A write in progress, a failed write that is repeated, and newer lines.
    for (let writes = 0; writes < 3 || isFull(); writes++) {
      if (isFull()) await delay(FULL_MIN_MS);
      this.startWrite();
      await this.written();
    }
  }

  /**
   * Writes waiting lines at once, when the process is about to end. A write in progress is left to the kernel. So are
   * lines of a stream whose reader could block this process.
   */
  flushSync(): void {
    if (this.mayWait) return;
    const waiting = this.writing ? undefined : this.batch;
    const bytes = Buffer.concat([waiting ?? Buffer.alloc(0), Buffer.from(this.pending, "utf8")]);
    const fd = bytes.length === 0 ? undefined : this.opened();
    if (fd === undefined) return;
    this.pending = "";
    if (!this.writing) this.batch = undefined;
    try {
      for (let at = 0; at < bytes.length;)
        at += fs.writeSync(fd, bytes, at, this.oneWrite(bytes.subarray(at)));
    } catch (error) {
      this.report(`${this.name} lost its last lines ${systemReason(error as Error)}`);
    }
  }

  async close(): Promise<void> {
    await this.flush();
    this.flushSync();
    // The failure may have been reported to this same stream, which must not open the stream again.
    clearTimeout(this.timer);
    this.timer = undefined;
    clearTimeout(this.reopenTimer);
    if (this.fd !== undefined && this.fd > STDERR) fs.closeSync(this.fd);
    this.fd = undefined;
  }

  /** Whether a thread of this process may wait for a reader that does not read. */
  get isHeldUp(): boolean {
    return this.writing && this.mayWait;
  }

  /** How much waits, in bytes for lines of ASCII. */
  private get held(): number {
    return this.pending.length + (this.batch?.length ?? 0);
  }

  private written(): Promise<void> | undefined {
    return this.writing ? new Promise((resolve) => this.idle.push(resolve)) : undefined;
  }

  private get name(): string {
    const { target } = this;
    if ("path" in target) return `log file ${target.path}`;
    return target.stream === "stdout" ? "standard output" : "standard error";
  }

  /** A stream is opened by its first line: most services have none. */
  private opened(): number | undefined {
    if ("stream" in this.target && this.fd === undefined) {
      this.fd = openStream(this.target.stream);
      this.mayWait = writesMayWait(this.fd);
    }
    return this.fd;
  }

  /** How many of these bytes to write at once. */
  private oneWrite(bytes: Buffer): number {
    return "stream" in this.target ? wholeLines(bytes) : bytes.length;
  }

  private schedule(delayMs: number): void {
    if (this.timer !== undefined || this.writing) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.startWrite();
    }, delayMs);
    // Waiting lines do not keep a process alive: they are written when it exits.
    this.timer.unref();
  }

  private startWrite(): void {
    if (this.writing) return;
    const fd = this.pending === "" && this.batch === undefined ? undefined : this.opened();
    if (fd === undefined) return;
    if (this.batch === undefined) {
      this.batch = Buffer.from(this.pending, "utf8");
      this.pending = "";
    }
    clearTimeout(this.timer);
    this.timer = undefined;
    this.writing = true;
    const length = this.oneWrite(this.batch);
    fs.write(fd, this.batch, 0, length, null, (error, written) => this.wrote(error, written));
  }

  private wrote(error: NodeJS.ErrnoException | null, written: number): void {
    this.writing = false;
    const retryMs = error?.code === "EAGAIN" ? this.fullMs : RETRY_MS;
    // A slow reader gets the rest soon; a stuck reader costs one attempt per second.
    this.fullMs = error?.code === "EAGAIN" ? Math.min(2 * this.fullMs, RETRY_MS) : FULL_MIN_MS;
    if (error === null) {
      this.batch = written < this.batch!.length ? this.batch!.subarray(written) : undefined;
      this.recovered();
      // The rest of a short write follows at once, before another worker can put a line in its middle.
      if (this.batch !== undefined) return this.startWrite();
    } else if (error.code !== "EAGAIN") {
      this.failed(error);
    }
    const idle = this.idle;
    this.idle = [];
    for (const done of idle) done();
    if (error !== null) this.schedule(retryMs);
    else if (this.pending.length >= BATCH_BYTES) this.startWrite();
    else if (this.pending !== "") this.schedule(FLUSH_MS);
  }

  private failed(error: Error): void {
    if (this.failing) return;
    this.failing = true;
    this.report(`${this.name} cannot be written ${systemReason(error)}; lines wait in memory, up to 8 MiB`);
  }

  private recovered(): void {
    const { dropped, failing } = this;
    // A reader that is too slow takes a piece now and then; reporting each one would flood standard error.
    if (dropped > 0 && this.held > HELD_BYTES_MAX / 2) return;
    this.failing = false;
    this.dropped = 0;
    if (dropped > 0) this.report(`${this.name} is written again; ${dropped} lines were dropped`);
    else if (failing) this.report(`${this.name} is written again; no line was lost`);
  }

  private drop(): void {
    // Counted first: the report may go to this very stream.
    tally.logLinesLost++;
    if (this.dropped++ === 0) this.report(`${this.name} is not written fast enough; lines are dropped`);
  }
}

/** A batch is written when it has this size, or when its first line is {@link FLUSH_MS} old. */
const BATCH_BYTES = 65_536;
const FLUSH_MS = 100;
const RETRY_MS = 1_000;
const FULL_MIN_MS = 10;
/** How long the last lines wait for room in a pipe. */
const PATIENCE_MS = 500;
/** Long enough that a directory that is permanently gone costs nothing. */
const REOPEN_MS = 10_000;
const HELD_BYTES_MAX = 8 * 1024 * 1024;
/** The last of the descriptors that a process is started with. */
const STDERR = 2;

const LOG_MODE = 0o640;
const LOG_DIRECTORY_MODE = 0o750;

function makeLog(path: Buffer): number {
  fs.mkdirSync(dirname(path.toString()), { recursive: true, mode: LOG_DIRECTORY_MODE });
  const fd = fs.openSync(path, APPEND | fs.constants.O_CREAT | fs.constants.O_EXCL, LOG_MODE);
  // A service's umask would take away the group's right to read.
  fs.fchmodSync(fd, LOG_MODE);
  return fd;
}

function notWritable(path: string, error: NodeJS.ErrnoException | FileRefused): Problem {
  if (error instanceof FileRefused)
    return problem("files.log-not-writable", path, error.message, { fix: error.fix });
  const fix = error.code === "EISDIR" ? "Use the path of a file: this is a directory." : logFix(path);
  return problem("files.log-not-writable", path, `cannot be opened for appending ${systemReason(error)}`, {
    fix,
  });
}
