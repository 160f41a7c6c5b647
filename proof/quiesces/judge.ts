import type { Tally } from "./clients.js";
import type { Write } from "./store.js";

/** A command under `portico quiesce`. Times are milliseconds since 1970. */
export interface CommandRun {
  /** Exit code of quiesce; null if it was killed. */
  readonly code: number | null;
  /** The one that the command has, which quiesce must return. */
  readonly wanted: number;
  /** Whether it may be 125: portico was gone for a while. */
  readonly mayFail: boolean;
  readonly errors: string;
  /** Undefined if the command did not run. */
  readonly begin: number | undefined;
  readonly end: number | undefined;
  /** `--refuse`. */
  readonly refuseMs: number;
}

const NOT_HELD = 125;
/** For how many times as long as it refuses it serves. */
const OPEN_TIMES = 4;
/** Looks at what is in progress, and a machine with other work. */
const MORE_MS = 2_000;

/**
 * The laws: what got a response of success is stored whole; nothing is written while a command runs that quiesce does not
 * disown; quiesce returns the code of its command; while it waits, it refuses for a short time, and then serves for a longer
 * one (docs/pauses.md).
 *
 * @returns what breaks them
 */
export function judge(
  tally: Pick<Tally, "stored" | "odd" | "refused">,
  writes: readonly Write[],
  command: CommandRun,
): string[] {
  const { code, wanted, mayFail, errors, begin, end, refuseMs } = command;
  const digests = new Map(writes.map(({ target, digest }) => [target, digest]));
  const lost = tally.stored.filter(({ target, digest }) => digests.get(target) !== digest);
  const findings = [
    ...tally.odd.map((one) => `a response that no rule allows: ${one}`),
    ...lost.map(({ target }) => `${target} got a response of success and is not stored whole`),
  ];
  if (code !== null && code !== wanted && !(mayFail && code === NOT_HELD))
    findings.push(`exit code ${code} in place of ${wanted}: ${errors}`);
  if (code === NOT_HELD) return findings;
  if (begin === undefined || end === undefined)
    return code === null
      ? findings
      : [...findings, "the command did not run, and the exit code does not say so"];
  if (!mayFail) findings.push(...tooLongRefused(tally.refused, begin, refuseMs));
  const during = writes.filter((one) => one.begin < end && (one.end ?? Infinity) > begin);
  for (const one of during)
    findings.push(
      `${one.target} was written from ${one.begin - begin} to ${(one.end ?? NaN) - begin} ms of a command of ${end - begin} ms`,
    );
  return findings;
}

/**
 * It refuses for `refuseMs`, serves for longer, and so on until the command begins. Uploads that were refused in too many
 * different seconds were refused all the time.
 */
function tooLongRefused(times: readonly number[], begin: number, refuseMs: number): string[] {
  const before = times.map((at) => begin - at).filter((ms) => ms > 0);
  const longest = Math.max(0, ...before);
  const windows = 1 + Math.floor(longest / ((1 + OPEN_TIMES) * refuseMs));
  const seconds = new Set(before.map((ms) => Math.floor(ms / 1_000))).size;
  // A window may begin and end within a second.
  return seconds * 1_000 <= windows * (refuseMs + 1_000) + MORE_MS
    ? []
    : [
        `uploads were refused in ${seconds} different seconds before the command began, the first ${longest} ms before`,
      ];
}
