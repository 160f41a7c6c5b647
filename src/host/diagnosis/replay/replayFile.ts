import { basename } from "node:path";
import type { Problem } from "../../../model/index.js";
import { type LogEnd, readLogFile } from "../logs/accessLogFile.js";
import { CUT_REQUEST, NO_REQUEST, readLogLine } from "../logs/accessLogLine.js";
import type { Replay } from "./replay.js";

/** Counts of the lines of one log. */
export interface FileCount {
  readonly file: string;
  lines: number;
  requests: number;
  /** Lines without a readable request. */
  noRequest: number;
  /** Lines whose target was cut, because it was too long for a log: which request it was is not known. */
  cut: number;
  /** Lines that are of no access log. */
  noLog: number;
  firstNoLog: number | undefined;
  /** Whether a line has no host. */
  hostMissing?: boolean;
  readonly failure?: Problem;
}

/**
 * Replays the requests of a log.
 *
 * @param asksHost whether lines without a host cannot be replayed
 * @param end of the log that is read; by default all of it
 */
export async function readInto(
  run: Replay,
  file: string,
  asksHost: boolean,
  end?: LogEnd,
): Promise<FileCount> {
  const counted: FileCount = {
    file,
    lines: 0,
    requests: 0,
    noRequest: 0,
    cut: 0,
    noLog: 0,
    firstNoLog: undefined,
  };
  const where = (): string => `${file === "-" ? "standard input" : basename(file)}:${counted.lines}`;
  const failure = await readLogFile(
    file,
    (text) => {
      counted.lines++;
      const line = readLogLine(text);
      if (line === undefined) {
        counted.firstNoLog ??= counted.lines;
        counted.noLog++;
      } else if (line === NO_REQUEST) {
        counted.noRequest++;
      } else if (line === CUT_REQUEST) {
        counted.cut++;
      } else {
        counted.requests++;
        if (asksHost && line.host === undefined) counted.hostMissing = true;
        run.add(line, where);
      }
    },
    end,
  );
  return failure === undefined ? counted : { ...counted, failure };
}
