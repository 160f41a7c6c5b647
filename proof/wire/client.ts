import { once } from "node:events";
import { type ClientHttp2Session, connect } from "node:http2";
import { RawClient } from "../kit/http2RawClient.js";
import { Accepted, connectTo } from "../kit/peers.js";
import { parseMessage } from "../nginx/messages.js";
import { HOST } from "../nginx/site.js";
import { connectTls } from "../nginx/tlsClient.js";

/** A client's connection. Here TLS is but the way to the parsers: all connections but the first resume a session. */
export async function connectToStage(port: number, secure: boolean): Promise<Accepted> {
  if (!secure) return connectTo(port);
  const socket = connectTls(port, HOST, "http/1.1");
  const peer = new Accepted(socket);
  await once(socket, "secureConnect");
  return peer;
}

/** The same for HTTP/2, frame by frame. */
export const connectFrames = (port: number): Promise<RawClient> =>
  RawClient.over(connectTls(port, HOST, "h2"));

/** The same for HTTP/2, by Node's own client. */
export function connectSession(port: number): ClientHttp2Session {
  const session = connect(`https://127.0.0.1:${port}`, {
    createConnection: () => connectTls(port, HOST, "h2"),
    maxHeaderListPairs: 1_000,
  });
  return session.on("error", () => undefined);
}

/** One answer as a client reads it. */
export interface ClientAnswer {
  readonly status: number;
  readonly body: string;
  /** Whether its framing says that it is whole. */
  readonly complete: boolean;
}

/**
 * Final answers in what a client received. Bytes that are not an answer show as one of status 0.
 *
 * @param methods of the requests in turn; GET for those after them
 */
export function readAnswers(text: string, methods: readonly string[], ended: boolean): ClientAnswer[] {
  const bytes = Buffer.from(text, "latin1");
  const answers: ClientAnswer[] = [];
  let at = 0;
  while (at < bytes.length) {
    const method = methods[answers.length] ?? "GET";
    const message = parseMessage(bytes, at, { type: "response", method, ended });
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(message?.startLine ?? "")?.[1] ?? 0);
    if (message === undefined || status === 0)
      return [...answers, { status: 0, body: text.slice(at), complete: false }];
    at = message.end;
    if (status < 200 && status !== 101) continue;
    answers.push({ status, body: message.body.toString("latin1"), complete: message.complete });
  }
  return answers;
}

/** A request after the one of the case: it must be answered as itself, or not at all. */
export const CANARY_LINE = "GET /sync/canary HTTP/1.1";
export const CANARY = `${CANARY_LINE}\r\nHost: sync.example\r\nX-Canary: yes\r\n\r\n`;

export const isCanary = ({ body, complete }: ClientAnswer): boolean => complete && body === CANARY_LINE;
