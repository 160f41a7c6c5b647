import type { Socket } from "node:net";
import { guarded } from "../sockets/guarded.js";
import type { UpstreamAddress, UpstreamConfig } from "../../model/index.js";
import { coarseNow } from "../sockets/deadlines.js";
import { reportReset } from "../sockets/node/peer.js";
import { readDirectly } from "../sockets/node/reads.js";
import { ReceiveBuffer } from "../sockets/receiveBuffer.js";
import { PacedReader, type Taker } from "../sockets/pacedReader.js";
import type { ClientInfo } from "../exchange/exchange.js";
import type { Bodiless, ParsedResponse } from "../codec/http1/responseHead.js";
import { isInvalid, ResponseParser, type ResponseSink, Stage } from "./responseParser.js";
import { countConnect, turnIsFull } from "../sockets/turn.js";
import {
  type ConnectionOpener,
  type ConnectionOwner,
  TUNNEL_END_MS,
  type ResponseReader,
} from "./responseReader.js";
import type { ConnectionUser } from "./clientShares.js";
import * as failures from "./failures.js";
import { type ConnectRefusal, refusalOf } from "./outage.js";
import { RequestWriter, type RequestWriteListener } from "./requestWriter.js";
import type { ClientKey } from "./keptConnections.js";
import { connectingTo, type UpstreamLink, openLink } from "./upstreamTls.js";

/** A connection to an upstream: sends a request, reads its response strictly, and may then be used again. */
export class UpstreamConnection implements ResponseSink, Taker, RequestWriteListener {
  /** True if an earlier request got a response on this connection. */
  reused = false;
  /** Why the upstream refused it; undefined if it did not. */
  refused: ConnectRefusal | undefined = undefined;
  /** The client whose request it serves. */
  user: ConnectionUser | undefined = undefined;
  /** The client connection that logged in on it, and that alone it may serve from now on; undefined if none did. */
  onlyFor: ClientKey | undefined = undefined;
  /** The client whose request it serves, or served last. */
  client: ClientInfo | undefined = undefined;
  /** Kind of the last response on it that had no body; HEAD, if there was one. */
  bodiless: Bodiless | undefined = undefined;
  /** Whether it is not established yet. */
  opening = true;
  /** How long that took, in milliseconds; -1 before that. */
  connectMs = -1;
  /** When it was begun, and the same on the coarse clock. */
  private readonly begunAt = performance.now();
  readonly openedAt = coarseNow();
  /** No request was begun since the last response. */
  private idle = true;
  readonly request: RequestWriter;
  private readonly link: UpstreamLink;
  private readonly socket: Socket;
  private readonly buffer: ReceiveBuffer;
  private readonly input: PacedReader;
  private readonly parser: ResponseParser;
  private response: ResponseReader | undefined = undefined;
  private responded = false;
  private requestSent = false;
  /** Waits for it to be established, with no request yet. */
  private opener: ConnectionOpener | undefined = undefined;
  /** The upstream is known to have reset the connection, and not to have ended it before. */
  private reset = false;
  inputPaused = false;
  /** The upstream's end arrived before all was read that it sent before. */
  private endArrived = false;
  private readDeadline = Infinity;
  private writeDeadline = Infinity;

  constructor(
    private readonly config: UpstreamConfig,
    private readonly address: UpstreamAddress,
    private readonly owner: ConnectionOwner<UpstreamConnection>,
    header?: Buffer,
  ) {
    this.parser = new ResponseParser(config, this);
    const { tls, lookup } = owner;
    this.buffer = new ReceiveBuffer(tls !== undefined);
    this.input = new PacedReader(this, this.buffer);
    this.link = openLink({ ...address, lookup }, tls, this.buffer, this.input, header);
    this.socket = this.link.socket;
    this.input.attach(this.socket);
    this.request = new RequestWriter(this.socket, this);
    this.writeDeadline = coarseNow() + config.connectTimeoutMs;
    countConnect();
    this.socket.on(tls ? "secureConnect" : "connect", () => guarded(this, this.connected));
    this.socket.on("end", () => guarded(this, this.ended));
    this.socket.on("error", (error) => guarded(this, this.errored, error));
    this.socket.on("close", () => guarded(this, this.closed));
  }

  /** Whether an idle connection may be used. After a pause of the process its end may lie unread, and the coarse clock is late. */
  get usable(): boolean {
    return !this.link.tcp.destroyed && !this.socket.destroyed && performance.now() < this.readDeadline;
  }

  /** Calls `opener` when it is established, or failed; until then no request begins. */
  whenOpen(opener: ConnectionOpener): void {
    this.response = this.opener = opener;
  }

  /** Begins a request: everything up to `finish` belongs to it. */
  begin(response: ResponseReader, method: string, head: string): void {
    this.response = response;
    this.responded = false;
    this.requestSent = false;
    this.idle = false;
    this.parser.begin(method);
    this.readDeadline = Infinity;
    this.request.begin(head);
  }

