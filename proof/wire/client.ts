import type { ClientHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { RawClient } from "../../testkit/http2RawClient.js";
import { connectHttp2 } from "../../testkit/http2Session.js";
import { type Accepted, connectTo } from "../../testkit/peers.js";
import { connectTls } from "../../testkit/tlsClient.js";
import type { Close } from "./case.js";
import { type Outcome, receivedResponses } from "./responses.js";
import { HOST } from "./site.js";

/** A client's connection. TLS is but the way to the parsers: all connections but the first to a port resume a session. */
export const connectHttp1 = (port: number, secure: boolean): Promise<Accepted> =>
  connectTo(port, secure && RESUMED);

/** The same for HTTP/2, frame by frame. */
export const connectFrames = (port: number): Promise<RawClient> =>
  RawClient.over(connectTls({ port, protocol: "h2", ...RESUMED }));

/** The same for HTTP/2, by Node's own client. */
export const connectSession = (port: number): ClientHttp2Session =>
  connectHttp2(port, undefined, { ...RESUMED, maxHeaderListPairs: 1_000 });

const RESUMED = { serverName: HOST, resumes: true } as const;

/** @param transport the connection below TLS, which alone can be reset */
export function closeBy(socket: Socket, how: Close, transport = socket): void {
  if (how === "half") socket.end();
  // One that is being ended cannot be reset: Node would wait for its close for ever.
  else if (how === "reset" && !socket.writableEnded) transport.resetAndDestroy();
  else socket.destroy();
}

/** Final responses in what a client received. */
export const readResponses = (...what: Parameters<typeof receivedResponses>): Outcome[] =>
  receivedResponses(...what).filter(({ startLine, pieces }) => startLine !== "" || pieces.length > 0);

/** A request after the one of the case: it must get its own response, or none. */
export const CANARY_LINE = "GET /sync/canary HTTP/1.1";
export const CANARY = `${CANARY_LINE}\r\nHost: ${HOST}\r\nX-Canary: yes\r\n\r\n`;

export const isCanary = ({ status, text, complete }: Outcome): boolean =>
  status === 200 && complete && text === CANARY_LINE;
