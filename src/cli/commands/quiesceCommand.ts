import { DAY_MS, HOUR_MS } from "../../model/text/duration.js";
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { constants } from "node:os";
import { type Command, Option } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { ControlOutcome } from "../../runtime/supervisor/control/control.js";
import { problem } from "../../model/serving.js";
import { PACE_WINDOW_MS } from "../../runtime/dispatch/paces.js";
import type { Transfer } from "../../runtime/dispatch/transfers.js";
import { plural } from "../../model/numberTexts.js";
import type { ListedQuiesce, QuiesceRequest } from "../../runtime/supervisor/control/listedPauses.js";
import { LEASE_MS } from "../../runtime/supervisor/served/pauseFile.js";
import { printOutcome, withSocket } from "./controlOptions.js";
import { duration, wholeNumber } from "../options.js";
import type { CommandOutput } from "../output.js";
import { transferText } from "../statusText.js";

interface QuiesceFlags {
  control: string;
  timeout: number;
  wait: number;
  refuse: number;
  minimumRate: number;
  slow: "give-up" | "cut";
  limit: number;
  reads?: boolean;
  site?: string;
}

export function addQuiesce(program: Command, output: CommandOutput, done: (code: number) => void): void {
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
      new Option("--refuse <TIME>", "how long to refuse new requests at a time, before the command runs")
        .argParser(duration(DAY_MS))
        .default(30_000, "30s"),
    )
    .addOption(
      new Option(
        "--minimum-rate <BYTES>",
        `bytes a second, for ${PACE_WINDOW_MS / 1_000} s; a client that sends fewer is slow; 0: none is`,
      )
        .argParser(wholeNumber(0, 1_000_000_000))
        .default(500),
    )
    .addOption(
      new Option("--slow <ACTION>", "what to do about the request of a slow client")
        .choices(["give-up", "cut"])
        .default("give-up"),
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
    .option("--site <NAME>", "only requests to this site (default: all of them)")
    .addHelpText(
      "after",
      `
The command runs when no request that writes is running; \`writes\` of a route decides which requests write. New ones are
served until the running ones are expected to end within --refuse. From then on new ones get 503 with \`Retry-After\`,
until the command ends, whatever its exit code. If some do not end within --refuse, the proxy accepts new ones again for
${OPEN_TIMES} times as long, and then quiesce tries again, until --wait is over.

--slow give-up ends quiesce as soon as one client is slow, and nothing is lost. --slow cut ends the request of this
client with 503 and \`Retry-After\`, so sync clients send the request again; if its response has begun, the proxy closes
the connection. Time in which the upstream is slow does not count.

If \`portico quiesce\` is killed, the proxy accepts all requests within ${LEASE_MS / 1_000} s. A reload, an upgrade or a crash of the
proxy does not end the quiesce.

Exit codes: the command's exit code, or 128 plus the number of the signal that ended the command; 124 if the command did
not run because requests did not end within --wait, or a client is slow: their names are printed; 125 if the command did
not run for another reason, or if the proxy accepted requests before the command ended, so that the copied data may have
changed; 126 and 127 if the command cannot be run.

Examples:
  portico quiesce -- restic backup /srv/sync
  portico quiesce --site vault -- tar -czf vault.tar.gz /srv/vaultwarden
  portico quiesce --slow cut --wait 2h --limit 4h -- /usr/local/sbin/snapshot`,
    )
    .action(async (command: string[], flags: QuiesceFlags) => done(await quiesce(command, flags, output)));
}

