import type { RunningExchange } from "../exchange/exchange.js";

/** How fast clients send the bodies of requests in progress. Ordinary requests pay nothing: only looks measure it. */
export class Paces {
  private readonly marks = new WeakMap<RunningExchange, Mark>();

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * Time counts only while the client could send, and while somebody looks: a slow upstream is not the client's fault,
   * nor is a worker that stood still. A client that has sent the bytes of a whole window begins another.
   *
   * @returns whether the client sent less than that rate for {@link PACE_WINDOW_MS}
   */
  isSlow(exchange: RunningExchange, bytesPerSecond: number): boolean {
    const [now, bytes] = [this.now(), exchange.bodyBytesReceived];
    const mark = this.marks.get(exchange);
    if (mark === undefined || bytes - mark.bytes >= (bytesPerSecond * PACE_WINDOW_MS) / 1_000) {
      this.marks.set(exchange, { bytes, waitedMs: 0, lookedAt: now });
      return false;
    }
    if (exchange.awaitsBody) mark.waitedMs += Math.min(now - mark.lookedAt, LOOK_MS_MAX);
    mark.lookedAt = now;
    return mark.waitedMs >= PACE_WINDOW_MS;
  }
}

interface Mark {
  /** Bytes that had arrived when the window began. */
  readonly bytes: number;
  /** How long the exchange has waited for more since then. */
  waitedMs: number;
  lookedAt: number;
}

/** A phone may be without reception for nearly as long. */
export const PACE_WINDOW_MS = 30_000;
/** Looks come four times a second. */
const LOOK_MS_MAX = 1_000;

/**
 * How long a request will still run: if the length of its body is known, its pace so far decides; if not, it is expected to
 * take as long again as it took so far.
 */
export function expectedMs(exchange: RunningExchange, now = performance.now()): number {
  const { request, bodyBytesReceived, bodyBytesSent, responseBytes } = exchange;
  const ageMs = now - request.receivedAt;
  const uploads = bodyBytesReceived < request.bodyLength;
  const [moved, total] = uploads ? [bodyBytesReceived, request.bodyLength] : [bodyBytesSent, responseBytes];
  return moved === 0 || total <= 0 ? ageMs : ((total - moved) / moved) * ageMs;
}
