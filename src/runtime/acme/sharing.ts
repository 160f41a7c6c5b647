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
  /** What the config wants now. */
  readonly wanted: () => Promise<readonly WantedCertificate[]>;
  readonly log: (line: string) => void;
  readonly clock?: Clock;
}

/**
 * One host's side of certificates that two hosts share. Each gives what it has to the other one, which takes what is newer:
 * so it does not matter which of them the authority issued a certificate to, or which of them was away meanwhile.
 */
export class CertificateSharing {
  /** What the other host has, by the state of the files here. */
  private sent: { readonly files: string; readonly at: number } | undefined;
  private keysDiffer = false;
  /** What was said last: the same is not said again. */
  private last = "";

  constructor(private readonly options: SharingOptions) {}

  /**
   * Listens and sends until it is stopped, or the other host has another key: its caller starts it again, with
   * the key that is there then.
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

  /** Sends what has changed. Resolves with whether the other host has all of it now. */
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
      this.say([`not copied to ${link.peer}: ${why}; tried again every ${RETRY_MS / SECOND_MS} s`]);
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
/** The other host may have lost what it had. */
const AGAIN_MS = 5 * MINUTE_MS;
