import { type ClientHttp2Stream, connect, constants, type OutgoingHttpHeaders } from "node:http2";
import type { ClientResult } from "./http1Client.js";
import type { Field } from "./messages.js";
import { connectTls } from "./tlsClient.js";

export interface Http2Options {
  readonly port: number;
  readonly serverName: string;
  readonly method: string;
  readonly target: string;
  readonly authority: string;
  readonly fields: readonly Field[];
  /** Pieces of the body; undefined for none, and the stream is closed with the head. */
  readonly body: readonly string[] | undefined;
  /** How long an answer may take, before the stream counts as silent. */
  readonly patienceMs?: number;
}

const PATIENCE_MS = 4_000;

/** Sends one request over HTTP/2. */
export async function talkHttp2(options: Http2Options): Promise<ClientResult> {
  const session = connect(`https://127.0.0.1:${options.port}`, {
    createConnection: () => connectTls(options.port, options.serverName, "h2"),
  });
  try {
    // An error of the session reaches the stream as well.
    session.on("error", () => undefined);
    const stream = session.request(headersOf(options), { endStream: options.body === undefined });
    for (const piece of options.body ?? []) stream.write(Buffer.from(piece, "latin1"));
    if (options.body !== undefined) stream.end();
    return await read(stream, options.patienceMs ?? PATIENCE_MS);
  } finally {
    session.destroy();
  }
}

function headersOf({ method, target, authority, fields }: Http2Options): OutgoingHttpHeaders {
  const headers: OutgoingHttpHeaders = {
    ":method": method,
    ":scheme": "https",
    ":authority": authority,
    ":path": target,
  };
  for (const [name, value] of fields) {
    const before = headers[name.toLowerCase()];
    headers[name.toLowerCase()] = before === undefined ? value : [before, value].flat().map(String);
  }
  return headers;
}

function read(stream: ClientHttp2Stream, patienceMs: number): Promise<ClientResult> {
  return new Promise((resolve) => {
    const informational: number[] = [];
    const pieces: Buffer[] = [];
    let status = "";
    let fields: Field[] = [];
    let ended = false;
    let connection: ClientResult["connection"] = "";
    const timer = setTimeout(() => {
      connection = "silent";
      stream.close();
    }, patienceMs);
    stream.on("headers", (headers) => informational.push(Number(headers[":status"])));
    // The raw list keeps repeated fields apart; it is passed on, though not typed.
    stream.on("response", (...[headers, , raw]: readonly unknown[]) => {
      status = String((headers as Record<string, unknown>)[":status"]);
      fields = pairs(raw as string[]).filter(([name]) => !name.startsWith(":"));
    });
    stream.on("data", (chunk: Buffer) => pieces.push(chunk));
    stream.on("end", () => (ended = true));
    stream.on("error", () => undefined);
    stream.on("close", () => {
      clearTimeout(timer);
      const complete = ended && stream.rstCode === constants.NGHTTP2_NO_ERROR;
      const startLine = status === "" ? "" : `HTTP/2.0 ${status}`;
      const raw = `${startLine}\n${fields.map((field) => field.join(": ")).join("\n")}\nreset ${stream.rstCode}`;
      const body = Buffer.concat(pieces);
      resolve({ informational, startLine, fields, body, framing: "", complete, connection, raw });
    });
  });
}

function pairs(raw: readonly string[]): Field[] {
  return raw.flatMap((name, i): Field[] => (i % 2 === 0 ? [[name, raw[i + 1]!]] : []));
}
