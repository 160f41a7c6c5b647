import { constants, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import type { TLSSocket } from "node:tls";
import { coarseNow } from "../clock.js";
import { respondError } from "../errorPages.js";
import type { ClientInfo } from "../exchange.js";
import type { Services } from "../services.js";
import { Http2Exchange } from "./exchange.js";
import { parseRequestHead } from "./requestHead.js";

const { NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_FLAG_END_STREAM } = constants;

/** How long a client may take to close a connection that was ended. */
const CLOSE_MS = 5_000;

/** One client connection speaking HTTP/2: makes an exchange of every stream and watches over all of them. */
export class Http2Connection {
  private readonly exchanges = new Set<Http2Exchange>();
  /** Deadlines on the coarse clock; Infinity where none runs. */
  private idleDeadline: number;
  private closeDeadline = Infinity;
  private bytesWritten = 0;
  /** Resets by the client since `resetsSince`. */
  private resets = 0;
  private resetsSince = 0;
  private complained = false;

  constructor(
    private readonly session: ServerHttp2Session,
    private readonly socket: TLSSocket,
    private readonly client: ClientInfo,
    private readonly services: Services,
    registry: { delete(connection: Http2Connection): void },
  ) {
    this.idleDeadline = coarseNow() + services.config.timeouts.requestHeadMs;
    session.on("stream", (stream: ServerHttp2Stream, _headers: unknown, flags: number, raw: string[]) =>
      this.begin(stream, flags, raw),
    );
    session.on("error", (error: NodeJS.ErrnoException) => this.failed(error));
    session.on("close", () => registry.delete(this));
  }

  /** An exchange is over, however it ended. */
  finished(exchange: Http2Exchange): void {
    this.services.dispatcher.finished(exchange);
  }

  /** @param reset whether the client reset the stream, or provoked its reset by what it sent */
  streamClosed(exchange: Http2Exchange, reset: boolean): void {
    this.exchanges.delete(exchange);
    if (this.exchanges.size === 0)
      this.idleDeadline = coarseNow() + this.services.config.timeouts.keepAliveMs;
    if (reset) this.countReset();
  }

  /**
   * Takes no more streams, lets those that run finish, and then closes. The one GOAWAY names the last stream that is
   * served; streams behind it are for the client to send again. (nghttp2 ignores new streams from the first GOAWAY on,
   * so the two of RFC 9113, 6.8 would help nobody.)
   */
  close(): void {
    this.idleDeadline = Infinity;
    this.session.close();
  }

  destroy(): void {
    this.session.destroy();
    this.socket.destroy();
  }

  sweep(now: number): void {
    const { bytesWritten } = this.socket;
    // Streams do not tell how much of a long write went out; the connection does.
    const progressed = bytesWritten !== this.bytesWritten;
    this.bytesWritten = bytesWritten;
    for (const exchange of this.exchanges) {
      if (progressed) exchange.progressed(now);
      exchange.sweep(now);
    }
    if (this.exchanges.size > 0) return;
    if (now >= this.closeDeadline) return this.destroy();
    if (now >= this.idleDeadline) this.close();
    if (this.closeDeadline === Infinity && this.session.closed) this.closeDeadline = now + CLOSE_MS;
  }

  private begin(stream: ServerHttp2Stream, flags: number, raw: readonly string[]): void {
    const { dispatcher, config, logs } = this.services;
    const ended = (flags & NGHTTP2_FLAG_END_STREAM) !== 0;
    const { request, refusal } = parseRequestHead(raw, ended, config.limits, Date.now());
    const server = dispatcher.defaultServer(this.client.listener);
    const exchange = new Http2Exchange(this, stream, request, this.client, server, ended);
    this.exchanges.add(exchange);
    this.idleDeadline = Infinity;
    if (refusal === undefined) return dispatcher.dispatch(exchange);
    logs.mainError.write("info", `client sent an invalid request: ${refusal.reason}`, exchange);
    respondError(exchange, refusal.status);
  }

  /** Rapid resets (CVE-2023-44487), and provoked ones (CVE-2025-8671), make work that nobody waits for. */
  private countReset(): void {
    const now = coarseNow();
    if (now - this.resetsSince >= 1_000) {
      this.resetsSince = now;
      this.resets = 0;
    }
    if (++this.resets <= this.services.config.limits.streamResetsPerSecondMax) return;
    const error = new Error("client resets too many streams");
    // Not inside a stream's own end.
    process.nextTick(() => this.session.destroy(error, NGHTTP2_ENHANCE_YOUR_CALM));
  }

  private failed(error: NodeJS.ErrnoException): void {
    if (DISCONNECTS.has(error.code ?? "")) return;
    this.complain(error.message);
  }

  private complain(what: string): void {
    if (this.complained) return;
    this.complained = true;
    const { client, services } = this;
    services.logs.mainError.write(
      "warn",
      `*${client.connectionId} HTTP/2 connection closed: ${what}, client: ${client.address}, listener: ${client.listener}`,
    );
  }
}

/** The client went away; nothing to warn about. */
const DISCONNECTS: ReadonlySet<string> = new Set([
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_STREAM_PREMATURE_CLOSE",
]);
