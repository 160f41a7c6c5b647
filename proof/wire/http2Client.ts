import {
  ACK,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  FrameSplitter,
  type ReceivedFrame,
} from "../../testkit/http2RawClient.js";
import { ErrorCode } from "../../src/runtime/codec/http2/protocol.js";
import { HpackDecoder } from "../../src/runtime/codec/http2/hpackDecoder.js";
import { isUpgrade, type ClientScript } from "./timeline.js";
import { isSpent } from "./faults.js";
import type { Outcome } from "./responses.js";
import { Client, isTimedOut, type Ports } from "./scriptedClient.js";
import { streamOf } from "./http2Input.js";
import type { Turn } from "./http1Input.js";
import { type Field, fieldValue, Violation } from "../../testkit/messages.js";

const CONNECTION_WINDOW_BYTES = 65_535;
const LAST_STREAM_MAX = 0x7fff_ffff;
/** Resets that do not say that the client gave up its request. */
const EXCUSED = new Set([ErrorCode.InternalError, ErrorCode.RefusedStream, ErrorCode.Http11Required]);

/** A client over HTTP/2, which reads frames strictly; field blocks by the proxy's own decoder, which h2spec tests. */
export class Http2Client extends Client {
  private readonly splitter = new FrameSplitter();
  private readonly decoder = new HpackDecoder(65_536);
  private readonly windows: number[];
  private connectionWindow = CONNECTION_WINDOW_BYTES;
  private settled = false;
  /** Its PING got a response. */
  private answered = false;
  /** The last stream that is served. */
  private lastServed = LAST_STREAM_MAX;

  constructor(script: ClientScript, turns: readonly Turn[], ports: Ports) {
    super(script, turns, ports);
    this.windows = script.exchanges.map(() => script.windowBytes);
  }

  protected override get done(): boolean {
    if (this.script.stays && !this.answered) return false;
    return this.script.exchanges.every((exchange, e) => {
      const end = exchange.body?.end;
      if (end === "reset") return true;
      const stays = this.script.stays && isSpent(this.script, exchange);
      if (stays) return this.stopped.has(e) || this.refuses(e);
      return this.outcomes[e]!.end !== "none" || (end === "never" && this.settled && !isTimedOut(exchange));
    });
  }

  override refuses(exchange: number): boolean {
    return streamOf(exchange) > this.lastServed;
  }

  protected override get leavesUnfinished(): boolean {
    return false;
  }

  protected override take(bytes: Buffer): void {
    for (const received of this.splitter.frames(bytes)) this.frame(received);
  }

  protected override finish(): void {
    for (const outcome of this.outcomes) if (outcome.end === "none") outcome.end = "cut";
  }

  protected override isTunnel(exchange: number): boolean {
    const { status, end } = this.outcomes[exchange]!;
    return status === 200 && end === "none";
  }

  private frame({ type, flags, stream, payload }: ReceivedFrame): void {
    if (type === Frame.SETTINGS && (flags & ACK) === 0) {
      this.settled = true;
      this.control(frame(Frame.SETTINGS, ACK, 0, ""));
    } else if (type === Frame.PING && (flags & ACK) !== 0) this.answered = true;
    else if (type === Frame.PING) this.control(frame(Frame.PING, ACK, 0, payload));
    else if (type === Frame.HEADERS) this.headers(flags, this.stream(stream), payload);
    else if (type === Frame.DATA) this.data(flags, stream, payload);
    else if (type === Frame.RST_STREAM) {
      const [e, outcome] = this.stream(stream);
      if (!EXCUSED.has(payload.readUInt32BE(0))) this.stopped.add(e);
      // Behind a whole response it only stops the body (RFC 9113, 8.1).
      if (outcome.end === "none") outcome.end = "cut";
    } else if (type === Frame.GOAWAY) this.goaway(payload.readUInt32BE(0), payload.readUInt32BE(4));
    else if (type === Frame.CONTINUATION || type === Frame.PUSH_PROMISE)
      throw new Violation(`frame of type ${type}`);
  }

  /** What it says is not served gets no response. */
  private goaway(last: number, error: number): void {
    if (error === ErrorCode.EnhanceYourCalm) this.calmed = true;
    else if (error !== 0 && this.script.abort === undefined)
      throw new Violation(`GOAWAY with error ${error}`);
    this.lastServed = Math.min(this.lastServed, last);
    for (const [e, outcome] of this.outcomes.entries())
      if (this.refuses(e) && outcome.end === "none") outcome.end = "cut";
  }

  private stream(stream: number): [number, Outcome] {
    const e = this.script.exchanges.findIndex((_, at) => streamOf(at) === stream);
    if (e === -1) throw new Violation(`a frame on stream ${stream}`);
    return [e, this.outcomes[e]!];
  }

  private headers(flags: number, [e, outcome]: [number, Outcome], payload: Buffer): void {
    if ((flags & END_HEADERS) === 0) throw new Violation("a long field block");
    this.decoder.decode(payload, 0, payload.length);
    const fields = this.decoder.fields.map(({ name, value }): Field => [name, value]);
    const status = Number(fieldValue(fields, ":status"));
    if (outcome.end === "complete" || outcome.status !== undefined)
      throw new Violation(`a second head on the stream of exchange ${e}`);
    if (status < 200) {
      outcome.informational.push(status);
      if (status !== 100) outcome.informationalIds.push(fieldValue(fields, "x-id"));
      return;
    }
    Object.assign(outcome, { status, fields });
    if ((flags & END_STREAM) !== 0) this.complete(e, outcome);
  }

  private data(flags: number, stream: number, payload: Buffer): void {
    const [e, outcome] = this.stream(stream);
    if (outcome.status === undefined || outcome.end === "complete")
      throw new Violation(`data before the head or behind the end of exchange ${e}`);
    this.windows[e]! -= payload.length;
    this.connectionWindow -= payload.length;
    if (this.windows[e]! < 0 || this.connectionWindow < 0) throw new Violation("data beyond a window");
    outcome.pieces.push(Buffer.from(payload));
    if ((flags & END_STREAM) !== 0) return this.complete(e, outcome);
    if (payload.length === 0) return;
    const increment = Buffer.alloc(4);
    increment.writeUInt32BE(payload.length);
    this.windows[e]! += payload.length;
    this.connectionWindow += payload.length;
    this.control(
      Buffer.concat([
        frame(Frame.WINDOW_UPDATE, 0, stream, increment),
        frame(Frame.WINDOW_UPDATE, 0, 0, increment),
      ]),
    );
  }

  private complete(e: number, outcome: Outcome): void {
    outcome.end = "complete";
    const exchange = this.script.exchanges[e]!;
    const { body, fields, status } = outcome;
    const announced = fieldValue(fields, "content-length");
    const none = (exchange.method === "HEAD" || status === 304) && body.length === 0;
    const off = announced !== undefined && Number(announced) !== body.length;
    if (off && !none && !isUpgrade(this.script, exchange))
      throw new Violation(`exchange ${e}: ${body.length} bytes, announced were ${announced}`);
  }
}
