import type { Exchange } from "../exchange/exchange.js";
import { guarded } from "../sockets/guarded.js";
import { CLOSE_RESTARTING, WebSocketFrames } from "./webSocketFrames.js";

/** What an upstream sends through a WebSocket, and how that is ended in order: between two frames, by a Close frame. */
export class Tunnel {
  private readonly frames = new WebSocketFrames();
  private state: "open" | "closing" | "closed" = "open";
  /** The client takes nothing at the moment. */
  private stalled = false;

  constructor(private readonly exchange: Exchange) {}

  /** As `Exchange.sendData`. */
  sendData(chunk: Buffer, transient: boolean): boolean {
    // What follows a Close frame is discarded (RFC 6455, 5.5.1).
    if (this.state === "closed") return true;
    if (this.state === "open") this.frames.advance(chunk);
    else {
      const end = this.frames.advanceToEnd(chunk);
      if (end !== -1) {
        if (end > 0) this.exchange.sendData(chunk.subarray(0, end), transient);
        this.sendClose();
        return true;
      }
    }
    this.stalled = !this.exchange.sendData(chunk, transient);
    return !this.stalled;
  }

  /** The client takes more. */
  onDrain(): void {
    this.stalled = false;
    if (this.state === "closing" && this.frames.between) this.sendClose();
  }

  /** Tells the client to connect anew. Its response reaches the upstream, which ends the connection, or a deadline does. */
  close(): void {
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

/** How long a client may take to answer a Close frame. */
const CLOSE_MS = 5_000;
