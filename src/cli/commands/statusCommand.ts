import { setTimeout as sleep } from "node:timers/promises";
import { type Command } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { EXIT, json, type CommandOutput } from "../output.js";
import { statusText } from "../statusText.js";

interface StatusFlags {
  control: string;
  timeout: number;
  json?: boolean;
  watch?: boolean;
  site?: string;
}

export function addStatus(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withControl(program.command("status"))
    .description("show traffic, transfers, upstream servers, certificates and the last errors")
    .option("--site <NAME>", "only transfers, upstream servers and certificates of this site")
    .option("--watch", "refresh each second, until Ctrl-C")
    .addHelpText(
      "after",
      `
The first lines name each fault and its fix. The command shows the facts of the status page, with the
whole address of each client. It shows the route's path and the name of the file, but no other part of a path and no
query. Traffic and the last errors are those of all sites.

Examples:
  portico status
  portico status --site vault
  portico status --watch
  portico status --json | jq '.overview.transfers'`,
    )
    .action(async (flags: StatusFlags) => {
      if (flags.watch === true) return done(await watch(flags, output));
      done(await show(flags, output));
    });
}

async function show(flags: StatusFlags, output: CommandOutput, before = ""): Promise<number> {
  const { control, timeout, json: asJson } = flags;
  const outcome = await askMaster(control, { command: "overview", site: flags.site }, timeout * 1_000);
  if (!outcome.ok) return printOutcome(outcome, "status", output, asJson);
  const { overview } = outcome.value;
  if (overview === undefined) {
    output.err("status failed: the response of the running portico has no status\n");
    return EXIT.failed;
  }
  const shown = { ok: true, overview };
  if (asJson === true) output.out(flags.watch === true ? `${JSON.stringify(shown)}\n` : json(shown));
  else if (flags.watch === true && isScreen())
    draw(statusText(overview, process.stdout.columns || Infinity), output);
  else output.out(before + statusText(overview));
  return EXIT.ok;
}

/**
 * Puts a text in place of the one before, as much of it as the screen has lines for. The text is printable; only these few
 * sequences move the cursor.
 */
function draw(text: string, output: CommandOutput): void {
  const lines = text
    .trimEnd()
    .split("\n")
    .slice(0, (process.stdout.rows || Infinity) - 1);
  process.stdout.write(HOME);
  for (const line of lines) {
    output.out(line);
    process.stdout.write(CLEAR_REST_OF_LINE);
  }
  process.stdout.write(CLEAR_BELOW);
}

const isScreen = (): boolean => process.stdout.isTTY && process.env.TERM !== "dumb";

/** Until it is interrupted, which is how it is meant to end. */
async function watch(flags: StatusFlags, output: CommandOutput): Promise<number> {
  const drawn = isScreen() && flags.json !== true;
  const over = new AbortController();
  const stop = (): void => over.abort();
  for (const signal of ENDING) process.on(signal, stop);
  if (drawn) process.stdout.write(BEGIN);
  try {
    for (let before = ""; !over.signal.aborted; before = "\n") {
      const code = await show(flags, output, drawn || flags.json === true ? "" : before);
      if (code !== EXIT.ok) return code;
      // An interrupt that came during the request also ends the pause at once.
      await sleep(EVERY_MS, undefined, { signal: over.signal }).catch(() => undefined);
    }
    return EXIT.ok;
  } finally {
    for (const signal of ENDING) process.off(signal, stop);
    if (drawn) process.stdout.write(END);
  }
}

const ENDING = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const EVERY_MS = 1_000;
/** ECMA-48, 8.3.21, 8.3.39 and 8.3.41; the cursor is hidden and shown by DEC's private mode 25. */
const HOME = "\u001b[H";
const CLEAR_REST_OF_LINE = "\u001b[K\n";
const CLEAR_BELOW = "\u001b[J";
const BEGIN = `\u001b[?25l\u001b[2J`;
const END = "\u001b[?25h";
