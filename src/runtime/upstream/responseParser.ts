import type { Bodiless } from "../codec/http1/responseHead.js";
import { ChunkDecoder, ChunkError, type ChunkSink } from "../codec/http1/chunkDecoder.js";
import { HeadError } from "../codec/http1/fields.js";
import type { HeadSource } from "../codec/http1/headReader.js";
import { type ResponseHeads, responseHeadReader } from "../codec/http1/lineFeedReader.js";
import { type ParsedResponse, parseResponseHead, UNTIL_CLOSE } from "../codec/http1/responseHead.js";
import { CR } from "../codec/http1/syntax.js";
import { countHead, countWork } from "../sockets/turn.js";

/** 1xx responses allowed before the final one: one a second reports the progress of an upload of a day (104). */
const INFORMATIONAL_MAX = 100_000;
const HEADER_COUNT_MAX = 500;

/** What has been read of a response. */
export const enum Stage {
  /** Not all of the head of the final response. */
  Head,
  Body,
  /** 101: what follows is another protocol's. */
  Tunnel,
  Complete,
}

/** The receiver of the parts of a response. */
export interface ResponseSink {
  /** Whether fields will be read as a list, and not as lines. */
  readonly wantsList: boolean;
  /** A 1xx response other than 101. */
  onInformational(head: ParsedResponse): void;
  /** The final head, or 101. */
  onHead(head: ParsedResponse): void;
  /** A piece of the body. */
  onPiece(piece: Buffer): void;
}

/** Reads the responses of one connection strictly, step by step (RFC 9112, 6.3). */
export class ResponseParser implements ChunkSink {
  stage = Stage.Complete;
  /** Whether another request may follow the response. */
  keepAlive = false;
  /** The same of the last head as in {@link ParsedResponse.bodiless}. */
  bodiless: Bodiless | undefined = undefined;
  private readonly reader: HeadSource;
  private method = "";
  private decoder: ChunkDecoder | undefined = undefined;
  private remaining = 0;
  private informational = 0;

  constructor(
    config: ResponseHeads,
    private readonly sink: ResponseSink,
  ) {
    this.reader = responseHeadReader(config);
  }

  /** Whether only the end of the connection ends the response. */
  get endsByClose(): boolean {
    return this.remaining === UNTIL_CLOSE;
  }

  /** Bytes of the body that are still to come; -1 if that is not known. */
  get left(): number {
    return Math.max(this.remaining, -1);
  }

  /** The response to a request of that method comes next. */
  begin(method: string): void {
    this.method = method;
    this.informational = 0;
    this.stage = Stage.Head;
  }

  /**
   * Takes a head, or the piece of body that there is.
   *
   * @returns index of the first byte that it did not take
   * @throws HeadError, ChunkError
   */
  step(chunk: Buffer, at: number): number {
    if (this.stage === Stage.Head) return this.readHead(chunk, at);
    if (this.stage === Stage.Body) return this.readBody(chunk, at);
    this.onBytes(chunk, at, chunk.length);
    return chunk.length;
  }

  onBytes(chunk: Buffer, from: number, to: number): void {
    this.sink.onPiece(from === 0 && to === chunk.length ? chunk : chunk.subarray(from, to));
  }

  private readHead(chunk: Buffer, at: number): number {
    const { reader, sink } = this;
    // RFC 9112, 2.2: before requests empty lines are skipped; before a response they could be endless.
    if (reader.empty && chunk[at] === CR) throw new HeadError(400, "empty line before the response");
    if (!reader.read(chunk, at)) return chunk.length;
    const { next } = reader;
    const head = parseResponseHead(reader, this.method, HEADER_COUNT_MAX, sink.wantsList);
    countHead(next - at);
    reader.release();
    if (head.status < 200 && head.status !== 101) {
      if (++this.informational > INFORMATIONAL_MAX)
        throw new HeadError(400, "too many informational responses");
      sink.onInformational(head);
      return next;
    }
    this.keepAlive = head.keepAlive;
    this.bodiless = head.bodiless;
    this.remaining = head.bodyLength;
    this.decoder = head.bodyLength === -1 ? new ChunkDecoder(true) : undefined;
    this.stage = head.status === 101 ? Stage.Tunnel : Stage.Body;
    sink.onHead(head);
    if (head.bodyLength === 0 && head.status !== 101) this.stage = Stage.Complete;
    return next;
  }

  private readBody(chunk: Buffer, at: number): number {
    if (this.decoder !== undefined) {
      const next = this.decoder.decode(chunk, at, this);
      if (this.decoder.done) this.stage = Stage.Complete;
      countWork(1, this.decoder.framingBytes);
      return next;
    }
    if (this.remaining === UNTIL_CLOSE) {
      this.onBytes(chunk, at, chunk.length);
      return chunk.length;
    }
    const to = Math.min(chunk.length, at + this.remaining);
    this.remaining -= to - at;
    this.onBytes(chunk, at, to);
    if (this.remaining === 0) this.stage = Stage.Complete;
    return to;
  }
}

/** Whether it says that a response is invalid. */
export const isInvalid = (error: unknown): error is HeadError | ChunkError =>
  error instanceof HeadError || error instanceof ChunkError;
