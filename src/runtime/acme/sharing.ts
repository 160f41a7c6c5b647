import { HOUR_MS, MINUTE_MS, SECOND_MS } from "../../model/text/duration.js";
import { printableValue } from "../../model/text/printable.js";
import type { Problem, WantedCertificate } from "../../model/serving.js";
import { stateOfAll } from "../load/fileWatch.js";
import { systemReason } from "../files/systemReason.js";
import { AcmeError } from "./acmeError.js";
import { type Clock, systemClock } from "./clock.js";
import { copiedFiles, copiesOf, type CopiesResult, takeCopies } from "./copies.js";
import { isOtherKey, isOtherProgram, type CopyLink, listenForCopies, sendCopies } from "./copyLink.js";

export interface SharingOptions {
  readonly link: CopyLink;
  /** The folder in which certificates by ACME are kept. */
  readonly directory: string;
  /** The certificates that the current config wants. */
  readonly wanted: () => Promise<readonly WantedCertificate[]>;
  readonly log: (line: string) => void;
  /** Why it cannot listen. @param error name of the system's error */
  readonly cannotListen: (error: string) => Problem;
  readonly clock?: Clock;
}

/**
 * The side of one of two hosts that share certificates. Each host sends its certificates, and the other host takes those
 * that are newer. So either host may get a certificate from the authority, and either may be down for a while.
 */
export class CertificateSharing {
  /** The state of the local files when the other host last accepted them. */
  private sent: { readonly files: string; readonly at: number } | undefined;
  /** How often the other host had another key, since it took copies. */
  private otherKeys = 0;
  /** The last texts about sending and about listening, which are not logged again. */
  private readonly last = { sending: "", listening: "" };
  private readonly lines: LineBudget;
  private readonly clock: Clock;

  constructor(private readonly options: SharingOptions) {
    this.clock = options.clock ?? systemClock;
    this.lines = new LineBudget(options.log, this.clock);
  }

  /**
   * Listens and sends until it is stopped, or the other host has another key for a while: its caller starts it again,
   * with the new key. While it cannot listen, it still sends.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this;
    let close: (() => Promise<void>) | undefined;
    try {
      while (!signal.aborted && this.otherKeys < OTHER_KEYS_MAX) {
        close ??= await this.listen();
        const done = await this.turn(clock.now(), signal);
        await clock.wait(done ? TURN_MS : RETRY_MS, signal);
      }
    } finally {
      await close?.();
    }
  }

  /** Whoever is first on a port keeps it from others, also another user of this host. */
  private async listen(): Promise<(() => Promise<void>) | undefined> {
    try {
      const close = await listenForCopies(
        this.options.link,
        (message) => this.take(message),
        // Whether it is this host's key that is old shows when it sends.
        () => (this.sent = undefined),
      );
      this.say("listening", this.last.listening === "" ? [] : ["takes copies again"]);
      return close;
    } catch (error) {
      const p = this.options.cannotListen((error as NodeJS.ErrnoException).code ?? (error as Error).message);
      this.say("listening", [
        `${p.path}: ${p.message}; copies are still sent, and none are taken; fix: ${p.fix}`,
      ]);
      return undefined;
    }
  }

  /** Sends changed files. Resolves with whether the other host now has all of them. */
  private async turn(now: number, signal: AbortSignal): Promise<boolean> {
    const { directory, link } = this.options;
    try {
      const wanted = await this.options.wanted();
      const files = await stateOfAll(copiedFiles(directory, wanted));
      if (this.sent?.files === files && Math.abs(now - this.sent.at) < AGAIN_MS) return true;
      const { taken, refused } = await sendCopies(link, await copiesOf(directory, wanted), signal);
      this.say("sending", [
        ...taken.map((what) => `copied to ${link.peer}: ${what}`),
        ...refused.map((what) => `refused by ${link.peer}: ${what}`),
      ]);
      this.otherKeys = 0;
      this.sent = refused.length === 0 ? { files, at: now } : undefined;
      return refused.length === 0;
    } catch (error) {
      if (isOtherKey(error as Error)) this.otherKeys += 1;
      if (!signal.aborted) this.say("sending", [this.notSent(error as Error)]);
      return false;
    }
  }

  private notSent(error: Error): string {
    const { peer, port } = this.options.link;
    const fix = isOtherProgram(error) && !isOtherKey(error) ? otherProgramFix(port) : "";
    return `not copied to ${peer}: ${reasonOf(error)}; retried every ${RETRY_MS / SECOND_MS} s${fix}`;
  }

  private async take(message: unknown): Promise<CopiesResult> {
    const { directory, link, wanted } = this.options;
    const outcome = await takeCopies(directory, await wanted(), message, this.clock.now());
    this.lines.write(outcome.taken.map((what) => `taken from ${link.peer}: ${what}`));
    return outcome;
  }

  private say(about: keyof typeof this.last, lines: readonly string[]): void {
    const text = lines.join("\n");
    if (text === this.last[about]) return;
    this.last[about] = text;
    this.lines.write(lines);
  }
}

const otherProgramFix = (port: number): string =>
  `; fix: on that host, stop the program that listens on port ${port} (ss -ltnp): it is not portico-copies.service`;

function reasonOf(error: Error): string {
  if (error instanceof AcmeError) return error.detail;
  if (isOtherKey(error)) return "it has another key";
  return isOtherProgram(error) ? "another program responds there" : systemReason(error);
}

/** Lines for the log, of which the other host can cause only so many: it chooses some of the words, and how often. */
class LineBudget {
  private since = -Infinity;
  private written = 0;

  constructor(
    private readonly log: (line: string) => void,
    private readonly clock: Clock,
  ) {}

  write(lines: readonly string[]): void {
    const now = this.clock.now();
    if (Math.abs(now - this.since) >= HOUR_MS) {
      this.since = now;
      this.written = 0;
    }
    for (const line of lines) {
      this.written += 1;
      if (this.written <= LINES_MAX) this.log(shortened(printableValue(line)));
      else if (this.written === LINES_MAX + 1)
        this.log(`more than ${LINES_MAX} lines in an hour: the next one is in the hour after`);
    }
  }
}

/** Two hundred certificates, once in each direction. */
const LINES_MAX = 500;
const LINE_CHARACTERS_MAX = 500;

const shortened = (line: string): string =>
  line.length > LINE_CHARACTERS_MAX ? `${line.slice(0, LINE_CHARACTERS_MAX)}…` : line;

/** How soon a change is noticed. */
const TURN_MS = 2 * SECOND_MS;
const RETRY_MS = 10 * SECOND_MS;
/** Files are sent again, because the other host may have lost them. */
const AGAIN_MS = 5 * MINUTE_MS;
/** Any user of the other host can pretend to have another key, if `portico-copies.service` does not run there. */
const OTHER_KEYS_MAX = 3;
