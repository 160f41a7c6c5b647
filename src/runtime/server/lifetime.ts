import { respondFailure } from "../dispatch/errorPages.js";
import type { Exchange, Holdable, ExchangeHolder, LoggedExchange } from "../exchange/exchange.js";
import { guarded, type Guarded } from "../sockets/guarded.js";
import type { RequestBody } from "../exchange/requestBody.js";
import { tally } from "../exchange/tally.js";
import type { ErrorToken } from "../../model/index.js";
import type { LoggedRequest } from "../codec/request.js";

const enum Stage {
  /** The action works on the exchange, and may acquire something for it. */
  Open,
  /** What was acquired is given back; the side that ends it may still respond, at once. */
  Released,
  /** Complete or given up, and logged. */
  Over,
}

/**
 * The end of an exchange. Whichever side ends it (the action, the client, the protocol, an upstream, a deadline, a
 * fault), the same steps run once and in this order:
 *
 *     Open ──release──> Released ──finish──> Over
 *       1. its body is not delivered any more
 *       2. its holder gives back its resources: a file, a connection, a place in a queue
 *       3. a response that replaces the action's is sent, if none has begun
 *       4. it is logged
 *
 * Nothing can be acquired once it is released: code that hands out a resource calls {@link hold} first. So resources of
 * an exchange need no deadlines except the exchange's own.
 */
export abstract class Lifetime implements Holdable, Guarded {
  /** The request body, and after an upgrade the tunnel's bytes; undefined for a request without one. */
  abstract readonly body: RequestBody | undefined;
  abstract readonly request: LoggedRequest;
  /** Whether it is a tunnel now: then its end is not classified as a failure of the client. */
  abstract readonly tunnelled: boolean;
  requestId: string | undefined = undefined;
  errorToken: ErrorToken | undefined = undefined;
  headMs = -1;
  upstreamServer: string | undefined = undefined;
  upstreamBegunMs = -1;
  upstreamConnectMs = -1;
  countedSent = 0;
  countedReceived = 0;
  private stage = Stage.Open;
  private holder: ExchangeHolder | undefined = undefined;

  /** @param ends called when it is over, however it ended */
  constructor(private readonly ends: { finished(exchange: LoggedExchange): void }) {
    tally.exchangesBegun++;
  }

  /** Bytes of its body and of its tunnel that arrived. */
  get bodyBytesReceived(): number {
    return this.body === undefined ? 0 : this.body.received;
  }

  get released(): boolean {
    return this.stage !== Stage.Open;
  }

  /** True once the response is complete or given up. */
  get over(): boolean {
    return this.stage === Stage.Over;
  }

  hold(holder: ExchangeHolder): boolean {
    if (this.stage !== Stage.Open) return false;
    if (this.holder !== undefined && this.holder !== holder)
      throw new Error("an exchange that is held was to be held by another holder as well");
    this.holder = holder;
    return true;
  }

  letGo(holder: ExchangeHolder): void {
    if (this.holder === holder) this.holder = undefined;
  }

  /** Takes it out of its action's hands, for the side that ends it instead. */
  release(): void {
    if (this.stage !== Stage.Open) return;
    this.stage = Stage.Released;
    this.body?.abandon();
    const { holder } = this;
    this.holder = undefined;
    if (holder !== undefined) guarded(this, giveBack, holder);
  }

  /** The client, or the time that it was given, ended its body: it gets the status if nothing was sent yet. */
  bodyFailed(this: Lifetime & Exchange, status: 400 | 408 | 413): void {
    if (this.over) return;
    this.release();
    respondFailure(this, "http_request_error", status);
  }

  /** The stream or its connection is closed, before the response was complete. */
  leave(this: Lifetime & LoggedExchange): void {
    if (!this.over && !this.tunnelled) this.errorToken ??= "client_gone";
    this.finish();
  }

  /** Closes its tunnel, if it is one, in an orderly way. */
  closeTunnel(): void {
    if (this.holder !== undefined) guarded(this, endTunnel, this.holder);
  }

  abstract onFault(error: unknown): void;

  /** @returns false if it was over before, or ended while its holder gave back its resources */
  protected finish(this: Lifetime & LoggedExchange): boolean {
    this.release();
    if (this.stage === Stage.Over) return false;
    this.stage = Stage.Over;
    tally.exchangesOver++;
    this.ends.finished(this);
    return true;
  }

  /** The head of the response is made. */
  protected noteHead(): void {
    // A difference, because small integers are not allocated, as a time would be.
    this.headMs = (performance.now() - this.request.receivedAt) | 0;
  }

  /** The client takes more of the response. */
  protected drained(): void {
    if (this.holder !== undefined) guarded(this, goOn, this.holder);
  }
}

function goOn(this: Guarded, holder: ExchangeHolder): void {
  holder.onDrain();
}

function endTunnel(this: Guarded, holder: ExchangeHolder): void {
  holder.onTunnelClosing?.();
}

function giveBack(this: Guarded, holder: ExchangeHolder): void {
  holder.onReleased();
}
