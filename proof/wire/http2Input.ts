import {
  type BodyScript,
  bytesOf,
  type ClientScript,
  type ExchangeScript,
  HTTP2_PIECE_BYTES_MAX,
  idOf,
  isUpgrade,
  pathOf,
} from "./timeline.js";
import {
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  hpack,
  PADDED,
  PREFACE,
} from "../../testkit/http2RawClient.js";
import { bodyPieces, type Part, smuggled, type Turn } from "./http1Input.js";

const CANCEL = 8;
const INITIAL_WINDOW_SIZE = 4;

export const streamOf = (exchange: number): number => exchange * 2 + 1;

/** The input of a client over HTTP/2: preface, settings, and the frames of its streams. */
export function http2Turns(index: number, c: number, client: ClientScript, lane: number): Turn[] {
  const settings = Buffer.alloc(6);
  settings.writeUInt16BE(INITIAL_WINDOW_SIZE, 0);
  settings.writeUInt32BE(client.windowBytes, 2);
  const start = [PREFACE, frame(Frame.SETTINGS, 0, 0, settings)].map((bytes): Part => ({
    exchange: 0,
    bytes,
    wholeWith: undefined,
  }));
  // Its response comes after everything that the frames before it lead to at once.
  const ping = { exchange: 0, bytes: frame(Frame.PING, 0, 0, Buffer.alloc(8)), wholeWith: undefined };
  const end: Turn[] = client.stays ? [{ after: undefined, parts: [ping] }] : [];
  const streams = client.exchanges.map((exchange, e) =>
    streamTurns(client, exchange, e, idOf(index, c, e), lane),
  );
  if (client.pipelined) {
    const first = alternating(streams.map(([turn]) => turn!.parts));
    const later = streams.flatMap(([, ...turns]) => turns);
    return [{ after: undefined, parts: [...start, ...first] }, ...later, ...end];
  }
  const turns = streams.flatMap(([first, ...later], e): Turn[] => [
    e === 0
      ? { after: undefined, parts: [...start, ...first!.parts] }
      : {
          after: responded(client, e - 1),
          parts: first!.parts,
        },
    ...later,
  ]);
  return [...turns, ...end];
}

/** A stream that the client leaves open, or resets, may never get a response. */
function responded({ exchanges }: ClientScript, e: number): Turn["after"] {
  const end = exchanges[e]!.body?.end;
  const timed = exchanges[e]!.to.bodyTimeoutMs !== undefined;
  return (end === "never" && !timed) || end === "reset" ? undefined : { exchange: e, what: "response" };
}

/** What is sent at once, and what waits for a 100 or for the tunnel. */
function streamTurns(
  client: ClientScript,
  exchange: ExchangeScript,
  e: number,
  id: string,
  lane: number,
): Turn[] {
  const stream = streamOf(e);
  const part = (type: number, flags: number, payload: Uint8Array, wholeWith?: number): Part => {
    const bytes = frame(type, flags, stream, payload);
    return { exchange: e, bytes, wholeWith: wholeWith === undefined ? undefined : bytes.length };
  };
  const { body, expect, tunnel } = exchange;
  const open = body !== undefined || exchange.upgrade;
  const fields = hpack(fieldsOf(exchange, id, lane));
  // A length of 0 makes the head the whole of a request, whatever follows.
  const whole = !open || (body?.framing === "length" && body.bytes === 0);
  const head = part(Frame.HEADERS, END_HEADERS | (open ? 0 : END_STREAM), fields, whole ? 1 : undefined);
  if (isUpgrade(client, exchange)) {
    const last = tunnel.endedBy === "client" ? END_STREAM : 0;
    const up = tunnelFrames(bytesOf("up", id, tunnel.up), last, part);
    const asked = { ...head, wholeWith: head.bytes.length };
    if (tunnel.early) return [{ after: undefined, parts: [asked, ...up] }];
    return [
      { after: undefined, parts: [asked] },
      { after: { exchange: e, what: "tunnel" }, parts: up },
    ];
  }
  const data = body === undefined ? [] : bodyParts(id, body, part);
  if (expect !== "waits" || data.length === 0) return [{ after: undefined, parts: [head, ...data] }];
  return [
    { after: undefined, parts: [head] },
    { after: { exchange: e, what: "continue" }, parts: data },
  ];
}

function fieldsOf(exchange: ExchangeScript, id: string, lane: number): [string, string][] {
  const { method, upgrade, body, expect } = exchange;
  return [
    [":method", upgrade ? "CONNECT" : method],
    [":scheme", "https"],
    [":authority", exchange.host],
    [":path", pathOf(lane, id, exchange.to)],
    ...(upgrade ? [[":protocol", "websocket"] satisfies [string, string]] : []),
    ["x-id", id],
    ...(expect === "none" ? [] : [["expect", "100-continue"] satisfies [string, string]]),
    ...(body?.framing === "length"
      ? [["content-length", String(body.bytes)] satisfies [string, string]]
      : []),
  ];
}

type MakePart = (type: number, flags: number, payload: Uint8Array, wholeWith?: number) => Part;

function bodyParts(id: string, body: BodyScript, part: MakePart): Part[] {
  const { padding, end } = body;
  const pieces = bodyPieces(id, body, smuggled(id));
  const ends = end === "last" && pieces.length > 0 ? pieces.length - 1 : -1;
  const frames = pieces.map(({ bytes, wholeWith }, i) => {
    const flags = (i === ends ? END_STREAM : 0) | (padding > 0 ? PADDED : 0);
    const payload =
      padding === 0 ? bytes : Buffer.concat([Buffer.from([padding]), bytes, Buffer.alloc(padding)]);
    // With a length the upstream has it all by then, whatever ends the stream.
    const made = part(
      Frame.DATA,
      flags,
      payload,
      body.framing === "length" || i === ends ? wholeWith : undefined,
    );
    const beforePadding = body.framing === "length" && made.wholeWith !== undefined;
    return beforePadding ? { ...made, wholeWith: made.bytes.length - padding } : made;
  });
  const reset = Buffer.alloc(4);
  reset.writeUInt32BE(CANCEL);
  const whole = body.off < 0 ? undefined : 1;
  if (end === "reset") return [...frames, part(Frame.RST_STREAM, 0, reset)];
  if (end === "trailers")
    return [...frames, part(Frame.HEADERS, END_HEADERS | END_STREAM, hpack([["x-trailer", "yes"]]), whole)];
  if (end === "never" || ends !== -1) return frames;
  return [...frames, part(Frame.DATA, END_STREAM, Buffer.alloc(0), whole)];
}

function tunnelFrames(bytes: Buffer, last: number, part: MakePart): Part[] {
  const frames: Part[] = [];
  for (let at = 0; at < bytes.length; at += HTTP2_PIECE_BYTES_MAX) {
    const piece = bytes.subarray(at, at + HTTP2_PIECE_BYTES_MAX);
    frames.push(part(Frame.DATA, at + piece.length === bytes.length ? last : 0, piece));
  }
  return bytes.length === 0 && last !== 0 ? [part(Frame.DATA, last, bytes)] : frames;
}

/** One part of each list in turn. */
function alternating<T>(lists: readonly (readonly T[])[]): T[] {
  const longest = Math.max(...lists.map((list) => list.length));
  return Array.from({ length: longest }, (_, i) => lists.flatMap((list) => list.slice(i, i + 1))).flat();
}
