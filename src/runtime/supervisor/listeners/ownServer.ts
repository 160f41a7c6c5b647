import { type AddressInfo, createServer, type ListenOptions, type Server, type Socket } from "node:net";
import { plainAddress } from "../../listen/clientInfo.js";
import { httpDate } from "../../dispatch/httpDate.js";
import { reasonPhrase } from "../../dispatch/reasonPhrases.js";
import { readFirst } from "../../sockets/firstBytes.js";
import { SocketPlaces } from "../../sockets/places.js";

/** The parts of a request that the master uses. */
export interface OwnRequest {
  /** The path without the query. */
  readonly path: string;
  readonly query: string;
  /** Host and port as the client wrote them; empty if it names none. */
  readonly host: string;
  /** The `Accept` field; empty if there is none. */
  readonly accept: string;
}

export interface OwnServerResponse {
  readonly status: number;
  /** Media type. */
  readonly type: string;
  readonly body: string | Buffer;
  /** Further fields, each with its CRLF. */
  readonly fields?: string;
}

/** A line of text. */
export const textResponse = (status: number, line: string, fields = ""): OwnServerResponse => ({
  status,
  type: "text/plain; charset=utf-8",
  body: `${line}\n`,
  fields,
});

/** The response to a request; undefined if there is nothing. */
type Responses = (
  asked: OwnRequest,
) => OwnServerResponse | undefined | Promise<OwnServerResponse | undefined>;

/**
 * The HTTP server of the master's own listeners. Its clients are probes, monitoring and sometimes a person: a short
 * head, no body, one request for each connection. Anything else is closed soon. If there are more than a few
 * connections, the oldest is closed: a client that holds many of them must not keep probes out.
 *
 * Not Node's HTTP server, which reads all pipelined requests, possibly thousands, before other events are handled.
 */
export class OwnServer {
  private readonly open = new SocketPlaces(CONNECTIONS_MAX);
  private readonly server: Server;

  private constructor(
    private readonly responses: Responses,
    private readonly admits: (address: string) => boolean,
  ) {
    // A probe may close its side and still read.
    this.server = createServer({ allowHalfOpen: true }, (socket) => this.accept(socket));
  }

  /**
   * Opens a socket, or takes over an open one.
   *
   * @returns the server, or why it cannot listen
   */
  static listen(
    where: ListenOptions & { readonly fd?: number },
    responses: Responses,
    admits: (address: string) => boolean = () => true,
  ): Promise<OwnServer | NodeJS.ErrnoException> {
    const own = new OwnServer(responses, admits);
    return new Promise((resolve) => {
      // The server also ignores later errors of accept(), for instance without descriptors: the next probe may succeed.
      own.server.on("error", resolve).listen(where, () => resolve(own));
    });
  }

  get at(): AddressInfo {
    return this.server.address() as AddressInfo;
  }

  /** Accepts no more; what it has gets a response, or is cut after a moment. */
  close(): void {
    this.server.close();
    setTimeout(() => this.open.clear(), HEAD_MS).unref();
  }

  private accept(socket: Socket): void {
    if (!this.admits(plainAddress(socket.remoteAddress ?? ""))) return void socket.destroy();
    readFirst(socket, {
      parse: headIn,
      timeoutMs: HEAD_MS,
      // Nothing after the head is read.
      found: (head) => void this.respond(head).then((bytes) => socket.end(bytes, () => socket.destroy())),
      failed: () => undefined,
    });
    this.open.take(socket);
  }

  private async respond(head: string): Promise<Buffer> {
    const [, method = "", target = ""] = REQUEST_LINE.exec(head) ?? [];
    const refusal = refusalOf(head, method);
    if (refusal !== undefined) return bytesOf(refusal, method);
    const [path = "", query = ""] = target.split("?", 2);
    const [host, accept] = [fieldIn(head, "host:"), fieldIn(head, "accept:")];
    try {
      return bytesOf(
        (await this.responses({ path, query, host, accept })) ?? textResponse(404, "not found"),
        method,
      );
    } catch {
      return bytesOf(textResponse(500, "internal error"), method);
    }
  }
}

/** @param name in lower case, with its colon. @returns the value of a field; empty if it is missing */
function fieldIn(head: string, name: string): string {
  const line = head.split("\r\n").find((one) => one.slice(0, name.length).toLowerCase() === name);
  return line === undefined ? "" : line.slice(name.length).trim();
}

function refusalOf(head: string, method: string): OwnServerResponse | undefined {
  if (head.length > HEAD_BYTES_MAX) return textResponse(431, "head too long");
  if (method === "") return textResponse(400, "not a request");
  if (method === "GET" || method === "HEAD") return undefined;
  return textResponse(405, "GET or HEAD", "Allow: GET, HEAD\r\n");
}

/** A whole head, or more bytes than one may have; undefined while some of it is missing. */
function headIn(bytes: Buffer): string | undefined {
  const most = bytes.toString("latin1", 0, HEAD_BYTES_MAX + 1);
  const end = most.indexOf("\r\n\r\n");
  if (end !== -1) return most.slice(0, end + 2);
  return most.length > HEAD_BYTES_MAX ? most : undefined;
}

function bytesOf({ status, type, body, fields = "" }: OwnServerResponse, method: string): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const head =
    `HTTP/1.1 ${status} ${reasonPhrase(status)}\r\nDate: ${httpDate()}\r\n` +
    `Content-Type: ${type}\r\nContent-Length: ${bytes.length}\r\n` +
    `X-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nConnection: close\r\n${fields}\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), ...(method === "HEAD" ? [] : [bytes])]);
}

const HEAD_MS = 2_000;
const HEAD_BYTES_MAX = 4_096;
const CONNECTIONS_MAX = 64;
const REQUEST_LINE = /^([A-Z]+) (\S+) HTTP\/1\.[01]\r\n/;