  /** The request is complete; from here the read timeout runs. */
  finish(): void {
    this.request.end();
    this.requestSent = true;
    if (!this.request.pending && !this.inputPaused) this.armRead();
  }

  pause(): void {
    this.inputPaused = true;
    this.readDeadline = Infinity;
    this.socket.pause();
  }

  resume(): void {
    if (!this.inputPaused) return;
    this.inputPaused = false;
    if (this.timesReads) this.armRead();
    this.input.readOn();
  }

  /** Half-closes a tunnel in the client's direction. */
  endTunnel(): void {
    this.request.writeGathered();
    this.socket.end();
  }

  /** Gives up the request: an upstream must never treat a truncated one as complete (decisions 4.2). */
  destroy(): void {
    this.response = undefined;
    // In a tunnel, the peer may still have to read sent data.
    this.cut(this.opening || this.parser.stage === Stage.Tunnel);
  }

  sweep(now: number): void {
    if (now < this.readDeadline && now < this.writeDeadline) return;
    if (this.opening) this.fail(failures.connectTimedOut(this.link));
    else this.fail(failures.timedOut(now >= this.writeDeadline, this.responded));
  }

  /** An exception is an internal fault: it ends this connection, and the reader of its response is notified. */
  onFault(error: unknown): void {
    const { response } = this;
    this.destroy();
    if (response === undefined) this.owner.faults.report(error);
    else response.onFault(error);
  }

  get wantsList(): boolean {
    return this.response!.wantsList;
  }

  onInformational(head: ParsedResponse): void {
    this.response!.onInformational(head);
  }

  onHead(head: ParsedResponse): void {
    this.owner.counts.responded();
    this.response!.onResponseHead(head);
  }

  onPiece(piece: Buffer): void {
    if (this.response?.onResponseData(piece, this.input.memory) === false) this.pause();
  }

  onWrite(): void {
    // Until the connection is established, its own deadline runs.
    if (this.opening) return;
    this.writeDeadline = this.request.pending ? coarseNow() + this.config.sendTimeoutMs : Infinity;
  }

  onWritten(): void {
    const isReading = !this.idle && this.parser.stage !== Stage.Tunnel;
    this.writeDeadline = Infinity;
    if (this.requestSent && isReading && !this.inputPaused) this.armRead();
    this.response?.onRequestDrain();
  }

  onStall(): void {
    this.response?.onRequestStall();
  }

  private connected(): void {
    this.opening = false;
    this.connectMs = (performance.now() - this.begunAt) | 0;
    if (this.owner.tls) this.socket.uncork();
    else {
      readDirectly(this.socket, this.buffer, this.input);
      this.request.connected();
    }
    this.onWrite();
    this.owner.opened();
    const { response, opener } = this;
    this.opener = undefined;
    if (response === undefined) this.settle();
    else if (response === opener) opener.onOpen();
  }

  /** Waits for a request, if it may be used for another one. */
  private settle(): void {
    if (this.owner.idle(this)) this.readDeadline = coarseNow() + this.config.idleTimeoutMs;
    else this.endAfterResponse();
  }

  /** While the request is being sent its own deadline runs, unless sending has failed. */
  private get timesReads(): boolean {
    return this.requestSent || this.request.failed;
  }

  private armRead(): void {
    const { readTimeoutMs } = this.config;
    this.readDeadline =
      coarseNow() + (this.request.failed ? Math.min(AFTER_WRITE_ERROR_MS, readTimeoutMs) : readTimeoutMs);
  }

  take(chunk: Buffer): number {
    const at = this.received(chunk);
    if (this.endArrived && at === chunk.length) this.ended();
    return at;
  }

  /** @returns index of the first byte that is for another turn */
  private received(chunk: Buffer): number {
    const { idle, parser } = this;
    // On a reused connection, a response without a request belongs to the previous response.
    if (this.reused && (idle || this.request.unsent)) this.owner.onStrayBytes(parser.bodiless);
    if (idle) this.destroy();
    // The request has not been sent yet, and goes to another connection.
    else if (this.request.unsent) this.fail(failures.TOO_EARLY);
    if (idle || this.request.unsent) return chunk.length;
    this.responded = true;
    let at = 0;
    try {
      // The response's reader may give up with any piece of it.
      while (at < chunk.length && parser.stage !== Stage.Complete && this.response !== undefined) {
        at = parser.step(chunk, at);
        if (parser.stage <= Stage.Body && this.input.hasEnough()) break;
      }
    } catch (error) {
      if (!isInvalid(error)) throw error;
      if (this.bodiless !== undefined) this.owner.onStrayBytes(this.bodiless);
      this.fail(failures.invalidResponse(error, this.config.name));
    }
    // Bytes after a complete response belong to no request: such a connection is not used again.
    if (parser.stage === Stage.Complete) this.complete(at === chunk.length);
    if (this.idle || this.response === undefined) return chunk.length;
    if (!turnIsFull()) this.buffer.fit(parser.left, chunk.length, this.response.pieceBytesMax);
    if (!this.inputPaused && this.timesReads) this.armRead();
    this.response.onResponsePause();
    return at;
  }