async function quiesce(
  [program, ...args]: readonly string[],
  flags: QuiesceFlags,
  output: CommandOutput,
): Promise<number> {
  const held = new HeldQuiesce(flags);
  const signals = new Signals();
  try {
    const begun = await held.begin();
    if (!begun.ok) {
      // The quiesce may have begun.
      if (begun.problems[0]!.code === "control.no-response") await held.end();
      return notDone(begun, output);
    }
    held.renewRegularly();
    const why = await new QuiesceWait(held, flags, signals).untilQuiet(begun);
    if (why !== undefined) {
      await held.end();
      if ("ok" in why) return notDone(why, output);
      output.err(`quiesce failed: ${why.reason}; the command was not run\n`);
      for (const one of why.transfers) output.err(`  ${transferText(one)}\n`);
      return signals.received === undefined ? NOT_ENDED : 128 + constants.signals[signals.received];
    }
    held.runs = true;
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
class HeldQuiesce {
  /** The command runs: from now on no request that writes may be let through. */
  runs = false;
  private readonly id = randomUUID();
  /** Why requests were let through meanwhile, if they were. */
  private lost: ControlOutcome | undefined;
  private timer: NodeJS.Timeout | undefined;
  private over = false;

  constructor(private readonly flags: QuiesceFlags) {}

  begin(): Promise<ControlOutcome> {
    const { reads, site, limit, refuse, minimumRate, slow } = this.flags;
    const begin = { reads: reads === true, site, minimumRate, cutsSlow: slow === "cut", refuseMs: refuse };
    return this.ask({ begin: { ...begin, limitMs: limit } });
  }

  /** Has new requests refused from now on, or served again. */
  refuse(refuses: boolean): Promise<ControlOutcome> {
    return this.ask({ refuses });
  }

  /** If portico cannot be reached, the quiesce continues until its lease is over. */
  async renew(): Promise<ControlOutcome> {
    const { runs } = this;
    const outcome = await this.ask({});
    if (!runs || isUnreached(outcome)) return outcome;
    // A proxy that could not store what it refuses crashed, and knows only an earlier state.
    if (!outcome.ok) this.lost ??= outcome;
    else if (outcome.value.pauses?.quiesce?.refusesSince === undefined) this.lost ??= NOT_REFUSED;
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
/** The response that the proxy would give. */
const NOT_REFUSED: ControlOutcome = {
  ok: false,
  problems: [problem("control.not-quiesced", "", "requests that write are served again")],
};
/** How many times as long new requests are served as they were refused in vain. */
const OPEN_TIMES = 4;
const RENEW_MS = 5_000;
/** How many requests are named when the time is over. */
const NAMED_MAX = 3;
const POLL_MS = 250;

const later = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Why the command must not run: what the proxy says, or requests that do not end. */
type Hindrance = ControlOutcome | { readonly reason: string; readonly transfers: readonly Transfer[] };

/** Waits for requests in progress, at first without refusing new ones. */
class QuiesceWait {
  private readonly deadline: number;
  /** When new requests are to be served again; undefined while they are. */
  private refusesUntil: number | undefined;
  /** When they may be refused again. */
  private opensUntil = 0;

  constructor(
    private readonly held: HeldQuiesce,
    private readonly flags: QuiesceFlags,
    private readonly signals: Signals,
  ) {
    this.deadline = performance.now() + flags.wait;
  }

  /** @returns why the command must not run; undefined if it may */
  async untilQuiet(begun: ControlOutcome): Promise<Hindrance | undefined> {
    let outcome = begun;
    for (;;) {
      const quiesce = outcome.ok ? outcome.value.pauses?.quiesce : undefined;
      if (quiesce === undefined) return outcome;
      const hindrance = this.hindrance(quiesce);
      if (hindrance !== undefined) return hindrance;
      const { refusesSince, writes, silent } = quiesce;
      if (refusesSince !== undefined && writes === 0 && silent === 0) return undefined;
      outcome = await this.next(quiesce);
    }
  }

  private hindrance({ slow, silent, writes, transfers }: ListedQuiesce): Hindrance | undefined {
    const { signals, flags } = this;
    if (signals.received !== undefined) return { reason: `ended by ${signals.received}`, transfers: [] };
    if (slow > 0 && flags.slow === "give-up") {
      const rate = `${flags.minimumRate} bytes a second for ${PACE_WINDOW_MS / 1_000} s`;
      const clients = `the client${slow === 1 ? "" : "s"} of ${plural(slow, "request")}`;
      return { reason: `${clients} sent less than ${rate}`, transfers };
    }
    if (performance.now() <= this.deadline) return undefined;
    const who = silent === 0 ? "" : `, and ${silent} worker${silent === 1 ? " does" : "s do"} not respond`;
    const what = flags.reads === true ? "requests" : "requests that write";
    const reason = `after ${flags.wait / 1_000} s ${what} were still in progress: ${writes}${who}`;
    const oldest = [...transfers].sort((a, b) => b.ageMs - a.ageMs);
    return { reason, transfers: oldest.slice(0, NAMED_MAX) };
  }

  /** Refuses new requests when it is time, or lets them in again. @returns what is in progress then */
  private async next({ lasting, silent }: ListedQuiesce): Promise<ControlOutcome> {
    const now = performance.now();
    if (this.refusesUntil === undefined && lasting === 0 && silent === 0 && now >= this.opensUntil) {
      const outcome = await this.held.refuse(true);
      this.refusesUntil = performance.now() + this.flags.refuse;
      return outcome;
    }
    await later(POLL_MS);
    if (this.refusesUntil === undefined || performance.now() < this.refusesUntil) return this.held.renew();
    this.refusesUntil = undefined;
    this.opensUntil = performance.now() + OPEN_TIMES * this.flags.refuse;
    return this.held.refuse(false);
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
function ended(
  program: string,
  args: readonly string[],
  signals: Signals,
  output: CommandOutput,
): Promise<number> {
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

/** These are the exit statuses of `timeout` and `env`. */
const [NOT_ENDED, NOT_DONE, CANNOT_RUN, NOT_FOUND] = [124, 125, 126, 127];

function notDone(outcome: ControlOutcome, output: CommandOutput): number {
  printOutcome(outcome, "quiesce", output, false);
  return NOT_DONE;
}
