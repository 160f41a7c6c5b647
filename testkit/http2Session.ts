import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connectTls, type TlsClient } from "./tlsClient.js";

/** A client session that ignores errors, which the tests see on the streams. */
export function connectHttp2(
  port: number,
  settings?: { initialWindowSize?: number; headerTableSize?: number },
  over: Partial<TlsClient> & { maxHeaderListPairs?: number } = {},
): ClientHttp2Session {
  const { maxHeaderListPairs, ...connection } = over;
  const session = connect(`https://127.0.0.1:${port}`, {
    createConnection: () => connectTls({ port, protocol: "h2", ...connection }),
    settings,
    maxHeaderListPairs,
  });
  session.on("error", () => undefined);
  return session;
}

export interface Response {
  readonly status: number;
  readonly headers: OutgoingHttpHeaders;
  /** Names and values in turn as they came. */
  readonly raw: readonly string[];
  readonly body: string;
  /** Code of the reset that ended the stream; 0 without one. */
  readonly code: number;
  readonly informational: readonly OutgoingHttpHeaders[];
}

/** Sends a request to app.example and waits until its stream has closed. */
export function ask(
  session: ClientHttp2Session,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
): Promise<Response> {
  const stream = session.request(
    { ":authority": "app.example", ...headers },
    { endStream: body === undefined },
  );
  if (body !== undefined) stream.end(body);
  return responseOf(stream);
}

export function responseOf(stream: ClientHttp2Stream): Promise<Response> {
  return new Promise((resolve) => {
    let head: OutgoingHttpHeaders = {};
    let raw: readonly string[] = [];
    let body = "";
    const informational: OutgoingHttpHeaders[] = [];
    stream.on("headers", (headers) => informational.push(headers));
    stream.on("response", (...[headers, , list]: readonly unknown[]) => {
      head = headers as OutgoingHttpHeaders;
      raw = list as string[];
    });
    stream.on("data", (chunk: Buffer) => (body += chunk.toString("latin1")));
    stream.on("error", () => undefined);
    stream.on("close", () =>
      resolve({
        status: Number(head[":status"] ?? 0),
        headers: head,
        raw,
        body,
        code: stream.rstCode,
        informational,
      }),
    );
  });
}
