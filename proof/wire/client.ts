import { once } from "node:events";
import type { ClientHttp2Session } from "node:http2";
import { RawClient } from "../../testkit/http2RawClient.js";
import { connectHttp2 } from "../../testkit/http2Session.js";
import { Accepted, connectTo } from "../../testkit/peers.js";
import { connectTls } from "../../testkit/tlsClient.js";
import { type Message, parseMessage } from "../../testkit/messages.js";
import { HOST } from "./site.js";

/** A client's connection. TLS is but the way to the parsers: all connections but the first to a port resume a session. */
export async function connectHttp1(port: number, secure: boolean): Promise<Accepted> {
  if (!secure) return connectTo(port);
  const socket = connectTls({ port, protocol: "http/1.1", ...RESUMED });
  const peer = new Accepted(socket);
  await once(socket, "secureConnect");
  return peer;
}

/** The same for HTTP/2, frame by frame. */
export const connectFrames = (port: number): Promise<RawClient> =>
  RawClient.over(connectTls({ port, protocol: "h2", ...RESUMED }));

const RESUMED = { serverName: HOST, resumes: true } as const;

/** The same for HTTP/2, by Node's own client. */
export const connectSession = (port: number): ClientHttp2Session =>
  connectHttp2(port, undefined, { ...RESUMED, maxHeaderListPairs: 1_000 });

/** A final response among what a client received. */
export interface ReceivedResponse {
  /** Statuses of informational responses before it. */
  readonly informational: readonly number[];
  /** Undefined for bytes that are not a response, or not yet. */
  readonly message: Message | undefined;
  /** 0 where there is none. */
  readonly status: number;
  /** What is not a response. */
  readonly rest: string;
}

/** @param methods of the requests in turn; GET for those after them */
export function receivedResponses(
  text: string,
  methods: readonly string[],
  ended: boolean,
): ReceivedResponse[] {
  const bytes = Buffer.from(text, "latin1");
  const responses: ReceivedResponse[] = [];
  let informational: number[] = [];
  for (let at = 0; at < bytes.length;) {
    const method = methods[responses.length] ?? "GET";
    const message = parseMessage(bytes, at, { type: "response", method, ended });
    const status = Number(/^HTTP\/1\.[01] (\d{3})/.exec(message?.startLine ?? "")?.[1] ?? 0);
    const rest = status === 0 ? text.slice(at) : "";
    at = message?.end ?? bytes.length;
    // 101 is final: what follows is not an HTTP message any more.
    if (status >= 100 && status < 200 && status !== 101) informational.push(status);
    else {
      responses.push({ informational, message, status, rest });
      informational = [];
    }
  }
  return informational.length === 0
    ? responses
    : [...responses, { informational, message: undefined, status: 0, rest: "" }];
}

/** One response as a client reads it. */
export interface ClientResponse {
  readonly status: number;
  readonly body: string;
  /** Whether its framing says that it is whole. */
  readonly complete: boolean;
}

/** Final responses in what a client received. Bytes that are not a response show as one of status 0. */
export const readResponses = (text: string, methods: readonly string[], ended: boolean): ClientResponse[] =>
  receivedResponses(text, methods, ended)
    .filter(({ status, rest }) => status !== 0 || rest !== "")
    .map(({ status, message, rest }) =>
      status === 0
        ? { status, body: rest, complete: false }
        : { status, body: message!.body.toString("latin1"), complete: message!.complete },
    );

/** A request after the one of the case: it must be answered as itself, or not at all. */
export const CANARY_LINE = "GET /sync/canary HTTP/1.1";
export const CANARY = `${CANARY_LINE}\r\nHost: ${HOST}\r\nX-Canary: yes\r\n\r\n`;

export const isCanary = ({ body, complete }: ClientResponse): boolean => complete && body === CANARY_LINE;
