import { spawnSync, type SpawnSyncOptions, type SpawnSyncReturns } from "node:child_process";
import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { BEYOND_LIMIT } from "./exitCodes.js";

/** Options of a laboratory's command: the default, and what it is. The default of an option without a value is `false`. */
type Options = Readonly<Record<string, readonly [usual: string | false | undefined, message: string]>>;

/** What was seen, in words. */
export interface Verdict {
  /** What other work on the machine is no reason for. */
  readonly wrong: readonly string[];
  /** What other work may be a reason for: time, and memory. */
  readonly beyondLimit?: readonly string[];
}

/**
 * The command of a laboratory: reads its options, runs it, prints what it found and ends by that: with 1 if something is
 * wrong, with 2 if it could not look.
 *
 * @param about the command and what it does, for `--help`
 * @param run undefined if another process has told its end
 */
export function laboratory<O extends Options>(
  about: string,
  options: O,
  run: (given: { readonly [name in keyof O]?: string }) => Promise<Verdict | undefined>,
): void {
  const entries = Object.entries(options);
  const main = async (): Promise<void> => {
    // The module that calls this may define below the call what its run needs.
    await Promise.resolve();
    const { values } = parseArgs({
      options: {
        ...Object.fromEntries(
          entries.map(([name, [usual]]) => [name, { type: usual === false ? "boolean" : "string" }]),
        ),
        help: { type: "boolean" },
      } as Record<string, { type: "string" | "boolean" }>,
    });
    if (values["help"] === true) return console.log(helpText(about, entries));
    const given = entries.map(([name, [usual]]) => [name, String(values[name] ?? usual)] as const);
    const known = given.filter(([, value]) => value !== "undefined" && value !== "false");
    const verdict = await run(Object.fromEntries(known) as never);
    if (verdict === undefined) return;
    const { wrong, beyondLimit = [] } = verdict;
    for (const one of [...wrong, ...beyondLimit]) console.log(`FAIL ${one}`);
    console.log(`${wrong.length + beyondLimit.length} findings`);
    process.exitCode = wrong.length > 0 ? 1 : beyondLimit.length > 0 ? BEYOND_LIMIT : 0;
  };
  main().catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 2;
  });
}

const helpText = (about: string, entries: [string, Options[string]][]): string =>
  [
    about,
    "",
    ...entries.map(([name, [usual, message]]) => {
      const preset = typeof usual === "string" ? ` (default ${usual})` : "";
      return `  --${name.padEnd(12)} ${message}${preset}`;
    }),
  ].join("\n");

/** The seed that is given, or another one in each run; it is printed. */
export function seedOption(given: string | undefined): number {
  const seed = numberOf("seed", given ?? String(randomInt(1, 2 ** 30)), 0);
  console.log(`seed ${seed}`);
  return seed;
}

/** What plays one case of a laboratory again, as text. */
export const replayedBy =
  (command: string, seed: number) =>
  (number?: number): string =>
    `     again: npm run ${command} -- --seed ${seed}${number === undefined ? "" : ` --case ${number}`}`;

/**
 * A number from the command line.
 *
 * @param least whole numbers from this on are taken; `part`: all numbers above 0
 * @throws Error with a text for the user
 */
export function numberOf(option: string, text = "", least: number | "part" = 1): number {
  const value = Number(text);
  const taken =
    least === "part" ? value > 0 && Number.isFinite(value) : Number.isSafeInteger(value) && value >= least;
  if (text.trim() !== "" && taken) return value;
  const allowed = least === "part" ? "a number above 0" : `a whole number from ${least}`;
  throw new Error(`--${option} ${text}: give ${allowed}`);
}

/** Runs this command once more, in another process that knows it by a variable of this name. */
export function again(
  mark: string,
  {
    under = [],
    more = [],
    ...options
  }: SpawnSyncOptions & { under?: readonly string[]; more?: readonly string[] },
): SpawnSyncReturns<Buffer> {
  const self = [...under, process.execPath, ...process.execArgv, ...process.argv.slice(1), ...more];
  const env = { ...process.env, [mark]: "yes" };
  const ended = spawnSync(self[0]!, self.slice(1), { ...options, env, stdio: "inherit", encoding: "buffer" });
  process.exitCode = ended.status ?? 1;
  return ended;
}
