import type { LookupFunction } from "node:net";
import type { ErrorToken } from "../../model/index.js";
import type { Guarded } from "../sockets/guarded.js";
import type { Memory } from "../sockets/memory.js";
import type { Bodiless, ParsedResponse } from "../codec/http1/responseHead.js";
import type { UpstreamCounts } from "../counting/workerCounts.js";
import type { Faults } from "../dispatch/workerContext.js";
import type { TlsToUpstream } from "./upstreamTls.js";

/** Waits for a response on an upstream connection. */
export interface ResponseReader extends Guarded {
  /** Whether fields will be read as a list, and not as lines. */
  readonly wantsList: boolean;
  /** How much of the body may come in one piece, from the next read on. */
  readonly pieceBytesMax: number;
  /** A 1xx response other than 101. */
  onInformational(head: ParsedResponse): void;
  /** The final head, or 101. */
  onResponseHead(head: ParsedResponse): void;
  /**
   * A piece of the body, in that memory; false to pause until `resume`. Pieces of a read that has begun arrive all the
   * same.
   */
  onResponseData(chunk: Buffer, memory: Memory): boolean;
  /** All bytes of one read were processed: nothing more is available for now. */
  onResponsePause(): void;
  /** The response is complete. */
  onResponseEnd(): void;
  /** There will be no (complete) response. */
  onResponseError(failure: UpstreamFailure): void;
  /** Not all of the request so far could be written: send no more until it can. */
  onRequestStall(): void;
  /** Sending the request can continue. */
  onRequestDrain(): void;
}

/** Why an upstream gave no complete response. */
export interface UpstreamFailure {
  readonly status: 502 | 504;
  readonly token: ErrorToken;
  /** The text for the error log, in nginx's words. */
  readonly message: string;
  /** Whether any byte of a response had arrived. */
  readonly responded: boolean;
  /** Whether nothing of the request had been sent. */
  readonly unsent: boolean;
}

/** The owner of several connections. */
export interface ConnectionOwner<C> {
  /** The connection's response is complete. @returns whether it will be used again */
  idle(connection: C): boolean;
  /** Bytes came that belong to no response. @param after why the response before them has no body, if it has none */
  onStrayBytes(after: Bodiless | undefined): void;
  /** How its host name is looked up; undefined for an address. */
  readonly lookup: LookupFunction | undefined;
  /** Undefined where it does not speak TLS. */
  readonly tls: TlsToUpstream | undefined;
  /** A connection is established, TLS included. */
  opened(): void;
  closed(connection: C): void;
  /** The counts of the heads of responses that arrive, and of requests that fail. */
  readonly counts: Pick<UpstreamCounts, "responded" | "failed">;
  readonly faults: Faults;
}

/** Wants a connection that is established before anything is sent. */
export interface ConnectionOpener extends ResponseReader {
  onOpen(): void;
}

/** How long a tunnel stays after the end of one side, if the upstream neither sends nor reads. */
export const TUNNEL_END_MS = 60_000;
