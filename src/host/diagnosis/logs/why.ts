import { readLogFile } from "./accessLogFile.js";
import type { ConfigLog } from "./configLogs.js";
import { linesBackwards, openLog, rotatedLogs } from "./logFiles.js";
import { type AccessEntry, type ErrorEntry, type LogEntry, readEntry } from "./logEntry.js";
import { closeSync } from "node:fs";

/** The log entries of one request. */
export interface FoundRequest {
  readonly access: AccessEntry | undefined;
  /** In the order in which they were written. */
  readonly errors: readonly ErrorEntry[];
  /** Files that were read, wholly or up to the line. */
  readonly read: readonly string[];
  /** Whether logs are longer than the part that was read. */
  readonly cut: boolean;
}

/** How much of one file is read, from its end: some millions of requests. */
const FILE_BYTES_MAX = 1_073_741_824;

/**
 * Looks for the lines of a request with this id, in the present logs and in those that were rotated, the latest first.
 *
 * @param logsOf those of the config
 * @param given files to read instead
 */
export async function findRequest(
  id: string,
  logsOf: readonly Pick<ConfigLog, "kind" | "path">[],
  given: readonly string[] = [],
): Promise<FoundRequest> {
  const logs: readonly Pick<ConfigLog, "kind" | "path">[] =
    given.length > 0 ? given.map((path) => ({ kind: "access" as const, path })) : logsOf;
  const read: string[] = [];
  const errors: ErrorEntry[] = [];
  let access: AccessEntry | undefined;
  let cut = false;
  for (const log of logs) {
    if (log.kind === "access" && access !== undefined) continue;
    const files = [
      { path: log.path, compressed: log.path.endsWith(".gz") },
      ...(given.length > 0 ? [] : rotatedLogs(log.path)),
    ];
    for (const file of files) {
      const entries = await entriesOf(id, file, log.kind);
      if (entries === undefined) continue;
      read.push(file.path);
      cut ||= entries.cut;
      for (const entry of entries.found) {
        if (entry.kind === "error") errors.push(entry);
        else access ??= entry;
      }
      if (log.kind === "access" ? access !== undefined : errors.length > 0) break;
    }
  }
  errors.sort((a, b) => a.time - b.time);
  return { access, errors, read, cut };
}

/**
 * @param kind of the log; a file that is given may be of the other one as well
 * @returns entries of the request in a file, in their order; undefined if the file cannot be read
 */
async function entriesOf(
  id: string,
  { path, compressed }: { readonly path: string; readonly compressed: boolean },
  kind: LogEntry["kind"],
): Promise<{ readonly found: readonly LogEntry[]; readonly cut: boolean } | undefined> {
  const fd = openLog(path);
  if (fd === undefined) return undefined;
  closeSync(fd);
  const entryOf = (line: string): LogEntry | undefined => {
    // Checked first, because most lines do not contain the id; then parsed, because a client may have sent another
    // request's id.
    const entry = line.includes(id) ? (readEntry(kind, line) ?? readEntry("error", line)) : undefined;
    return entry !== undefined && idOf(entry) === id ? entry : undefined;
  };
  const found: LogEntry[] = [];
  let bytes = 0;
  if (compressed) {
    const take = (line: string): void => {
      bytes += line.length + 1;
      const entry = found.length < FOUND_MAX ? entryOf(line) : undefined;
      if (entry !== undefined) found.push(entry);
    };
    await readLogFile(path, take, { bytesMax: FILE_BYTES_MAX, links: true });
    return { found, cut: bytes >= FILE_BYTES_MAX };
  }
  for (const line of linesBackwards(path, undefined, FILE_BYTES_MAX)) {
    bytes += line.length + 1;
    const entry = entryOf(line);
    if (entry !== undefined) found.unshift(entry);
    // A request has one line in an access log, and few in an error log, close together.
    if (found.length > 0 && (kind === "access" || bytes > ERRORS_WITHIN)) break;
    if (found.length >= FOUND_MAX) break;
  }
  return { found, cut: bytes >= FILE_BYTES_MAX };
}

const idOf = (entry: LogEntry): unknown =>
  entry.kind === "error" ? entry.requestId : entry.fields?.["request_id"];

const ERRORS_WITHIN = 67_108_864;
const FOUND_MAX = 1_000;
