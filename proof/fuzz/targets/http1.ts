import { disagreements, READERS } from "../../wire/readers.js";
import { ForwardingRules, normalisePath, parseConfig, serverConfigsOf } from "../../../src/model/index.js";
import { ChunkDecoder, ChunkError } from "../../../src/runtime/codec/http1/chunkDecoder.js";
import { type MessageHead, HeadError } from "../../../src/runtime/codec/http1/fields.js";
import { HeadReader } from "../../../src/runtime/codec/http1/headReader.js";
import { parseRequestHead, type Http1ParsedRequest } from "../../../src/runtime/codec/http1/requestHead.js";
import { type ParsedResponse, parseResponseHead } from "../../../src/runtime/codec/http1/responseHead.js";
import { logsIn, loopback, oneServer } from "../../../testkit/oneServer.js";
import { WORDS } from "../cases/words.js";
import { demand, type FuzzTarget } from "../target.js";

const LIMITS = { requestLineBytesMax: 8_192, headBytesMax: 32_768, headerCountMax: 200 };

/** The rules of the front end's proxied routes, as a config gives them. */
export const RULES: readonly ForwardingRules[] = forwardingRules();

function forwardingRules(): ForwardingRules[] {
  const forwarded = { host: "sync.example" };
  const parsed = parseConfig(
    oneServer({
      logs: logsIn("/"),
      listeners: [loopback("http", 80)],
      upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
      routes: [
        {
          name: "web",
          path: "/sync",
          match: "prefix",
          action: { type: "proxy", upstream: "web", forwarded },
        },
        {
          name: "files",
          path: "/synchttp",
          action: { type: "proxy", upstream: "web", strip: "raw", hostHeader: "upstream" },
        },
      ],
    }),
  );
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  const { routes } = parsed.value.virtualServers[0]!;
  return routes.map(
    (route) => new ForwardingRules(route as never, serverConfigsOf(parsed.value.upstreams[0]!)[0]!),
  );
}

/** What goes upstream of a request: by every parser one request, or one and what is its body. */
export function checkForwarded(
  request: Http1ParsedRequest | ForwardedLike,
  webSocket: boolean,
  body: string,
): void {
  const framing =
    request.bodyLength === -1
      ? "Transfer-Encoding: chunked\r\n"
      : request.bodyLength > 0 || request.lengthDeclared
        ? `Content-Length: ${body.length}\r\n`
        : "";
  for (const rules of RULES) {
    // A route takes only paths below its own.
    if (rules === RULES[1] && !/^\/synchttp(?:\/|$)/.test(request.path)) continue;
    const { method, target, path, host, serverName, headers } = request;
    const from = {
      scheme: "https",
      clientAddress: "192.0.2.1",
      trusted: false,
      upgrade: webSocket ? "websocket" : undefined,
    } as const;
    const facts = { method, target, path, host, serverName, headers, ...from };
    const head = rules.requestHead(facts, framing);
    // Where no rule concerns a line, lines pass as they came: the same comes of it.
    const plainLines = request.fields?.plainLines;
    const fast = rules.requestHead({ ...facts, plainLines }, framing);
    demand(fast === head, "other fields where lines pass as they came", { head, fast });
    const payload = request.bodyLength === -1 ? `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n` : body;
    const bytes = Buffer.from(
      head + (request.bodyLength === -1 && body === "" ? "0\r\n\r\n" : payload),
      "latin1",
    );
    const complaints = disagreements(bytes);
    demand(complaints.length === 0, "parsers read the forwarded request differently", { head, complaints });
    const { messages, rest } = READERS[0]!.read(bytes);
    demand(messages.length === 1 && rest === "none", "the forwarded request is not one request", head);
    demand(messages[0]!.method === request.method, "another method", head);
    demand(messages[0]!.body === body, "another body", head);
    demand(normalisePath(messages[0]!.target) !== undefined, "a target that is refused", head);
  }
}

interface ForwardedLike {
  readonly method: string;
  readonly target: string;
  readonly path: string;
  readonly headers: string[];
  readonly fields?: { readonly plainLines: string | undefined };
  readonly host: string;
  readonly serverName: string;
  readonly bodyLength: number;
  readonly lengthDeclared: boolean;
}

const headOf = (text: string): MessageHead => ({ text, bytes: Buffer.from(text, "latin1"), at: 0 });

const refusal = (error: unknown): string => {
  if (error instanceof HeadError) return "refused";
  throw error;
};

/** Reads heads in pieces of a size. @returns the head, or what became of it */
function readInPieces(bytes: Buffer, size: number): string {
  const reader = new HeadReader(LIMITS.headBytesMax, LIMITS.requestLineBytesMax);
  try {
    for (let at = 0; at < bytes.length; at += size) {
      if (reader.read(Buffer.from(bytes.subarray(at, at + size)), 0)) return reader.text;
    }
  } catch (error) {
    return refusal(error);
  }
  return "more";
}

