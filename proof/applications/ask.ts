import { request as httpsRequest } from "node:https";

/** What came of a request: the answer, and what the server saw that gave it. */
export interface Seen {
  readonly status: number;
  readonly location?: string;
  /** Absent where no server of the application answered. */
  readonly server?: {
    readonly part: string;
    readonly method: string;
    readonly target: string;
    readonly fields: Readonly<Record<string, string>>;
  };
  readonly body: string;
}

/** Asks over TLS; `WS` begins a WebSocket. */
export function ask(port: number, host: string, method: string, path: string): Promise<Seen> {
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
      servername: host,
      rejectUnauthorized: false,
      method: isSocket ? "GET" : method,
      path,
      agent: false,
      headers: { host, ...(isSocket ? upgrade : {}) },
    });
    const read = (stream: NodeJS.ReadableStream, status: number, location?: string, head?: Buffer): void => {
      let body = head?.toString() ?? "";
      stream.on("data", (piece: Buffer) => (body += piece.toString()));
      stream.on("error", reject);
      stream.on("end", () => resolve({ status, location, server: serverOf(body), body }));
    };
    asked.on("response", (answer) => read(answer, answer.statusCode!, answer.headers.location));
    asked.on("upgrade", (answer, socket, head) => read(socket, answer.statusCode!, undefined, head));
    asked.on("error", reject);
    asked.end();
  });
}

function serverOf(body: string): Seen["server"] {
  if (!body.startsWith('{"part":')) return undefined;
  return JSON.parse(body) as Seen["server"];
}
