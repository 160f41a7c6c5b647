import { randomBytes } from "node:crypto";
import { availableParallelism } from "node:os";
import { formatProblem, type Problem, problem, type ProxyConfig, type Result } from "../model/serving.js";
import { descriptorWarning } from "./descriptorLimit.js";
import { Generation } from "./generation.js";
import type { LoadedConfig } from "./load.js";
import type { ErrorLevel } from "./logFormat.js";
import { LogFiles } from "./logs.js";
import { keyOf, ListenSockets } from "./sockets.js";
import { VERSION } from "./version.js";

export interface MasterOptions {
  /** Reads the config; called at the start and for every reload. */
  load(expiry: "problem" | "warning"): Promise<Result<LoadedConfig>>;
  /** Arguments to Node that start a worker; default: this script with `worker`. */
  readonly workerCommand?: readonly string[];
  readonly logToStderr?: boolean;
  readonly onReady?: () => void;
}

/**
 * Holds the listening sockets and looks after the workers, which accept and serve by themselves.
 *
 *     start ──> serving ──reload──> serving (new generation; the old one drains)
 *                  └──shutDown──> draining ──shutDown again──> gone
 *
 * Owner of all live state of the master: the sockets, the generations and the TLS ticket keys.
 */
export class Master {
  private readonly sockets = new ListenSockets();
  private current: Generation | undefined;
  /** Every generation that has workers, the current one included. */
  private readonly generations = new Set<Generation>();
  private loaded: LoadedConfig | undefined;
  /** The main error log, if it is a file. */
  private fileLog: LogFiles | undefined;
  private ticketKeys = newTicketKeys();
  private rotation: NodeJS.Timeout | undefined;
  private reloading = false;
  private reloadAgain = false;
  private stopping = false;

  constructor(private readonly options: MasterOptions) {}

  /** Serves until it is shut down; resolves with the exit code. */
  async run(): Promise<number> {
    const problems = await this.start();
    // A stop in the middle of the start is no failure.
    const failed = problems.length > 0 && !this.stopping;
    if (failed) {
      write(process.stderr, `${problemsText(problems)}portico: cannot start: ${count(problems)}\n`);
      this.shutDown();
    }
    await this.allGone();
    clearInterval(this.rotation);
    this.sockets.closeAll();
    await this.fileLog?.close();
    return failed ? EXIT_FAILED : EXIT_OK;
  }

  /** Takes a changed config without refusing or cutting a request; a bad one is refused and changes nothing. */
  reload(): void {
    if (this.stopping) return;
    if (this.reloading || this.current === undefined) {
      this.reloadAgain = true;
      return;
    }
    this.reloading = true;
    void this.tryReload().then((problems) => {
      this.reloading = false;
      if (problems.length > 0 && !this.stopping) this.refuse(problems);
      this.reloadIfAsked();
    });
  }

  /** Stops accepting and ends when running requests are done; called again, at once. */
  shutDown(): void {
    for (const generation of this.generations) {
      if (this.stopping) generation.stop();
      else generation.drain();
    }
    this.stopping = true;
    // Nobody is to wait in the queue of a socket that no worker will accept from.
    this.sockets.closeAll();
  }

  reopenLogs(): void {
    for (const p of this.fileLog?.reopen() ?? []) this.log("error", `${p.path}: ${p.message}`);
    for (const generation of this.generations) generation.broadcast({ type: "reopenLogs" });
  }

  private async start(): Promise<readonly Problem[]> {
    const loaded = await this.options.load("warning");
    if (!loaded.ok) return loaded.problems;
    const problems = await this.begin(loaded.value);
    if (problems.length > 0) return problems;
    this.rotation = setInterval(() => this.rotateTicketKeys(), TICKET_KEYS_MS).unref();
    const { config } = loaded.value;
    write(process.stdout, `portico ${VERSION} ready: ${endpoints(config)}, ${workersText(config)}\n`);
    this.options.onReady?.();
    this.reloadIfAsked();
    return [];
  }

  private async tryReload(): Promise<readonly Problem[]> {
    const loaded = await this.options.load("problem");
    if (!loaded.ok) return loaded.problems;
    const problems = await this.begin(loaded.value);
    if (problems.length > 0) return problems;
    const { config } = loaded.value;
    this.log("info", `configuration reloaded: ${endpoints(config)}, ${workersText(config)}`);
    return [];
  }

