import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders } from "node:http";
import type { Duplex } from "node:stream";
import type { Exchange } from "./case.js";
import type { Pool } from "./pool.js";
import { readBy, Receiver, send } from "./transfer.js";

/** What a server of the upstream got. */
export interface Arrival {
  readonly server: string;
  readonly target: string;
  readonly fields: IncomingHttpHeaders;
  readonly at: number;
}

/** The head that the client got; of a response that is not the expected one, also its body. */
export interface Head {
  readonly status: number;
  readonly fields: IncomingHttpHeaders;
  /** By the same clock as {@link Arrival.at}. */
  readonly at: number;
  text: string;
}

/** An exchange that is played: what its client and its upstream know of it. */
export class Running {
  /** More fields of the request. */
  fields: OutgoingHttpHeaders = {};
  /** Whether the response names its own URL, as its server knows it. */
  showsUrl = false;
  /** More than one if the proxy sent it again. */
  readonly arrivals: Arrival[] = [];
  head: Head | undefined;
  /** What arrives at the upstream, and at the client. */
  readonly up: Receiver;
  readonly down: Receiver;
  /** Opens when the upstream has all of the request body, or of the client's side of a tunnel. */
  readonly uploaded = new Gate();
  readonly downloaded = new Gate();
  /** One side has left: the other one sees whatever it sees. */
  abandoned = false;
  readonly faults: string[] = [];

  constructor(
    readonly id: string,
    readonly exchange: Exchange,
    readonly pool: Pool,
    /** Largest TLS record that is sent. */
    readonly recordBytes: number,
  ) {
    const { up, upAt, down, downAt } = exchange;
    this.up = new Receiver("upload", pool.part(upAt, up), upAt, pool);
    this.down = new Receiver("download", pool.part(downAt, down), downAt, pool);
  }

  /** What went wrong, once it is over. */
  judge(): string[] {
    const { exchange, up, down, abandoned, faults } = this;
    const { transfer } = exchange;
    if (abandoned) for (const receiver of [up, down]) receiver.left = true;
    const uploads = transfer === "download" ? [] : up.faults;
    return abandoned
      ? [...uploads, ...down.faults]
      : [...faults, ...uploads, ...(transfer === "upload" ? [] : down.faults)];
  }

  /** One side of a tunnel, until its end. @param side who this is */
  async tunnel(socket: Duplex, side: "client" | "upstream"): Promise<void> {
    const { exchange, up, down, uploaded, downloaded } = this;
    const isClient = side === "client";
    const [receiver, all, own] = isClient ? [down, downloaded, up.expected] : [up, uploaded, down.expected];
    socket.on("error", () => undefined);
    const reader = exchange.reader === "leaving" && !isClient ? "fast" : exchange.reader;
    // A tunnel may end in any way once both sides have all.
    const look = (): void => {
      if (!receiver.whole) return;
      receiver.ended = true;
      all.open();
    };
    readBy(reader, socket, receiver, exchange.leavesAt, () => this.leave(() => socket.destroy()));
    socket.on("data", look);
    look();
    void send(socket, own, exchange.pieces);
    socket.on("end", () => socket.end());
    const closed = new Promise((resolve) => socket.once("close", resolve));
    if (isClient) void Promise.all([uploaded.opened, downloaded.opened]).then(() => socket.end());
    await closed;
  }

  arrived(server: string, { url, headers }: IncomingMessage): void {
    this.arrivals.push({ server, target: url!, fields: headers, at: performance.now() });
  }

  leave(close: () => void): void {
    this.abandoned = true;
    close();
  }
}

/** What is waited for. */
class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}
