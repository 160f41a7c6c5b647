import { constants, createReadStream } from "node:fs";
import { open } from "node:fs/promises";
import { pipeline, Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import { type Problem, problem } from "../../../model/index.js";
import { systemReason } from "../../../runtime/files/systemReason.js";

/**
 * Reads a log, line by line; a gzip file is recognised by its first bytes. A line that is longer than any line of a log
 * is passed on cut, as soon as it is too long, so memory stays bounded whatever the file is.
 *
 * @param file `-` for standard input
 * @param take called for each line, without its line feed, one char a byte
 * @param end how much of which file is read; default: all of any file
 * @returns why it was not read to its end
 */
export async function readLogFile(
  file: string,
  take: (line: string) => void,
  end?: LogEnd,
): Promise<Problem | undefined> {
  const lines = new Lines(take);
  let raw: Readable | undefined;
  try {
    raw =
      file === "-"
        ? process.stdin
        : end === undefined
          ? createReadStream(file, { highWaterMark: PIECE_BYTES })
          : await endOf(file, end, lines);
    let left = end?.bytesMax ?? Infinity;
    for await (const chunk of (await unpacked(raw)) as AsyncIterable<Buffer>) {
      // It unpacks to more than that, or grows faster than it is read.
      if (left <= 0) return undefined;
      lines.add(chunk.toString("latin1", 0, Math.min(left, chunk.length)));
      left -= chunk.length;
    }
    lines.end();
    return undefined;
  } catch (error) {
    lines.end();
    const { code } = error as NodeJS.ErrnoException;
    const why = code?.startsWith("Z_") === true ? "is damaged: not all of it is gzip" : undefined;
    return problem("files.unreadable", file, why ?? `cannot be read ${systemReason(error as Error)}`, {
      fix: why === undefined ? "Use a log file that you may read." : "Use a complete copy of the log.",
    });
  } finally {
    if (file !== "-") raw?.destroy();
  }
}

/**
 * How much is read of a log of another user, who could put anything in its place: a pipe without a writer, a link to a
 * file of root's, a few kilobytes that unpack to gigabytes. Only a regular file is read.
 */
export interface LogEnd {
  /** Bytes at its end; of a compressed file, bytes of its content, from the beginning. */
  readonly bytesMax: number;
  /** Whether the file may be a link. */
  readonly links: boolean;
}

async function endOf(file: string, { bytesMax, links }: LogEnd, lines: Lines): Promise<Readable> {
  const follow = links ? 0 : constants.O_NOFOLLOW;
  const handle = await open(file, constants.O_RDONLY | constants.O_NONBLOCK | follow);
  const found = await handle.stat();
  if (!found.isFile()) {
    await handle.close();
    throw new Error("it is no regular file");
  }
  const { buffer } = await handle.read(Buffer.alloc(2), 0, 2, 0);
  const start = isGzip(buffer) ? 0 : Math.max(0, found.size - bytesMax);
  if (start === 0) return handle.createReadStream({ highWaterMark: PIECE_BYTES });
  // Skips the rest of a line that begins earlier. If a line begins exactly there, the byte before it ends another line.
  lines.skip();
  return handle.createReadStream({ start: start - 1, highWaterMark: PIECE_BYTES });
}

/** The bytes, uncompressed if they are compressed. */
async function unpacked(raw: Readable): Promise<Readable> {
  const pieces = raw[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  let begin = Buffer.alloc(0);
  while (begin.length < 2) {
    const { done, value } = await pieces.next();
    if (done === true) break;
    begin = Buffer.concat([begin, value]);
  }
  const all = Readable.from(continued(begin, pieces), { objectMode: true });
  if (!isGzip(begin)) return all;
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  // An error ends the stream that is read, which throws it.
  return pipeline(all, gunzip, () => undefined);
}

/** RFC 1952, 2.3.1. */
const isGzip = (begin: Buffer): boolean => begin[0] === 0x1f && begin[1] === 0x8b;

async function* continued(begin: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (begin.length > 0) yield begin;
  for (let next = await rest.next(); next.done !== true; next = await rest.next()) yield next.value;
}

/** Cuts text into lines. */
class Lines {
  private begun = "";
  /** The rest of a line that was too long is skipped. */
  private skipping = false;

  constructor(private readonly take: (line: string) => void) {}

  add(text: string): void {
    let from = 0;
    for (let at = text.indexOf("\n"); at !== -1; at = text.indexOf("\n", from)) {
      const line = text.slice(from, at);
      from = at + 1;
      this.whole(this.begun === "" ? line : this.begun + line);
    }
    if (!this.skipping) this.begun += text.slice(from);
    if (this.begun.length <= LINE_BYTES_MAX) return;
    this.take(this.begun.slice(0, LINE_BYTES_MAX));
    this.begun = "";
    this.skipping = true;
  }

  /** Leaves out the text before the next line feed. */
  skip(): void {
    this.skipping = true;
  }

  end(): void {
    if (this.begun !== "") this.whole(this.begun);
  }

  private whole(line: string): void {
    this.begun = "";
    if (this.skipping) this.skipping = false;
    else if (line !== "") this.take(line.endsWith("\r") ? line.slice(0, -1) : line);
  }
}

const PIECE_BYTES = 262_144;
/** A request head has up to 1 MiB at most, of which each byte may be escaped; ordinary lines have some hundred bytes. */
const LINE_BYTES_MAX = 1_048_576;