  /** Puts a config into service in place of the current one; on failure the current one is untouched. */
  private async begin(loaded: LoadedConfig): Promise<readonly Problem[]> {
    const { config } = loaded;
    if (this.stopping) return [problem("serve.worker-failed", "", "was stopped before it was ready")];
    const sockets = this.sockets.acquire(config.listeners);
    if (!sockets.ok) return sockets.problems;
    const next = new Generation({
      loaded,
      sockets: sockets.value,
      size: workerCount(config),
      ticketKeys: this.ticketKeys,
      command: this.options.workerCommand ?? [process.argv[1]!, "worker"],
      logToStderr: this.options.logToStderr ?? false,
      log: (level, message) => this.log(level, message),
    });
    this.generations.add(next);
    void next.gone.then(() => this.generations.delete(next));
    const problems = await next.start();
    if (problems.length > 0) {
      this.sockets.keepOnly(this.loaded?.config.listeners ?? []);
      return problems;
    }
    const previous = this.current;
    this.current = next;
    this.loaded = loaded;
    this.sockets.keepOnly(config.listeners);
    previous?.drain();
    await this.useLog(config);
    for (const p of [...loaded.warnings, ...this.sockets.unused(config.listeners)]) this.warn(p);
    const fewDescriptors = descriptorWarning(config);
    if (fewDescriptors !== undefined) this.log("warn", `warning: ${fewDescriptors}`);
    return [];
  }

  private async useLog(config: ProxyConfig): Promise<void> {
    const previous = this.fileLog;
    const toFile = config.logs.error !== "off" && this.options.logToStderr !== true;
    this.fileLog = toFile ? new LogFiles({ ...config, virtualServers: [] }) : undefined;
    // What keeps it from being opened kept the workers from starting, and was told by them.
    this.fileLog?.open();
    await previous?.close();
  }

  private reloadIfAsked(): void {
    if (!this.reloadAgain || this.reloading) return;
    this.reloadAgain = false;
    this.reload();
  }

  private refuse(problems: readonly Problem[]): void {
    const verdict = `reload refused, the running configuration stays: ${count(problems)}`;
    write(process.stderr, `${problemsText(problems)}portico: ${verdict}\n`);
    this.fileLog?.mainError.write("error", verdict);
    for (const p of problems) this.fileLog?.mainError.write("error", oneLine(p));
  }

  private warn(p: Problem): void {
    write(process.stderr, `portico: warning: ${formatProblem(p)}\n`);
    this.fileLog?.mainError.write("warn", oneLine(p));
  }

  private log(level: ErrorLevel, message: string): void {
    write(process.stderr, `portico: ${message}\n`);
    this.fileLog?.mainError.write(level, message);
  }

  private rotateTicketKeys(): void {
    this.ticketKeys = newTicketKeys();
    for (const generation of this.generations) {
      generation.broadcast({ type: "ticketKeys", ticketKeys: this.ticketKeys });
    }
  }

  /** Generations may still be added by a reload that is under way. */
  private async allGone(): Promise<void> {
    while (this.generations.size > 0) await Promise.all([...this.generations].map(({ gone }) => gone));
  }
}

const EXIT_OK = 0;
const EXIT_FAILED = 1;

/** A stolen ticket key opens recorded sessions only of half a day. */
const TICKET_KEYS_MS = 12 * 3_600_000;

function newTicketKeys(): string {
  return randomBytes(48).toString("base64");
}

function workerCount(config: ProxyConfig): number {
  return config.workers === "auto" ? availableParallelism() : config.workers;
}

function workersText(config: ProxyConfig): string {
  const number = workerCount(config);
  return `${number} worker${number === 1 ? "" : "s"}`;
}

function endpoints(config: ProxyConfig): string {
  return config.listeners.map((l) => `${l.protocol}://${keyOf(l.address, l.port)}`).join(" ");
}

function problemsText(problems: readonly Problem[]): string {
  return problems.map((p) => `${formatProblem(p)}\n`).join("");
}

function oneLine(p: Problem): string {
  return `${p.path === "" ? "" : `${p.path}: `}${p.message} [${p.code}]; ${p.fix}`;
}

function count(problems: readonly Problem[]): string {
  return problems.length === 1 ? "1 problem" : `${problems.length} problems`;
}

/** Output may be closed, as when a terminal goes away; serving does not depend on it. */
function write(stream: NodeJS.WriteStream, text: string): void {
  stream.write(text, () => undefined);
}
