import { Random } from "../../testkit/random.js";
import type { Channel, Close } from "./case.js";

/**
 * A case of several clients of one upstream, each with some exchanges on one connection. It is plain data, so that it can
 * be made from a seed, shrunk and printed.
 */
export interface Timeline {
  /** Leads to the case again, with the seed; part of every id. */
  readonly index: number;
  /** Clients run at the same time; else each begins when all connections of those before it are at rest. */
  readonly together: boolean;
  readonly clients: readonly ClientScript[];
}

export type Protocol = Exclude<Channel, "redirect" | "clear">;

/** What an upstream is reached over. */
export type Carrier = "tcp" | "tls" | "unix";

/** A route, as far as its clients and who judges what they get have to know it. */
export interface Target {
  /** Begins the path. */
  readonly letter: string;
  /** Who responds: the lane's upstream, none, or the proxy. */
  readonly responder: "lane" | "none" | "file" | "proxy";
  /** The longest request body; undefined for any. */
  readonly bodyBytesMax?: number;
  /** How long the client may be silent within a body; undefined for longer than anything is played. */
  readonly bodyTimeoutMs?: number;
  /** What its upstream is reached over. Default: TCP. */
  readonly carrier?: Carrier;
  /** Its upstream has one connection at a time, for which requests wait. */
  readonly narrow?: boolean;
  /** It shows the proxy itself, and over plain HTTP only under a host that no stranger can own. */
  readonly ownHostsOnly?: true;
  /** The response of the proxy without an upstream. */
  readonly own?: { readonly status: number; readonly body: Buffer | undefined };
}

export interface ClientScript {
  readonly protocol: Protocol;
  /** Requests go out without waiting for responses; over HTTP/2 their frames alternate. */
  readonly pipelined: boolean;
  readonly splits: Splits;
  /** The client leaves before it is done. */
  readonly abort: Abort | undefined;
  /** Over HTTP/2: stays until the proxy has stopped what was given up. */
  readonly stays: boolean;
  /** Initial window of streams over HTTP/2. */
  readonly windowBytes: number;
  readonly exchanges: readonly ExchangeScript[];
}

/** How the bytes of one turn of the client are written. */
export type Splits =
  /** All in one write: one read of the proxy, one TLS record. */
  | { readonly kind: "joined" }
  /** Each message part or frame by itself, in the same turn of the event loop or a moment apart. */
  | { readonly kind: "parts"; readonly apart: boolean }
  /** Byte by byte. */
  | { readonly kind: "bytes" }
  /** In two, at a byte of the whole input. */
  | { readonly kind: "border"; readonly at: number }
  /** At parts of the whole, 0 to 1. */
  | { readonly kind: "some"; readonly at: readonly number[] };

export interface Abort {
  /** What has to have happened: a part of the input sent, or bytes of responses received. */
  readonly after: { readonly sent: number } | { readonly received: number };
  readonly how: Close;
}

export interface ExchangeScript {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE" | "OPTIONS";
  /** Which route it is for. */
  readonly to: Target;
  /** What it calls the proxy. */
  readonly host: string;
  /** Over HTTP/1.1 that is in the target, and `Host`, which does not count then, is another (RFC 9112, 3.2.2). */
  readonly absolute: boolean;
  /** Asks for a WebSocket: HTTP/1.1 Upgrade, or extended CONNECT (RFC 8441). */
  readonly upgrade: boolean;
  /** `Expect: 100-continue`; `waits` if the body is held back until 100. */
  readonly expect: "none" | "sends" | "waits";
  readonly body: BodyScript | undefined;
  readonly tunnel: TunnelScript;
  readonly response: ResponsePlan;
}

export interface BodyScript {
  /** `chunked` over HTTP/2: without `content-length`. */
  readonly framing: "length" | "chunked";
  /** Bytes that belong to it: `content-length`, where there is one. */
  readonly bytes: number;
  /** Bytes that are sent less (below 0), or more. */
  readonly off: number;
  /** What is too much comes with the last piece, not as one of its own. */
  readonly joined: boolean;
  /** Bytes of each chunk, or DATA frame. */
  readonly piece: number;
  /** Of every DATA frame. */
  readonly padding: number;
  /** With its last piece, an empty DATA frame after it, trailers, not at all, or a reset of the stream. */
  readonly end: "last" | "empty" | "trailers" | "never" | "reset";
  /** The chunked coding breaks in the midst. */
  readonly flaw: "none" | "chunkSize" | "chunkEnd";
}

export interface TunnelScript {
  /** Bytes of the client, and of the upstream. */
  readonly up: number;
  readonly down: number;
  /** The client does not wait for the response. */
  readonly early: boolean;
  readonly endedBy: "client" | "upstream";
}

/** What the upstream is to do; `scriptedResponse.ts` makes bytes of it. */
export interface ResponsePlan {
  /** With the request's head, half of its body, or all of it. */
  readonly when: "head" | "half" | "complete";
  /** What waits until all clients have sent what they will: all of it, or half of its body. `forever`: until the end. */
  readonly held: "no" | "head" | "half" | "forever";
  readonly informational: readonly number[];
  readonly status: number;
  readonly framing: "length" | "chunked" | "close";
  readonly bytes: number;
  /** Bytes of each chunk or write. */
  readonly piece: number;
  /** Pieces are written a moment apart. */
  readonly apart: boolean;
  readonly flaw: ResponseFlaw;
  /** Connection goes on, is closed as announced, is closed unannounced at once or a moment later, or reset. */
  readonly then: "keep" | "close" | "quit" | "soon" | "reset";
}

