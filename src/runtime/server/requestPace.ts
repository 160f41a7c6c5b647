import type { Dispatcher } from "../dispatch/dispatch.js";
import { SWEEP_MS } from "../sockets/deadlines.js";
import { type Guarded, guarded } from "../sockets/guarded.js";
import type { RequestBody } from "../exchange/requestBody.js";
import type { FloodGuard } from "./floodGuard.js";

/** A request of an HTTP/2 stream, as its turn concerns it. */
export interface PacedRequest extends Guarded {
  /** The request waits, because its client resets too many streams. */
  undispatched: boolean;
  readonly body: RequestBody | undefined;
  /** Finds the action that responds. */
  dispatch(dispatcher: Dispatcher): void;
}

/**
 * Dispatches the requests of one connection: at once, or some in each sweep after its client has reset too many streams. A
 * browser that cancels requests because its user scrolls is slower then, and loses nothing. A stream that is reset while
 * its request waits has cost little: only its head was read.
 */
export class RequestPace {
  /** In the order in which they came. */
  private readonly waiting = new Set<PacedRequest>();
  private readonly perSweep: number;

  /** @param perSecond how many requests are dispatched in a second while they are slowed down */
  constructor(
    private readonly guard: FloodGuard,
    private readonly dispatcher: Dispatcher,
    perSecond: number,
  ) {
    this.perSweep = Math.ceil((perSecond * SWEEP_MS) / 1_000);
  }

  add(exchange: PacedRequest): void {
    if (this.waiting.size === 0 && !this.guard.slowsDown) return this.dispatch(exchange);
    exchange.undispatched = true;
    this.waiting.add(exchange);
  }

  /** The stream is closed: the request's head must not be kept until its turn would come. */
  remove(exchange: PacedRequest): void {
    this.waiting.delete(exchange);
  }

  /** @returns whether all that was added is dispatched */
  sweep(): boolean {
    let left = this.perSweep;
    for (const exchange of this.waiting) {
      if (left-- === 0) return false;
      this.waiting.delete(exchange);
      exchange.undispatched = false;
      this.dispatch(exchange);
    }
    return true;
  }

  private dispatch(exchange: PacedRequest): void {
    guarded(exchange, exchange.dispatch, this.dispatcher);
    exchange.body?.begin();
  }
}