  /** @param clean whether nothing came after the response */
  private complete(clean: boolean): void {
    const { response } = this;
    const { keepAlive, bodiless } = this.parser;
    // The response's reader may have given up while it took the last piece.
    if (response === undefined) return;
    this.response = undefined;
    this.buffer.release();
    if (!clean && keepAlive) this.owner.onStrayBytes(bodiless);
    if (this.bodiless !== "HEAD") this.bodiless = bodiless ?? this.bodiless;
    if (clean && keepAlive && this.request.complete) {
      this.idle = true;
      this.reused = true;
      this.resume();
      this.settle();
    } else this.endAfterResponse();
    response.onResponseEnd();
  }

  private endAfterResponse(): void {
    this.cut(this.parser.endsByClose || !this.request.complete);
  }

  /**
   * Closes it, if possible by a reset: the side that ends a connection first keeps its local port for a minute (TIME_WAIT), and
   * clients that send HEAD, after which none is used again, or give up their requests, could use up all ports to an
   * upstream on another host. After a whole request with a body, which the upstream may still be reading, a reset would
   * take the body away. A Unix socket has no ports, and no reset.
   */
  private cut(inOrder: boolean): void {
    if (inOrder || "path" in this.address || (this.requestSent && this.request.framing.hasBody))
      this.socket.destroy();
    else {
      this.link.tcp.resetAndDestroy();
      // TLS may still have to read what came before an end.
      this.socket.destroy();
    }
  }

  private ended(): void {
    this.endArrived = true;
    if (this.input.hasUnread) return;
    const { failure } = this.link;
    if (failure !== undefined) return this.errored(failure);
    const { stage, endsByClose } = this.parser;
    if (stage === Stage.Body && endsByClose) return this.endedWithResponse();
    if (stage === Stage.Tunnel) return this.endTunnelled();
    this.closedEarly("upstream prematurely closed connection");
  }

  /**
   * Only the end of the connection ends this response, so it must be a real end: libuv reports a reset as an end if it
   * comes with the last bytes. Writes distinguish them: after a reset in place of an end, the first write fails with
   * ECONNRESET; after a reset that followed an end, from an upstream that responded and closed before it had read the
   * whole request, with EPIPE. TLS has an end of its own.
   */
  private endedWithResponse(): void {
    if (this.link.endedInOrder === true) return this.complete(false);
    if (this.owner.tls) return this.fail(failures.TLS_CUT);
    // A write that waits fails in this turn of the event loop, after the read.
    if (this.request.pending) return void setImmediate(() => guarded(this, this.completeUnlessReset));
    if (!this.request.failed) reportReset(this.socket);
    this.completeUnlessReset();
  }

  private completeUnlessReset(): void {
    if (this.reset) this.closedEarly("recv() failed (104: ECONNRESET)");
    else this.complete(false);
  }

  /** The upstream closed a tunnel: data that the client has sent so far is still written. */
  private endTunnelled(): void {
    const { response } = this;
    this.response = undefined;
    this.request.writeGathered();
    this.writeDeadline = Math.min(this.writeDeadline, coarseNow() + TUNNEL_END_MS);
    this.socket.destroySoon();
    response?.onResponseEnd();
  }

  private errored(error: failures.SocketError): void {
    // An upstream may respond and close before it has read the whole request: its response is still to be read.
    if (error.syscall === "write") {
      this.request.failed = true;
      this.reset ||= error.code === "ECONNRESET";
      this.writeDeadline = Infinity;
      if (!this.inputPaused) this.armRead();
      return;
    }
    if (this.opening) this.refused = refusalOf(error);
    const { opening, responded } = this;
    this.fail(failures.socketFailed(error, this.doing, { opening, responded, tls: this.owner.tls }));
  }

  private closed(): void {
    this.request.close();
    this.owner.closed(this);
    this.closedEarly("upstream closed connection");
  }

  private closedEarly(what: string): void {
    this.fail(failures.closedEarly(what, this.doing, this.responded));
  }

  private get doing(): string {
    if (this.opening) return `${connectingTo(this.link)} upstream`;
    return this.parser.stage === Stage.Head ? "reading response header from upstream" : "reading upstream";
  }

  /** An idle connection, or one that was given up, has no request: it only ends. */
  private fail({ status, message, token }: failures.Failed): void {
    const { response, responded } = this;
    const unsent = this.opening || this.request.unsent;
    this.destroy();
    if (response !== undefined) this.owner.counts.failed(token);
    response?.onResponseError({ status, token, message, responded, unsent });
  }
}

/** Writes fail when the upstream is gone: a response it sent before has arrived, and only has to be read. */
const AFTER_WRITE_ERROR_MS = 1_000;
