import { headText, LAST_CHUNK } from "./case.js";
import {
  type ResponsePlan,
  bytesOf,
  chunkParts,
  type ExchangeScript,
  isBodiless,
  oneByteChunks,
} from "./timeline.js";

/** A response as an upstream writes it. */
export interface PlayedResponse {
  readonly parts: readonly Buffer[];
  /** How many of these are written before what is held. */
  readonly unheld: number;
  /** What is written later, where nothing more may come. */
  readonly late: Buffer | undefined;
  /** What becomes of the connection: `wait` for the proxy, which has to close it; `soon`: ends a moment later. */
  readonly then: "keep" | "end" | "soon" | "reset" | "wait";
  /** Whoever asked for a tunnel has it now. */
  readonly opens: boolean;
}

const HINTS: Readonly<Record<number, string>> = { 103: "Link: </style.css>; rel=preload\r\n" };

/** What would be another response, if anybody took it for one. */
const BEHIND = "HTTP/1.1 200 OK\r\nX-Id: behind\r\nContent-Length: 0\r\n\r\n";

export function playedResponse(id: string, exchange: ExchangeScript): PlayedResponse {
  const { response } = exchange;
  const { flaw } = response;
  const nothing = { parts: [], unheld: 0, late: undefined, opens: false };
  if (flaw === "silence") return { ...nothing, then: "end" };
  if (flaw === "garbage") return { ...nothing, parts: [Buffer.from("garbage\r\n\r\n")], then: "wait" };
  const informational = response.informational.map((status) =>
    Buffer.from(`HTTP/1.1 ${status} Wait\r\n${HINTS[status] ?? ""}\r\n`),
  );
  const status = flaw === "switch" ? 101 : response.status;
  const switches = status === 101;
  const fields = switches
    ? ["Connection: Upgrade", "Upgrade: websocket"]
    : [...framingFields(exchange), ...(response.then === "close" ? ["Connection: close"] : [])];
  const head = Buffer.from(headText(`HTTP/1.1 ${status} Response`, `X-Id: ${id}`, ...fields));
  const body = switches || isBodiless(exchange) ? [] : bodyParts(id, response);
  const behind = flaw === "long" ? [Buffer.from(BEHIND)] : [];
  const parts = [...informational, head, ...body, ...behind];
  const unheld = response.held === "half" ? informational.length + 1 + (body.length >> 1) : 0;
  const late = flaw === "late" ? Buffer.from(BEHIND) : undefined;
  return { parts, unheld, late, then: endOf(exchange, switches), opens: status === 101 };
}

function framingFields({ response }: ExchangeScript): string[] {
  if (response.framing === "close") return [];
  return [response.framing === "length" ? `Content-Length: ${response.bytes}` : "Transfer-Encoding: chunked"];
}

function bodyParts(id: string, { framing, flaw, bytes, piece }: ResponsePlan): Buffer[] {
  const body = bytesOf("response", id, bytes);
  const sent = flaw === "short" ? body.subarray(0, bytes >> 1) : body;
  if (framing === "chunked" && piece === 1 && flaw === "none")
    return [Buffer.concat([oneByteChunks(sent), Buffer.from(LAST_CHUNK)])];
  const pieces: Buffer[] = [];
  for (let at = 0; at < sent.length; at += piece) pieces.push(sent.subarray(at, at + piece));
  if (framing !== "chunked") return pieces;
  const chunks = chunkParts(pieces, flaw, "zz").map((parts) => Buffer.concat(parts));
  return flaw === "short" ? chunks : [...chunks, Buffer.from(LAST_CHUNK)];
}

function endOf(exchange: ExchangeScript, switches: boolean): PlayedResponse["then"] {
  const { flaw, framing, then } = exchange.response;
  if (flaw === "switch") return "wait";
  if (switches || flaw === "late") return "keep";
  const untilClose = framing === "close" && !isBodiless(exchange);
  // Where only the end of the connection ends the body, a cut has to be seen by how it ends.
  if (flaw === "short") return untilClose ? "reset" : "end";
  if (flaw !== "none") return "wait";
  if (then === "reset") return "reset";
  if (untilClose) return "end";
  return then === "keep" || then === "soon" ? then : "end";
}

/** Whether the whole of a response will be there to be passed on. */
export const isWhole = ({ response }: ExchangeScript): boolean =>
  ["none", "long", "late"].includes(response.flaw) && response.then !== "reset";
