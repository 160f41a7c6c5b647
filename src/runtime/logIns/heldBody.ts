import { guarded } from "../sockets/guarded.js";
import { LASTING, type Memory } from "../sockets/memory.js";
import type { BodySink, Exchange, ExchangeHolder } from "../exchange/exchange.js";

/** A longer body of a log-in is not kept. */
export const HELD_BYTES_MAX = 16_384;

const NOTHING = Buffer.alloc(0);

/**
 * Keeps the body of a log-in until it is complete, or too long to keep; then gives it to whoever reads it, as if it had just
 * come.
 */
export class HeldBody implements BodySink, ExchangeHolder {
  /** The body so far, in one block: a piece of one byte costs no object. */
  private held = NOTHING;
  private bytes = 0;
  private ended = false;
  private paused = false;
  private decided = false;
  private reader: BodySink | undefined;
  private readonly own: Pick<Exchange, "readBody" | "pauseBody" | "resumeBody">;

  /** @param onHeld gets the body, or undefined if it is too long */
  constructor(
    private readonly exchange: Exchange,
    private readonly onHeld: (body: Buffer | undefined) => void,
  ) {
    const { readBody, pauseBody, resumeBody } = exchange;
    this.own = { readBody, pauseBody, resumeBody };
  }

  begin(): void {
    if (!this.exchange.hold(this)) return;
    this.exchange.readBody(this);
  }

  onData(chunk: Buffer, memory: Memory): boolean {
    if (this.reader !== undefined && this.bytes === 0) return this.reader.onData(chunk, memory);
    this.keep(chunk);
    if (!this.decided && this.bytes <= HELD_BYTES_MAX) return true;
    if (!this.decided) process.nextTick(guarded, this.exchange, () => this.decide(undefined));
    return false;
  }

  onEnd(): void {
    this.ended = true;
    if (!this.decided) return this.decide(this.held.subarray(0, this.bytes));
    if (this.bytes === 0) this.reader?.onEnd();
  }

  onDrain(): void {}

  onReleased(): void {
    this.held = NOTHING;
  }

  private keep(chunk: Buffer): void {
    const bytes = this.bytes + chunk.length;
    if (bytes > this.held.length) {
      const block = Buffer.allocUnsafeSlow(Math.max(bytes, Math.min(HELD_BYTES_MAX, this.held.length * 2)));
      this.held.copy(block, 0, 0, this.bytes);
      this.held = block;
    }
    chunk.copy(this.held, this.bytes);
    this.bytes = bytes;
  }

  private decide(body: Buffer | undefined): void {
    if (this.decided || this.exchange.released) return;
    this.decided = true;
    this.exchange.letGo(this);
    const { exchange } = this;
    exchange.readBody = (reader) => this.attach(reader);
    exchange.pauseBody = () => this.pause();
    exchange.resumeBody = () => this.resume();
    this.onHeld(body);
  }

  private attach(reader: BodySink): void {
    // A tunnel has bytes of its own.
    if (this.exchange.status === 101) {
      Object.assign(this.exchange, this.own);
      return this.exchange.readBody(reader);
    }
    this.reader = reader;
    process.nextTick(guarded, this.exchange, () => this.deliver());
  }

  private pause(): void {
    if (this.bytes > 0 || this.ended) this.paused = true;
    else this.own.pauseBody.call(this.exchange);
  }

  private resume(): void {
    if (!this.paused) return this.own.resumeBody.call(this.exchange);
    this.paused = false;
    this.deliver();
  }

  private deliver(): void {
    const { reader, exchange } = this;
    if (reader === undefined || this.paused || exchange.released) return;
    const body = this.held.subarray(0, this.bytes);
    this.held = NOTHING;
    this.bytes = 0;
    if (body.length > 0 && !reader.onData(body, LASTING)) {
      this.paused = true;
      return;
    }
    if (!this.ended) return this.own.resumeBody.call(exchange);
    this.ended = false;
    reader.onEnd();
  }
}
