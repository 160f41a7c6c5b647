import {
  bytesOf,
  chunkParts,
  type BodyScript,
  type ClientScript,
  type ExchangeScript,
  HOST,
  idOf,
  isUpgrade,
  oneByteChunks,
  pathOf,
  STRANGE_HOSTS,
} from "./timeline.js";
import { headText } from "../../testkit/messages.js";
import { type Awaited } from "./case.js";

/** What a client sends, in turns: each begins when its condition holds. */
export interface Turn {
  /** Undefined: at once. `continue`: a 100; its turn is left out where the response came instead. */
  readonly after: { readonly exchange: number; readonly what: Awaited } | undefined;
  readonly parts: readonly Part[];
}

export interface Part {
  readonly exchange: number;
  readonly bytes: Buffer;
  /** With that many of these bytes the request is whole; undefined where it is not by this part. */
  readonly wholeWith: number | undefined;
}

/** A request that must never be one: it is after a body that ends before it, or is said to. */
export const smuggled = (id: string): string => `GET /e0/0 HTTP/1.1\r\nHost: smuggled\r\nX-Of: ${id}\r\n\r\n`;

/** Numbers of lanes have two digits: a case is as long on one as on another. */
export const LANE_MIN = 10;

/** Pieces of a body in the order they are sent. What is too much comes with the last, or after it. */
export function bodyPieces(id: string, { bytes, off, joined, piece }: BodyScript, more: string): Piece[] {
  const body = bytesOf("body", id, Math.max(0, bytes + Math.min(0, off)));
  const pieces: Piece[] = [];
  for (let at = 0; at < body.length; at += piece) pieces.push({ bytes: body.subarray(at, at + piece) });
  const last = pieces.at(-1);
  if (last !== undefined && off >= 0) last.wholeWith = last.bytes.length;
  if (off <= 0) return pieces;
  const tooMuch = Buffer.from(more).subarray(0, off);
  if (!joined || last === undefined) return [...pieces, { bytes: tooMuch }];
  last.bytes = Buffer.concat([last.bytes, tooMuch]);
  return pieces;
}

export interface Piece {
  bytes: Buffer;
  wholeWith?: number;
}

/** Behind a body over HTTP/1.1 a request would be one; this is none. */
const GARBAGE = "\0 is no token\r\n\r\n";

/** The input of a client over HTTP/1.1. */
export function http1Turns(index: number, c: number, client: ClientScript, lane: number): Turn[] {
  const turns: Turn[] = [];
  let parts: Part[] = [];
  let after: Turn["after"];
  const turn = (next: Turn["after"]): void => {
    if (parts.length > 0) turns.push({ after, parts });
    parts = [];
    after = next;
  };
  client.exchanges.forEach((exchange, e) => {
    const id = idOf(index, c, e);
    const add = (bytes: Buffer, wholeWith?: number): void =>
      void parts.push({ exchange: e, bytes, wholeWith });
    if (e > 0 && !client.pipelined) turn({ exchange: e - 1, what: "response" });
    const body = exchange.body === undefined ? [] : http1Body(id, exchange.body);
    const head = Buffer.from(http1Head(exchange, id, lane), "latin1");
    add(
      head,
      (exchange.body?.framing ?? "length") === "length" && !exchange.body?.bytes ? head.length : undefined,
    );
    if (exchange.expect === "waits" && body.length > 0) turn({ exchange: e, what: "continue" });
    for (const { bytes, wholeWith } of body) add(bytes, wholeWith);
    if (!isUpgrade(client, exchange)) return;
    if (!exchange.tunnel.early) turn({ exchange: e, what: "tunnel" });
    if (exchange.tunnel.up > 0) add(bytesOf("up", id, exchange.tunnel.up));
  });
  turn(undefined);
  return turns;
}

function http1Head(exchange: ExchangeScript, id: string, lane: number): string {
  const { method, body, expect, upgrade, host, absolute } = exchange;
  const other = host === HOST ? STRANGE_HOSTS[0] : HOST;
  return headText(
    `${method} ${absolute ? `http://${host}` : ""}${pathOf(lane, id, exchange.to)} HTTP/1.1`,
    `Host: ${absolute ? other : host}`,
    `X-Id: ${id}`,
    ...(upgrade ? ["Connection: Upgrade", "Upgrade: websocket"] : []),
    ...(expect === "none" ? [] : ["Expect: 100-continue"]),
    ...(body === undefined
      ? []
      : [body.framing === "length" ? `Content-Length: ${body.bytes}` : "Transfer-Encoding: chunked"]),
  );
}

function http1Body(id: string, body: BodyScript): Piece[] {
  if (body.framing === "chunked" && body.piece === 1 && body.off === 0 && body.flaw === "none") {
    const end =
      body.end === "never" ? "" : body.end === "trailers" ? "0\r\nX-Trailer: yes\r\n\r\n" : "0\r\n\r\n";
    const bytes = Buffer.concat([oneByteChunks(bytesOf("body", id, body.bytes)), Buffer.from(end)]);
    return [{ bytes, ...(end === "" ? {} : { wholeWith: bytes.length }) }];
  }
  const pieces = bodyPieces(id, body, GARBAGE);
  if (body.framing === "length") return pieces;
  const chunks = chunkParts(
    pieces.map(({ bytes }) => bytes),
    body.flaw,
    "0x",
  ).flat();
  if (body.end === "never" || body.end === "reset") return chunks.map((bytes) => ({ bytes }));
  const end = Buffer.from(body.end === "trailers" ? "X-Trailer: yes\r\n\r\n" : "\r\n");
  const broken = body.flaw !== "none" && pieces.length > 0;
  return [
    ...[...chunks, Buffer.from("0\r\n")].map((bytes) => ({ bytes })),
    { bytes: end, ...(broken ? {} : { wholeWith: end.length }) },
  ];
}
