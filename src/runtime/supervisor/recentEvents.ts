import { printableValue } from "../../model/printable.js";
import type { Problem } from "../../model/serving.js";
import type { ErrorLevel } from "../exchange/exchange.js";
import type { OverviewEvent } from "../status/overview.js";

/** The last things that a master said, bounded in number and length. */
export class RecentEvents {
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
