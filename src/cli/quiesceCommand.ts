import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { type Command, Option } from "commander";
import { askMaster } from "../runtime/supervisor/askMaster.js";
import type { ControlOutcome } from "../runtime/supervisor/control.js";
import type { QuiesceRequest } from "../runtime/supervisor/listedPauses.js";
import { LEASE_MS } from "../runtime/supervisor/pauseFile.js";
import { printOutcome, withSocket } from "./controlOptions.js";
import { duration } from "./options.js";
import type { Output } from "./output.js";

interface Flags {
  control: string;
  timeout: number;
  wait: number;
  limit: number;
  reads?: boolean;
}

export function addQuiesce(program: Command, output: Output, done: (code: number) => void): void {
  // Arguments after the command's name belong to that command, even without `--`.
  program.enablePositionalOptions();
  withSocket(program.command("quiesce"))
    .passThroughOptions()
    .description("run a command, such as a backup, while no request writes")
    .argument("<COMMAND...>", "the command and its arguments, after --")
    .addOption(
      new Option("--wait <TIME>", "how long to wait for the end of running requests that write")
        .argParser(duration(DAY_MS))
        .default(HOUR_MS / 6, "10m"),
    )
    .addOption(
      new Option(
        "--limit <TIME>",
        "time after which requests are accepted again, even if the command still runs",
      )
        .argParser(duration(DAY_MS))
        .default(HOUR_MS, "1h"),
    )
    .option("--reads", "refuse requests that read, too")
    .addHelpText(
      "after",
      `
New requests that write get 503 with \`Retry-After\`; \`writes\` of a route decides which requests write. The command runs
when the running requests that write have ended. When the command ends, whatever its exit code, the proxy accepts all
requests again. If \`portico quiesce\` is killed, the proxy accepts all requests within ${LEASE_MS / 1_000} s. A reload, an upgrade or
a crash of the proxy does not end the quiesce.

Exit codes: the command's exit code, or 128 plus the number of the signal that ended the command; 125 if the command did
not run, or if the proxy accepted requests before the command ended, so that the copied data may have changed; 126 and
127 if the command cannot be run.

Examples:
  portico quiesce -- restic backup /srv/sync
  portico quiesce --wait 2h --limit 4h -- /usr/local/sbin/snapshot`,
    )
    .action(async (command: string[], flags: Flags) => done(await quiesce(command, flags, output)));
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

async function quiesce([program, ...args]: readonly string[], flags: Flags, output: Output): Promise<number> {
  const held = new Held(flags);
  const signals = new Signals();
  try {
    const begun = await held.begin();
    if (!begun.ok) {
      // The quiesce may have begun.
      if (begun.problems[0]!.code === "control.no-response") await held.end();
      return notDone(begun, output);
    }
    const why = await untilQuiet(held, begun, flags.wait, signals);
    if (why !== undefined) {
      await held.end();
      if (typeof why !== "string") return notDone(why, output);
      output.err(`quiesce failed: ${why}; the command was not run\n`);
      return signals.received === undefined ? NOT_DONE : 128 + constants.signals[signals.received];
    }
    held.renewRegularly();
    const code = await ended(program!, args, signals, output);
    const outcome = await held.end();
    if (outcome.ok) return code;
    if (code !== 0) output.err(`the command ended with exit code ${code}\n`);
    return notDone(outcome, output);
  } finally {
    signals.release();
  }
}

/** Holds a quiesce of the running portico: begins it, renews it, ends it. */
class Held {
  private readonly id = randomUUID();
  /** Why requests were let through meanwhile, if they were. */
  private lost: ControlOutcome | undefined;
  private timer: NodeJS.Timeout | undefined;
  private over = false;

  constructor(private readonly flags: Flags) {}

  begin(): Promise<ControlOutcome> {
    const { reads, limit } = this.flags;
    return this.ask({ begin: { reads: reads === true, limitMs: limit } });
  }

  /** If portico cannot be reached, the quiesce continues until its lease is over. */
  async renew(): Promise<ControlOutcome> {
    const outcome = await this.ask({});
    if (!isUnreached(outcome) && !outcome.ok) this.lost ??= outcome;
    return outcome;
  }

  renewRegularly(): void {
    if (!this.over)
      this.timer = setTimeout(() => void this.renew().then(() => this.renewRegularly()), RENEW_MS);
  }

  /** @returns whether it held until now */
  async end(): Promise<ControlOutcome> {
    this.over = true;
    clearTimeout(this.timer);
    const { control, timeout } = this.flags;
    const deadline = performance.now() + timeout * 1_000;
    for (;;) {
      const outcome = await askMaster(control, { command: "resume", id: this.id }, timeout * 1_000);
      if (!isUnreached(outcome) || performance.now() > deadline) return this.lost ?? outcome;
      await later(POLL_MS);
    }
  }

  private ask(more: Omit<QuiesceRequest, "id">): Promise<ControlOutcome> {
    const { control, timeout } = this.flags;
    return askMaster(control, { command: "quiesce", id: this.id, ...more }, timeout * 1_000);
  }
}

/** It may be starting again after a crash, or be busy. */
const isUnreached = (outcome: ControlOutcome): boolean =>
  !outcome.ok && UNREACHED.has(outcome.problems[0]!.code);
const UNREACHED = new Set<string>([
  "control.not-running",
  "control.no-response",
  "control.replaced",
  "serve.stopping",
]);
const RENEW_MS = 5_000;
const POLL_MS = 250;

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Waits for requests in progress. @returns why the command must not run; undefined if it may */
async function untilQuiet(
  held: Held,
  begun: ControlOutcome,
  waitMs: number,
  signals: Signals,
): Promise<string | ControlOutcome | undefined> {
  const deadline = performance.now() + waitMs;
  let outcome = begun;
  for (;;) {
    if (!outcome.ok) return outcome;
    const { writes = 0, silent = 0 } = outcome.value.pauses?.quiesce ?? {};
    if (signals.received !== undefined) return `ended by ${signals.received}`;
    if (writes === 0 && silent === 0) return undefined;
    if (performance.now() > deadline) {
      const who = silent === 0 ? "" : `, and ${silent} worker${silent === 1 ? " does" : "s do"} not respond`;
      return `after ${waitMs / 1_000} s requests that write were still in progress: ${writes}${who}`;
    }
    await later(POLL_MS);
    outcome = await held.renew();
  }
}

/** Passes on signals that would end this process, which stays until the command has ended. */
class Signals {
  received: NodeJS.Signals | undefined;
  child: ChildProcess | undefined;

  constructor() {
    for (const signal of ENDING) process.on(signal, this.receive);
  }

  release(): void {
    for (const signal of ENDING) process.off(signal, this.receive);
  }

  private readonly receive = (signal: NodeJS.Signals): void => {
    this.received ??= signal;
    // A terminal sends the others to the command as well.
    if (signal === "SIGTERM" || signal === "SIGHUP") this.child?.kill(signal);
  };
}

const ENDING = ["SIGINT", "SIGQUIT", "SIGTERM", "SIGHUP"] as const;

/** Runs the command. @returns its exit code, as a shell has it */
function ended(program: string, args: readonly string[], signals: Signals, output: Output): Promise<number> {
  return new Promise((resolve) => {
    const failed = (error: NodeJS.ErrnoException): void => {
      output.err(`quiesce failed: ${program} cannot be run: ${error.code ?? error.message}\n`);
      resolve(error.code === "ENOENT" ? NOT_FOUND : CANNOT_RUN);
    };
    let child: ChildProcess;
    try {
      child = spawn(program, args, { stdio: "inherit" });
    } catch (error) {
      // An empty name, or too many arguments (E2BIG).
      return failed(error as NodeJS.ErrnoException);
    }
    signals.child = child;
    child.on("error", failed);
    child.on("close", (code, signal) => resolve(code ?? 128 + constants.signals[signal!]));
  });
}

/** As of `timeout` and `env`. */
const [NOT_DONE, CANNOT_RUN, NOT_FOUND] = [125, 126, 127];

function notDone(outcome: ControlOutcome, output: Output): number {
  printOutcome(outcome, "quiesce", output, false);
  return NOT_DONE;
}