export type ResponseFlaw =
  | "none"
  /** The connection ends too early. */
  | "short"
  /** Bytes after the response, in the same write. */
  | "long"
  /** The same a moment later, in a write of their own. */
  | "late"
  | "chunkSize"
  | "chunkEnd"
  | "garbage"
  /** Not a byte, then the end. */
  | "silence"
  /** 101 to a request that asked for no upgrade. */
  | "switch";

/** More informational responses than the proxy takes before the final one. */
export const INFORMATIONAL_MAX = 16;

/** As it is configured: few, so that few requests make a flood. */
export const STREAM_RESETS_PER_SECOND_MAX = 4;

/** Hosts that requests are for: those that no stranger can own, and those of a stranger. */
export const HOST = "h";
export const OWN_HOSTS = [HOST, "h:8080", "127.0.0.1", "[::1]:80", "localhost"] as const;
export const STRANGE_HOSTS = ["rebound.test", "h.rebound.test:80", "127.0.0.1.rebound.test"] as const;

/** With padding and what is too much it still fits a frame of 16 KiB. */
export const HTTP2_PIECE_BYTES_MAX = 16_000;

export const idOf = (index: number, client: number, exchange: number): string =>
  `${index}.${client}.${exchange}`;

/** What follows the host in a request. */
export const pathOf = (lane: number, id: string, { letter, responder, ownHostsOnly }: Target): string =>
  ownHostsOnly ? `/${letter}${lane}?json` : `/${letter}${lane}/${responder === "file" ? "file?" : ""}${id}`;

/** What such a path says. */
export function readPath(path: string): { letter: string; lane: number; id: string } | undefined {
  const [, letter, lane, id] = /^\/([a-z])(\d+)\/(?:file\?)?([\d.]+)$/.exec(path) ?? [];
  return letter === undefined ? undefined : { letter, lane: Number(lane), id: id! };
}

/**
 * Random bytes of a message: no two ids have the same. None is part of a line end, so that what comes behind a message is
 * never empty lines, which are not refused.
 * @param what `body`, `response`, `up` or `down`: every direction has its own
 */
export function bytesOf(what: "body" | "response" | "up" | "down", id: string, length: number): Buffer {
  const seed = [...`${what}${id}`].reduce((sum, char) => Math.imul(sum, 31) + char.charCodeAt(0), 7);
  const bytes = new Random(seed).bytes(length);
  for (const end of LINE_END) for (let at = -1; (at = bytes.indexOf(end, at + 1)) !== -1;) bytes[at] = ~end;
  return bytes;
}

const LINE_END = Buffer.from("\r\n");

/** Whether a response has no body by its status or its request's method, whatever its fields say. */
export const isBodiless = ({ method, response }: Pick<ExchangeScript, "method" | "response">): boolean =>
  method === "HEAD" || response.status === 204 || response.status === 304;

/** Whether it asks for a tunnel: only an HTTP/1.1 GET without a body, or an extended CONNECT without a length, can. */
export function isUpgrade({ protocol }: ClientScript, { upgrade, method, body }: ExchangeScript): boolean {
  if (!upgrade) return false;
  if (body === undefined) return protocol === "h2" || method === "GET";
  return protocol !== "h2" && method === "GET" && body.framing === "length" && body.bytes === 0;
}

/** Whether the response opens it. */
export const opensTunnel = (client: ClientScript, exchange: ExchangeScript): boolean =>
  isUpgrade(client, exchange) && exchange.response.status === 101 && exchange.to.responder === "lane";

/** Whether a body, as it is sent, ends as it says. */
export function isComplete({ protocol }: ClientScript, body: BodyScript): boolean {
  if (protocol !== "h2" && body.framing === "length") return body.off >= 0;
  const unbroken = protocol === "h2" || body.flaw === "none" || body.bytes === 0;
  return body.off >= 0 && unbroken && body.end !== "never" && body.end !== "reset";
}

/** Chunks without the last one, in parts. A flaw is in the midst of them. */
export function chunkParts(
  pieces: readonly Buffer[],
  flaw: ResponseFlaw,
  size: string,
): readonly (readonly Buffer[])[] {
  const half = pieces.length >> 1;
  return pieces.map((bytes, i) => [
    Buffer.from(flaw === "chunkSize" && i === half ? `${size}\r\n` : `${bytes.length.toString(16)}\r\n`),
    bytes,
    Buffer.from(flaw === "chunkEnd" && i === half ? "no line end" : "\r\n"),
  ]);
}

/** Chunks of one byte each, without the last one. */
export function oneByteChunks(body: Buffer): Buffer {
  const chunks = Buffer.alloc(body.length * 6, "1\r\n?\r\n", "latin1");
  for (const [i, byte] of body.entries()) chunks[i * 6 + 3] = byte;
  return chunks;
}