const requestHead: FuzzTarget = {
  name: "request-head",
  dictionary: WORDS.http1,
  run(input) {
    const whole = readInPieces(input, Math.max(1, input.length));
    let request: Http1ParsedRequest | undefined;
    let outcome = whole;
    if (whole !== "refused" && whole !== "more") {
      try {
        request = parseRequestHead(headOf(whole), LIMITS, 0);
      } catch (error) {
        outcome = refusal(error);
      }
    }
    // Pieces are refused as soon as no further byte could repair them, the whole not later than it is parsed.
    for (const size of [1, 7]) {
      const pieces = readInPieces(input, size);
      if (pieces === "refused")
        demand(outcome !== whole || whole === "refused" || whole === "more", "refused only in pieces", whole);
      else demand(pieces === whole, "another head in pieces", { whole, pieces });
    }
    if (request !== undefined) checkForwarded(request, false, request.bodyLength === 0 ? "" : "body");
    if (request?.upgrade === "websocket") checkForwarded(request, true, "");
  },
};

const responseHead: FuzzTarget = {
  name: "response-head",
  dictionary: WORDS.http1,
  run(input) {
    const end = input.indexOf("\r\n\r\n");
    if (end === -1) return;
    const head = input.toString("latin1", 0, end + 4);
    for (const method of ["GET", "HEAD"]) checkResponse(head, method);
  },
};

/** A head that is taken is passed on so that it reads alike, but for its framing. */
function checkResponse(head: string, method: string): void {
  let first: ParsedResponse;
  try {
    first = parseResponseHead(headOf(head), method, 500, false);
  } catch (error) {
    refusal(error);
    return;
  }
  const fields = RULES[0]!.responseHeaders(first.fields.list, {
    method,
    target: "/sync/",
    path: "/sync/",
    headers: [],
    host: "a",
    serverName: "a",
    scheme: "https",
    clientAddress: "::1",
    trusted: false,
  });
  let lines = "";
  for (let i = 0; i < fields.length; i += 2) lines += `${fields[i]}: ${fields[i + 1]}\r\n`;
  lines += "\r\n";
  const { plainLines } = first.fields;
  demand(plainLines === undefined || plainLines === lines, "other fields as lines", { lines, plainLines });
  const passed = `HTTP/1.1 ${first.status} ${first.reason}\r\n${lines}`;
  const again = parseResponseHead(headOf(passed), method, 500, false);
  demand(again.status === first.status && again.reason === first.reason, "another status line", head);
  demand(again.fields.list.join("\n") === fields.join("\n"), "other fields", { head, lines });
  demand(again.contentLength === -1 && again.upgrade === undefined, "framing passes", lines);
}

const HEAD = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";

/** Our own parser and llhttp, which may refuse. */
const PATIENT_READERS = READERS.filter(({ strict }) => strict).map((reader) => ({
  ...reader,
  strict: false,
}));

const chunks: FuzzTarget = {
  name: "chunks",
  dictionary: WORDS.chunks,
  run(input) {
    const whole = decode(input, Math.max(1, input.length));
    for (const size of [1, 3]) {
      const pieces = decode(input, size);
      demand(pieces.end === whole.end, "another end in pieces", { whole, pieces });
      // What was good before a fault may have been passed on, or not yet.
      const same =
        whole.end === "fault"
          ? whole.body.startsWith(pieces.body) || pieces.body.startsWith(whole.body)
          : pieces.body === whole.body;
      demand(same, "another body in pieces", { whole, pieces });
    }
    if (typeof whole.end !== "number") return;
    // Behind the end another message begins, for every parser that does not refuse it (extensions are dropped anyway).
    const bytes = Buffer.concat([Buffer.from(HEAD), input.subarray(0, whole.end)]);
    const complaints = disagreements(bytes, PATIENT_READERS);
    demand(complaints.length === 0, "strict parsers read the chunks differently", complaints);
    demand(READERS[0]!.read(bytes).messages[0]?.body === whole.body, "another body", whole);
  },
};

function decode(input: Buffer, size: number): { body: string; end: number | "more" | "fault" } {
  const decoder = new ChunkDecoder();
  let body = "";
  const onBytes = (chunk: Buffer, from: number, to: number): void => {
    demand(from < to && to <= chunk.length, "an empty or impossible piece", { from, to });
    body += chunk.toString("latin1", from, to);
  };
  try {
    for (let at = 0; at < input.length; at += size) {
      const piece = Buffer.from(input.subarray(at, at + size));
      const next = decoder.decode(piece, 0, { onBytes });
      if (decoder.done) return { body, end: at + next };
      demand(next === piece.length, "bytes are left over", next);
    }
  } catch (error) {
    if (!(error instanceof ChunkError)) throw error;
    return { body, end: "fault" };
  }
  return { body, end: "more" };
}

export const HTTP1_TARGETS: readonly FuzzTarget[] = [requestHead, responseHead, chunks];
