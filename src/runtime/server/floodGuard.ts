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

/** Counts such frames per second, and ends the connection of a client that sends too many. */
export class FloodGuard {
  private since = 0;
  private readonly counts = [0, 0, 0, 0, 0];
  private readonly limits: readonly number[];

  constructor(resetsPerSecondMax: number) {
    this.limits = [resetsPerSecondMax, 1_000, 200, 1_000, 20_000];
  }

  /**
   * @param weight how many of its kind it stands for
   * @throws ConnectionError with ENHANCE_YOUR_CALM (RFC 9113, 10.5)
   */
  count(kind: FloodKind, weight = 1): void {
    const now = coarseNow();
    if (now - this.since >= 1_000) {
      this.since = now;
      this.counts.fill(0);
    }
    this.counts[kind]! += weight;
    if (this.counts[kind]! > this.limits[kind]!)
      throw new ConnectionError(ErrorCode.EnhanceYourCalm, FLOOD_REASONS[kind]!);
  }
}

const FLOOD_REASONS = [
  "client resets too many streams",
  "client sends too many SETTINGS or PING frames",
  "client sends too many empty DATA frames",
  "client opens too many streams at once",
  "client sends too many frames that do nothing",
];
