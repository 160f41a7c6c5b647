import { coarseNow } from "../sockets/deadlines.js";
import { ConnectionError, ErrorCode } from "../codec/http2/protocol.js";

/** Frames that a client can send in large numbers, that cost this side work and have no use. */
export const enum FloodKind {
  /** Its own RST_STREAM (CVE-2023-44487), and resets that it provokes (CVE-2025-8671). */
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
 * Counts such frames per second, and ends the connection of a client that sends too many. With too many resets the
 * connection takes no more streams, and those that are running go on: a browser cancels hundreds of requests when its user
 * scrolls, and may have an upload on the same connection.
 */
export class FloodGuard {
  private since = 0;
  private readonly counts = [0, 0, 0, 0, 0];

  /** @param tooManyResets called with the reason; counting goes on */
  constructor(
    private readonly resetsPerSecondMax: number,
    private readonly tooManyResets: (reason: string) => void,
  ) {}

  /**
   * @param weight how many of its kind it stands for
   * @throws ConnectionError with ENHANCE_YOUR_CALM (RFC 9113, 10.5)
   */
  count(kind: FloodKind, weight = 1): void {
    const { counts, resetsPerSecondMax } = this;
    const seconds = Math.floor((coarseNow() - this.since) / 1_000);
    if (seconds > 0) {
      const resets = Math.max(0, counts[FloodKind.Reset]! - seconds * resetsPerSecondMax);
      this.since = coarseNow();
      counts.fill(0);
      counts[FloodKind.Reset] = resets;
    }
    counts[kind]! += weight;
    if (kind === FloodKind.Reset) {
      if (counts[kind]! > resetsPerSecondMax * RESET_SECONDS)
        this.tooManyResets("client resets too many streams");
    } else if (counts[kind]! > LIMITS[kind])
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, FLOOD_REASONS[kind]);
  }

  /** A request got its whole response: the client has use for what it asks for. */
  completed(): void {
    if (this.counts[FloodKind.Reset]! > 0) this.counts[FloodKind.Reset]!--;
  }
}

/** So many seconds' resets may come at once. */
const RESET_SECONDS = 3;

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
