import type { Exchange } from "../exchange/exchange.js";
import { sweepRegularly } from "../sockets/deadlines.js";
import { guarded } from "../sockets/guarded.js";
import type { Memory } from "../sockets/memory.js";
import { TUNNEL_END_MS } from "../upstream/responseReader.js";

/** The upstream's data after an upgrade, in a protocol of which nothing is known. */
export class Tunnel {
  constructor(protected readonly exchange: Exchange) {}

  /** Does the same as `Exchange.sendData`. */
  sendData(chunk: Buffer, memory: Memory): boolean {
    return this.exchange.sendData(chunk, memory);
  }

  /** The client takes more. */
  onDrain(): void {}

  /** Ends it: the client sees the end of the connection. */
  close(): void {
    this.exchange.end();
  }

  /** The client has ended its side and may still read. An upstream that ignores this end must not keep the tunnel. */
  clientEnded(): void {
    const { exchange } = this;
    let [sent, since] = [-1, 0];
    const sweep = (now: number): void => {
      if (exchange.bodyBytesSent !== sent) [sent, since] = [exchange.bodyBytesSent, now];
      if (now - since >= TUNNEL_END_MS) exchange.end();
      if (exchange.released) stop();
    };
    const stop = sweepRegularly({ sweep, onFault: (error) => exchange.onFault(error) });
  }
}

/** The upstream's data in a WebSocket. Ends it in an orderly way: by a Close frame between two frames. */
export class WebSocketTunnel extends Tunnel {
  private readonly frames = new WebSocketFrames();
  private state: "open" | "closing" | "closed" = "open";
  /** The client takes nothing at the moment. */
  private stalled = false;

  override sendData(chunk: Buffer, memory: Memory): boolean {
    // Data after a Close frame is discarded (RFC 6455, 5.5.1).
    if (this.state === "closed") return true;
    if (this.state === "open") this.frames.advance(chunk);
    else {
      const end = this.frames.advanceToEnd(chunk);
      if (end !== -1) {
        if (end > 0) this.exchange.sendData(chunk.subarray(0, end), memory);
        this.sendClose();
        return true;
      }
    }
    this.stalled = !this.exchange.sendData(chunk, memory);
    return !this.stalled;
  }

  override onDrain(): void {
    this.stalled = false;
    if (this.state === "closing" && this.frames.between) this.sendClose();
  }

  /**
   * Tells the client to reconnect. The client's Close frame reaches the upstream, which ends the connection, or a
   * deadline does.
   */
  override close(): void {
    if (this.state !== "open") return;
    this.state = "closing";
    if (this.frames.between && !this.stalled) this.sendClose();
    setTimeout(() => guarded(this.exchange, cut, this.exchange), CLOSE_MS).unref();
  }

  private sendClose(): void {
    this.state = "closed";
    this.exchange.sendData(CLOSE_RESTARTING);
    this.exchange.flush();
  }
}

function cut(exchange: Exchange): void {
  if (!exchange.released) exchange.abort();
}

/** How long a client may take to respond to a Close frame. */
const CLOSE_MS = 5_000;

/** Follows the frames of a WebSocket in one direction (RFC 6455, 5.2), to find where each ends. */
export class WebSocketFrames {
  /** Bytes of the head of a frame, as far as they have come. */
  private readonly head = Buffer.alloc(HEAD_BYTES_MAX);
  private headBytes = 0;
  private payloadLeft = 0;

  /** Whether the bytes so far end with a frame: a control frame may come next (RFC 6455, 5.4). */
  get between(): boolean {
    return this.headBytes === 0 && this.payloadLeft === 0;
  }

  /** Takes in the bytes that come next. */
  advance(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length;) at = this.step(chunk, at);
  }

  /** Advances to the end of the current frame. @returns its index; -1 if it is not in this chunk */
  advanceToEnd(chunk: Uint8Array): number {
    let at = 0;
    while (!this.between) {
      if (at === chunk.length) return -1;
      at = this.step(chunk, at);
    }
    return at;
  }

  /** Takes a byte of a head, or all that there is of a payload. */
  private step(chunk: Uint8Array, at: number): number {
    if (this.payloadLeft > 0) {
      const bytes = Math.min(this.payloadLeft, chunk.length - at);
      this.payloadLeft -= bytes;
      return at + bytes;
    }
    this.head[this.headBytes++] = chunk[at]!;
    if (this.headBytes === this.headLength) {
      this.payloadLeft = this.payloadLength;
      this.headBytes = 0;
    }
    return at + 1;
  }

  private get headLength(): number {
    if (this.headBytes < 2) return 2;
    const second = this.head[1]!;
    const masked = (second & 0x80) !== 0;
    return 2 + lengthBytes(second & 0x7f) + (masked ? 4 : 0);
  }

  private get payloadLength(): number {
    const short = this.head[1]! & 0x7f;
    if (short === 126) return this.head.readUInt16BE(2);
    return short === 127 ? Number(this.head.readBigUInt64BE(2)) : short;
  }
}

const lengthBytes = (short: number): number => (short === 126 ? 2 : short === 127 ? 8 : 0);

const HEAD_BYTES_MAX = 14;

/** A Close frame of a server, with the code 1012: it restarts, and clients reconnect (RFC 6455, 5.5.1 and 7.4.1). */
const CLOSE_RESTARTING = Buffer.from([0x88, 0x02, 0x03, 0xf4]);
