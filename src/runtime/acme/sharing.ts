import { printableValue } from "../../model/printable.js";
import type { WantedCertificate } from "../../model/serving.js";
import { stateOfAll } from "../load/fileWatch.js";
import { systemReason } from "../load/systemReason.js";
import { AcmeError } from "./acmeError.js";
import { type Clock, MINUTE_MS, SECOND_MS, systemClock } from "./clock.js";
import { copiedFiles, copiesOf, type Outcome, takeCopies } from "./copies.js";
import { isOtherKey, type Link, listenForCopies, sendCopies } from "./copyLink.js";

export interface SharingOptions {
  readonly link: Link;
  /** Where certificates by ACME are kept. */
  readonly directory: string;
  /** The certificates that the current config wants. */
  readonly wanted: () => Promise<readonly WantedCertificate[]>;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

/**
 * One host's side of certificates that two hosts share. Each host sends its certificates, and the other host takes
 * those that are newer. So either host may get a certificate from the authority, and either may be down for a while.
 */
export class CertificateSharing {
  /** The state of the local files when the other host last accepted them. */
  private sent: { readonly files: string; readonly at: number } | undefined;
  private keysDiffer = false;
  /** The last log text, which is not logged again. */
  private last = "";

  constructor(private readonly options: SharingOptions) {}

  /**
   * Listens and sends until it is stopped, or the other host has another key: its caller starts it again, with the new
   * key.
   *
   * @throws if it cannot listen
   */
  async run(signal: AbortSignal): Promise<void> {
    const { link, clock = systemClock } = this.options;
    const server = await listenForCopies(
      link,
      (message) => this.take(message),
      // Whether it is this host's key that is old shows when it sends.
      () => (this.sent = undefined),
    );
    try {
      while (!signal.aborted && !this.keysDiffer) {
        const done = await this.turn(clock.now());
        await clock.wait(done ? TURN_MS : RETRY_MS, signal);
      }
    } finally {
      server.close();
    }
  }

  /** Sends changed files. Resolves with whether the other host now has all of them. */
  private async turn(now: number): Promise<boolean> {
    const { directory, link } = this.options;
    try {
      const wanted = await this.options.wanted();
      const files = await stateOfAll(copiedFiles(directory, wanted));
      if (this.sent?.files === files && Math.abs(now - this.sent.at) < AGAIN_MS) return true;
      const { taken, refused } = await sendCopies(link, await copiesOf(directory, wanted));
      this.say([
        ...taken.map((what) => `copied to ${link.peer}: ${what}`),
        ...refused.map((what) => `refused by ${link.peer}: ${what}`),
      ]);
      this.sent = refused.length === 0 ? { files, at: now } : undefined;
      return refused.length === 0;
    } catch (error) {
      this.keysDiffer = isOtherKey(error as Error);
      const why = this.keysDiffer ? "it has another key" : reasonOf(error as Error);
      this.say([`not copied to ${link.peer}: ${why}; retried every ${RETRY_MS / SECOND_MS} s`]);
      return false;
    }
  }

  private async take(message: unknown): Promise<Outcome> {
    const { directory, link, wanted, log, clock = systemClock } = this.options;
    const outcome = await takeCopies(directory, await wanted(), message, clock.now());
    for (const what of outcome.taken) log(`taken from ${link.peer}: ${what}`);
    return outcome;
  }

  private say(lines: readonly string[]): void {
    // The other host may have written some of it.
    const text = lines.map(printableValue).join("\n");
    if (text === this.last) return;
    this.last = text;
    if (text !== "") this.options.log(text);
  }
}

const reasonOf = (error: Error): string => (error instanceof AcmeError ? error.detail : systemReason(error));

/** How soon a change is noticed. */
const TURN_MS = 2 * SECOND_MS;
const RETRY_MS = 10 * SECOND_MS;
/** Files are sent again, because the other host may have lost them. */
const AGAIN_MS = 5 * MINUTE_MS;
