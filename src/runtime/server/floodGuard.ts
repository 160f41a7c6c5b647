import { coarseNow } from "../sockets/deadlines.js";
import { ConnectionError, ErrorCode } from "../codec/http2/protocol.js";

/** Frames that a client can send in large numbers, that cost this side work and have no use. */
export const enum FloodKind {
  /** The client's own RST_STREAM (CVE-2023-44487), and resets that it provokes (CVE-2025-8671). */
  Reset,
  /** SETTINGS and PING, which are acknowledged (CVE-2019-9512, 9515). */
  Acknowledged,
  /** DATA frames without data (CVE-2019-9518). */
  EmptyData,
  /** Streams beyond the announced limit. */
  Excess,
  /** Frames without meaning here: PRIORITY (CVE-2019-9513), acknowledgements, tiny window updates, unknown ones. */
  Ignored,
}

/**
 * Counts such frames per second, and ends the connection of a client that sends too many. Too many resets first slow down the
 * client's requests: a browser cancels hundreds of them when its user scrolls. A client that goes on all the same gets no
 * more streams, and those that are running go on: one may be an upload.
 */
export class FloodGuard {
  private since = 0;
  private readonly counts = [0, 0, 0, 0, 0];
  /** So many resets may come at once; twice as many end the connection. */
  private readonly burst: number;

  /** @param tooManyResets called with the reason; counting goes on */
  constructor(
    private readonly resetsPerSecondMax: number,
    private readonly tooManyResets: (reason: string) => void,
  ) {
    this.burst = BURST_SECONDS * resetsPerSecondMax;
  }

  /** Whether requests of this client are slowed down, as it resets too many. */
  get slowsDown(): boolean {
    if (this.counts[FloodKind.Reset]! <= this.burst) return false;
    this.pass();
    return this.counts[FloodKind.Reset]! > this.burst;
  }

  /**
   * @param weight how many of its kind it stands for
   * @throws ConnectionError with ENHANCE_YOUR_CALM (RFC 9113, 10.5)
   */
  count(kind: FloodKind, weight = 1): void {
    const { counts } = this;
    this.pass();
    counts[kind]! += weight;
    if (kind === FloodKind.Reset) {
      if (counts[kind]! > 2 * this.burst) this.tooManyResets("client resets too many streams");
    } else if (counts[kind]! > LIMITS[kind])
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, FLOOD_REASONS[kind]);
  }

  /** A request got its whole response: the client has use for what it asks for. */
  completed(): void {
    const { counts } = this;
    counts[FloodKind.Reset] = Math.max(0, counts[FloodKind.Reset]! - 1);
  }

  /** What was counted in earlier seconds counts no more, except the resets that were more than may come in them. */
  private pass(): void {
    const { counts, resetsPerSecondMax } = this;
    const seconds = Math.floor((coarseNow() - this.since) / 1_000);
    if (seconds <= 0) return;
    const resets = Math.max(0, counts[FloodKind.Reset]! - seconds * resetsPerSecondMax);
    this.since = coarseNow();
    counts.fill(0);
    counts[FloodKind.Reset] = resets;
  }
}

const BURST_SECONDS = 3;

/** What the reset of a stream counts whose request was not dispatched. */
export const UNDISPATCHED_RESET = 1 / 4;

type Limited = Exclude<FloodKind, FloodKind.Reset>;

const LIMITS: Readonly<Record<Limited, number>> = {
  [FloodKind.Acknowledged]: 1_000,
  [FloodKind.EmptyData]: 200,
  [FloodKind.Excess]: 1_000,
  [FloodKind.Ignored]: 20_000,
};

const FLOOD_REASONS: Readonly<Record<Limited, string>> = {
  [FloodKind.Acknowledged]: "client sends too many SETTINGS or PING frames",
  [FloodKind.EmptyData]: "client sends too many empty DATA frames",
  [FloodKind.Excess]: "client opens too many streams at once",
  [FloodKind.Ignored]: "client sends too many frames that do nothing",
};
