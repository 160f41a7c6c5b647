import fs from "node:fs";
import type {
  AccessLogConfig,
  ErrorLogConfig,
  Problem,
  ProxyConfig,
  RouteConfig,
} from "../../model/index.js";
import type { AccessLog, ErrorLog, LoggedExchange } from "../exchange/exchange.js";
import { LogFile } from "./logFile.js";
import { combinedLine, errorLine, jsonLine } from "./logFormat.js";

export interface LogOptions {
  /** Whether every line also goes to standard error. Default false. */
  readonly stderr?: boolean;
  /** Whether files are written; a preview uses false, with `stderr`. Default true. */
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
  private readonly files = new Map<string, LogFile>();
  private readonly stderr = new LogFile(undefined, report);
  private readonly copyToStderr: boolean;
  private readonly toFiles: boolean;
  private readonly insteadOfErrors: LogFile | undefined;
  private readonly atExit = (): void => this.all().forEach((file) => file.flushSync());

  constructor(config: ProxyConfig, options: LogOptions = {}) {
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

  /** Opens every file; a problem for each that cannot be written. */
  open(): Problem[] {
    const problems = this.each((file) => file.open());
    process.off("exit", this.atExit).on("exit", this.atExit);
    return problems;
  }

  /** Opens every path again (SIGUSR1, after a rotation). What cannot be opened keeps its old file. */
  reopen(): Problem[] {
    return this.each((file) => file.reopen());
  }

  /** Resolves when all that was logged so far is written. */
  async flush(): Promise<void> {
    await Promise.all(this.all().map((file) => file.flush()));
  }

  /** Writes what waits and closes the files. */
  async close(): Promise<void> {
    process.off("exit", this.atExit);
    await Promise.all(this.all().map((file) => file.close()));
  }

  private all(): LogFile[] {
    return [...this.files.values(), this.stderr];
  }

  private each(step: (file: LogFile) => Problem | undefined): Problem[] {
    return [...this.files.values()].map(step).filter((found) => found !== undefined);
  }

  private accessLog(config: AccessLogConfig): AccessLog {
    if (config === "off") return this.copyToStderr ? accessWriter(combinedLine, [this.stderr]) : NO_LOG;
    return accessWriter(config.format === "json" ? jsonLine : combinedLine, this.targets(config.path));
  }

  /** @param main an error must not vanish: if the main log is off, it goes to standard error */
  private errorLog(config: ErrorLogConfig, main: boolean): ErrorLog {
    if (config === "off") return main || this.copyToStderr ? errorWriter([this.stderr]) : NO_LOG;
    const targets = this.targets(config.path);
    if (this.insteadOfErrors !== undefined && targets[0] !== undefined)
      targets[0].instead = this.insteadOfErrors;
    return errorWriter(main && targets.length === 0 ? [this.stderr] : targets);
  }

  private targets(path: string): LogFile[] {
    const targets: LogFile[] = this.copyToStderr ? [this.stderr] : [];
    if (!this.toFiles) return targets;
    let file = this.files.get(path);
    if (file === undefined) this.files.set(path, (file = new LogFile(path, report)));
    return [file, ...targets];
  }
}

const NO_LOG: AccessLog & ErrorLog = { write: () => undefined };

function accessWriter(format: (exchange: LoggedExchange) => string, files: readonly LogFile[]): AccessLog {
  const [only] = files;
  if (only === undefined) return NO_LOG;
  if (files.length === 1) return { write: (exchange) => only.append(format(exchange)) };
  return {
    write: (exchange) => {
      const line = format(exchange);
      for (const file of files) file.append(line);
    },
  };
}

function errorWriter(files: readonly LogFile[]): ErrorLog {
  return {
    write: (level, message, exchange, upstream) => {
      const line = errorLine(level, message, exchange, upstream);
      for (const file of files) file.append(line);
    },
  };
}

/** Trouble with a log is reported where no log file is needed; if that fails too, it cannot be reported at all. */
function report(message: string): void {
  try {
    fs.writeSync(2, `portico: ${message}\n`);
  } catch {
    // Standard error is closed or full.
  }
}
