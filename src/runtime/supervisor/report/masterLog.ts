import type { Problem, ProxyConfig } from "../../../model/serving.js";
import { printableValue } from "../../../model/text/printable.js";
import type { ErrorLevel } from "../../exchange/exchange.js";
import { LogFiles } from "../../logs/logFiles.js";
import { problemCount, problemLine, problemsText, write } from "./masterReport.js";
import type { OverviewEvent } from "../../status/overview.js";

/** The master's log: standard error, and the main error log if that is a file. */
export class MasterLog {
  /** The last lines, for the status. */
  readonly recent = new RecentEvents();
  private file: LogFiles | undefined;

  /** @param filesToo whether log files are used at all */
  constructor(private readonly filesToo: boolean) {}

  /** Uses the main error log of a config from now on. */
  async use(config: ProxyConfig): Promise<void> {
    const previous = this.file;
    const { error } = config.logs;
    // The master's messages go to standard error in any case.
    const toFile = error !== "off" && "path" in error && this.filesToo;
    const options = { errorsToStderr: false };
    this.file = toFile ? new LogFiles({ ...config, virtualServers: [] }, options) : undefined;
    // If it cannot be opened, a warning about the config has the reason.
    this.file?.open();
    await previous?.close();
  }

  reopen(): void {
    for (const p of this.file?.reopen() ?? []) this.write("error", `${p.path}: ${p.message}`);
  }

  async close(): Promise<void> {
    await this.file?.close();
  }

  write(level: ErrorLevel, message: string): void {
    this.recent.add(level, message);
    write(process.stderr, `portico: ${message}\n`);
    this.file?.mainError.write(level, message);
  }

  warn(...problems: readonly Problem[]): void {
    for (const p of problems) {
      this.recent.add("warn", p.code, [p]);
      write(process.stderr, `portico: warning: ${problemsText([p])}`);
      this.file?.mainError.write("warn", problemLine(p));
    }
  }

  /** A request that was refused because of these problems. */
  refuse(verdict: string, problems: readonly Problem[]): void {
    const text = `${verdict}: ${problemCount(problems)}`;
    this.recent.add("error", text, problems);
    write(process.stderr, `${problemsText(problems)}portico: ${text}\n`);
    this.file?.mainError.write("error", text);
    for (const p of problems) this.file?.mainError.write("error", problemLine(p));
  }
}

/** The last things that a master said, bounded in number and length. */
class RecentEvents {
  private readonly events: OverviewEvent[] = [];

  constructor(private readonly now: () => number = Date.now) {}

  add(level: ErrorLevel, message: string, problems: readonly Problem[] = []): void {
    const short = problems.slice(0, PROBLEMS_MAX).map(({ path, message: what, fix }) => ({
      path: shortened(path),
      message: shortened(what),
      fix: shortened(fix),
    }));
    this.events.unshift({ at: this.now(), level, message: shortened(message), problems: short });
    this.events.length = Math.min(this.events.length, EVENTS_MAX);
  }

  /** The newest first. */
  get list(): readonly OverviewEvent[] {
    return [...this.events];
  }
}

const EVENTS_MAX = 30;
const PROBLEMS_MAX = 5;
const TEXT_CHARACTERS_MAX = 400;

function shortened(text: string): string {
  const shown = printableValue(text);
  return shown.length > TEXT_CHARACTERS_MAX ? `${shown.slice(0, TEXT_CHARACTERS_MAX)}…` : shown;
}
