import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";

/** What came of a request: the response, and what the server saw that gave it. */
export interface Seen {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  /** Absent where no server of the application responded. */
  readonly server?: {
    readonly part: string;
    readonly method: string;
    readonly target: string;
    readonly fields: Readonly<Record<string, string>>;
  };
  readonly body: string;
}

/** Asks over TLS; `WS` begins a WebSocket. */
export function ask(
  port: number,
  host: string,
  method: string,
  path: string,
  { headers = {}, body = "" }: { headers?: Readonly<Record<string, string>>; body?: string } = {},
): Promise<Seen> {
  const isSocket = method === "WS";
  const upgrade = {
    Connection: "Upgrade",
    Upgrade: "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
  };
  return new Promise((resolve, reject) => {
    const asked = httpsRequest({
      host: "127.0.0.1",
      port,
      servername: host.split(":")[0]!,
      rejectUnauthorized: false,
      method: isSocket ? "GET" : method,
      path,
      agent: false,
      headers: { host, ...(isSocket ? upgrade : {}), ...headers },
    });
    const read = (stream: NodeJS.ReadableStream, response: IncomingMessage, head = ""): void => {
      const { statusCode: status = 0, headers: fields } = response;
      let text = head;
      stream.on("data", (piece: Buffer) => (text += piece.toString()));
      stream.on("error", reject);
      stream.on("end", () => resolve({ status, headers: fields, server: serverOf(text), body: text }));
    };
    asked.on("response", (response) => read(response, response));
    asked.on("upgrade", (response, socket, head) => {
      read(socket, response, head.toString());
      // A server that goes on has said that it does; nginx drops what a server says after the end of ours.
      socket.setTimeout(1_000, () => socket.end());
    });
    asked.on("error", reject);
    asked.end(body === "" ? undefined : body);
  });
}

function serverOf(body: string): Seen["server"] {
  if (!body.startsWith('{"part":')) return undefined;
  return JSON.parse(body) as Seen["server"];
}
