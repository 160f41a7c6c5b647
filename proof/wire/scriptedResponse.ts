import { headText, LAST_CHUNK } from "../../testkit/messages.js";
import { type ResponseScript } from "./case.js";
import {
  bytesOf,
  chunkParts,
  type ExchangeScript,
  isBodiless,
  oneByteChunks,
  type ResponsePlan,
} from "./timeline.js";

/** A response as the upstream of a timeline writes it. */
export interface ScriptedResponse extends ResponseScript<Buffer> {
  /** Number of the piece that is held, if one is. */
  readonly heldAt: number | undefined;
  /** What is written later, where nothing more may come. */
  readonly late: Buffer | undefined;
  /** The proxy has to close the connection behind it, or is told that it closes. */
  readonly isLast: boolean;
  /** Whoever asked for a tunnel has it now. */
  readonly opens: boolean;
}

export const MOMENT_MS = 2;

const HINTS: Readonly<Record<number, string>> = { 103: "Link: </style.css>; rel=preload\r\n" };

/** What would be another response, if anybody took it for one. */
const BEHIND = "HTTP/1.1 200 OK\r\nX-Id: behind\r\nContent-Length: 0\r\n\r\n";

export function scriptedResponse(id: string, exchange: ExchangeScript): ScriptedResponse {
  const { held, apart, flaw, status } = exchange.response;
  const { parts, unheld } = partsOf(id, exchange);
  const halves = held === "half" ? [parts.slice(0, unheld), parts.slice(unheld)] : [parts];
  return {
    pieces: apart ? parts : halves.map((half) => Buffer.concat(half)),
    pauseMs: 1,
    heldAt: held === "no" ? undefined : apart ? unheld : halves.length - 1,
    late: flaw === "late" ? Buffer.from(BEHIND) : undefined,
    opens: flaw !== "silence" && flaw !== "garbage" && (flaw === "switch" || status === 101),
    ...endOf(exchange),
  };
}

/** @returns also how many of the parts are written before what is held */
function partsOf(id: string, exchange: ExchangeScript): { parts: readonly Buffer[]; unheld: number } {
  const { response } = exchange;
  const { flaw } = response;
  if (flaw === "silence") return { parts: [], unheld: 0 };
  if (flaw === "garbage") return { parts: [Buffer.from("garbage\r\n\r\n")], unheld: 0 };
  const informational = response.informational.map((status) =>
    Buffer.from(`HTTP/1.1 ${status} Wait\r\nX-Id: ${id}\r\n${HINTS[status] ?? ""}\r\n`),
  );
  const status = flaw === "switch" ? 101 : response.status;
  const switches = status === 101;
  const fields = switches
    ? ["Connection: Upgrade", "Upgrade: websocket"]
    : [...framingFields(exchange), ...(response.then === "close" ? ["Connection: close"] : [])];
  const head = Buffer.from(headText(`HTTP/1.1 ${status} Response`, `X-Id: ${id}`, ...fields));
  const body = switches || isBodiless(exchange) ? [] : bodyParts(id, response);
  const behind = flaw === "long" ? [Buffer.from(BEHIND)] : [];
  const unheld = response.held === "half" ? informational.length + 1 + (body.length >> 1) : 0;
  return { parts: [...informational, head, ...body, ...behind], unheld };
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

/** What becomes of the connection: where nothing is said of that, but it is the last, the proxy has to close it. */
function endOf(exchange: ExchangeScript): Pick<ScriptedResponse, "then" | "thenMs" | "isLast"> {
  const { flaw, framing, status, then } = exchange.response;
  const untilClose = framing === "close" && !isBodiless(exchange);
  if (flaw === "garbage" || flaw === "switch") return { isLast: true };
  if (flaw !== "silence" && (status === 101 || flaw === "late")) return { isLast: false };
  // Where only the end of the connection ends the body, a cut has to be seen by how it ends.
  if (flaw === "short" && untilClose) return { then: "reset", thenMs: 0, isLast: true };
  if (flaw === "short" || flaw === "silence") return { then: "close", isLast: true };
  if (flaw !== "none") return { isLast: true };
  if (then === "reset") return { then, thenMs: 0, isLast: false };
  // Nothing tells the proxy of an end that is not announced: a request may be on its way already.
  const isLast = then === "keep" ? untilClose : then === "close";
  if (then === "keep" && !untilClose) return { isLast };
  return { then: "close", thenMs: then === "soon" && !untilClose ? MOMENT_MS : 0, isLast };
}

/** Whether the whole of a response will be there to be passed on. */
export const isWhole = ({ response }: ExchangeScript): boolean =>
  ["none", "long", "late"].includes(response.flaw) && response.then !== "reset";
