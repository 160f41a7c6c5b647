import type {
  AccessLogConfig,
  ErrorLogConfig,
  Problem,
  ProxyConfig,
  RouteConfig,
} from "../../model/index.js";
import type { AccessLog, ErrorLog, LoggedExchange } from "../exchange/exchange.js";
import { type ShownClient, shownClient } from "./loggedClient.js";
import { LogFile, type LogTarget } from "./logFile.js";
import { combinedLine, errorLine, jsonLine } from "./logFormat.js";
import { fittingLine } from "./standardStreams.js";

export interface LogOptions {
  /** Whether every line also goes to standard error. Default false. */
  readonly stderr?: boolean;
  /** Whether files and streams of the config are written; a preview uses false, with `stderr`. Default true. */
  readonly files?: boolean;
  /** Whether lines of an error log go to standard error while it cannot be opened. Default true. */
  readonly errorsToStderr?: boolean;
}

/**
 * The log files of one worker: each path is opened once, however many routes write to it.
 * Nothing is opened before `open`; lines that come earlier wait.
 */
export class LogFiles {
  readonly mainAccess: AccessLog;
  readonly mainError: ErrorLog;
  /** Whether a line of an access log shows the group of the connection's key exchange. */
  showsTlsGroup = false;
  private readonly files = new Map<string, LogFile>();
  /**
   * Trouble with a log is reported where no log file is needed; if that fails too, it cannot be reported at all.
   */
  private readonly report = (message: string): void => this.stderr.append(`portico: ${message}\n`);
  private readonly stdout = new LogFile({ stream: "stdout" }, this.report);
  private readonly stderr: LogFile = new LogFile({ stream: "stderr" }, this.report);
  private readonly copyToStderr: boolean;
  private readonly toFiles: boolean;
  private readonly insteadOfErrors: LogFile | undefined;
  private readonly shown: ShownClient;
  private readonly atExit = (): void =>
    [...this.files.values(), this.stdout, this.stderr].forEach((file) => file.flushSync());

  constructor(config: ProxyConfig, options: LogOptions = {}) {
    this.shown = shownClient(config.logs.clientAddress);
    this.copyToStderr = options.stderr === true;
    this.toFiles = options.files ?? true;
    this.insteadOfErrors = (options.errorsToStderr ?? true) && !this.copyToStderr ? this.stderr : undefined;
    this.mainAccess = this.accessLog(config.logs.access);
    this.mainError = this.errorLog(config.logs.error, true);
    // Every route's file is known before `open`, so that one call opens, or refuses, all of them.
    for (const route of config.virtualServers.flatMap((server) => server.routes)) {
      this.accessLogFor(route);
      this.errorLogFor(route);
    }
  }

  /** The route's own access log, or the main one. */
  accessLogFor(route: RouteConfig): AccessLog {
    return route.accessLog === undefined ? this.mainAccess : this.accessLog(route.accessLog);
  }

  /** The route's own error log, or the main one. */
  errorLogFor(route: RouteConfig): ErrorLog {
    return route.errorLog === undefined ? this.mainError : this.errorLog(route.errorLog, false);
  }

  /** Whether a write waits for a reader. */
  get isHeldUp(): boolean {
    return this.stdout.isHeldUp || this.stderr.isHeldUp;
  }

  /** Opens every file; a problem for each that cannot be written. */
  open(): Problem[] {
    const problems = this.each((file) => file.open());
    process.off("exit", this.atExit).on("exit", this.atExit);
    return problems;
  }

  /** Opens every path again (SIGUSR1, after a rotation). A log that cannot be opened keeps its old file. */
  reopen(): Problem[] {
    return this.each((file) => file.reopen());
  }

  /** Resolves when all that was logged so far is written. */
  async flush(): Promise<void> {
    await this.settle((file) => file.flush());
  }

  /** Writes waiting lines and closes the files. */
  async close(): Promise<void> {
    process.off("exit", this.atExit);
    await this.settle((file) => file.close());
  }

  /** Standard error comes last, because the other logs write their errors to it. */
  private async settle(step: (file: LogFile) => Promise<void>): Promise<void> {
    await Promise.all([...this.files.values(), this.stdout].map(step));
    await step(this.stderr);
  }

  private each(step: (file: LogFile) => Problem | undefined): Problem[] {
    return [...this.files.values()].map(step).filter((found) => found !== undefined);
  }

  private accessLog(config: AccessLogConfig): AccessLog {
    if (config === "off") return this.copyToStderr ? this.accessWriter(combinedLine, [this.stderr]) : NO_LOG;
    if (config.format === "json") this.showsTlsGroup = true;
    return this.accessWriter(config.format === "json" ? jsonLine : combinedLine, this.targets(config));
  }

  /** @param main an error must not vanish: if the main log is off, it goes to standard error */
  private errorLog(config: ErrorLogConfig, main: boolean): ErrorLog {
    if (config === "off") return main || this.copyToStderr ? this.errorWriter([this.stderr]) : NO_LOG;
    const targets = this.targets(config);
    if (targets[0] !== undefined) targets[0].instead = this.insteadOfErrors;
    return this.errorWriter(main && targets.length === 0 ? [this.stderr] : targets);
  }

  private targets(target: LogTarget): LogFile[] {
    const copy: LogFile[] = this.copyToStderr ? [this.stderr] : [];
    return this.toFiles ? [this.fileOf(target), ...copy] : copy;
  }

  private fileOf(target: LogTarget): LogFile {
    if ("stream" in target) return target.stream === "stdout" ? this.stdout : this.stderr;
    let file = this.files.get(target.path);
    if (file === undefined) this.files.set(target.path, (file = new LogFile(target, this.report)));
    return file;
  }

  private accessWriter(format: LineFormat, files: readonly LogFile[]): AccessLog {
    const [only] = files;
    if (only === undefined) return NO_LOG;
    const { shown } = this;
    const shownFormat = (exchange: LoggedExchange): string => format(exchange, shown);
    const lineBytesMax = Math.min(...files.map((file) => file.lineBytesMax));
    const line = (exchange: LoggedExchange): string => fittingLine(shownFormat, exchange, lineBytesMax);
    if (files.length === 1) return { write: (exchange) => only.append(line(exchange)) };
    return {
      write: (exchange) => {
        const text = line(exchange);
        for (const file of files) file.append(text);
      },
    };
  }

  private errorWriter(files: readonly LogFile[]): ErrorLog {
    return {
      write: (level, message, exchange, upstream) => {
        const line = errorLine(level, message, exchange, upstream, this.shown);
        for (const file of files) file.append(line);
      },
    };
  }
}

type LineFormat = (exchange: LoggedExchange, shown: ShownClient) => string;

const NO_LOG: AccessLog & ErrorLog = { write: () => undefined };
