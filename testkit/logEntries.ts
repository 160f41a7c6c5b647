/** Entries of a log in JSON lines: none of an empty log, and not the line that is still being written. */
export function logEntries<Entry = Record<string, unknown>>(log: string): Entry[] {
  return log
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Entry);
}
