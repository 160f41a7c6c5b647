import { onePiece, type VirtualServerConfig } from "../../model/serving.js";
import type { DispatchedExchange } from "../dispatch.js";
import { serverHeader } from "../errorPages.js";
import type { BodySink, ClientInfo, HeaderList } from "../exchange.js";
import { httpDate } from "../httpDate.js";
import { latin1 } from "../latin1.js";
import type { RouteRuntime } from "../routeRuntime.js";
import type { Http1Connection } from "./connection.js";
import type { ParsedRequest } from "./requestHead.js";

/** Body pieces up to this size are copied behind the head as text: what must be copied anyway, and what may stay. */
const JOINED_BYTES_MAX = 16_384;
const JOINED_KEPT_BYTES_MAX = 2_048;

/** How the end of the answer is told on the wire. */
type Framing = "none" | "length" | "chunked" | "close" | "tunnel";

/** One request on an HTTP/1.1 connection, and the writer of its answer. */
export class Http1Exchange implements DispatchedExchange {
  route: RouteRuntime | undefined = undefined;
  status = 0;
  bodyBytesSent = 0;
  headSent = false;
  closes = false;
  onDrain: (() => void) | undefined = undefined;
  onClientGone: (() => void) | undefined = undefined;
  /** Where the body goes, once the action took it. */
  sink: BodySink | undefined = undefined;
  /** True once the answer is complete or given up. */
  over = false;
  private framing: Framing = "none";
  /** Head and small pieces that wait for `flush`, one char a byte. */
  private held = "";
  private continued = false;

  constructor(
    private readonly connection: Http1Connection,
    readonly request: ParsedRequest,
    readonly client: ClientInfo,
    public server: VirtualServerConfig,
  ) {}

  get tunnelled(): boolean {
    return this.framing === "tunnel";
  }

  /** The client holds its body back until it is told to go on. */
  get awaitsContinue(): boolean {
    return this.request.expectContinue && !this.continued;
  }

  readBody(sink: BodySink): void {
    this.sink = sink;
    this.connection.bodyWanted();
  }

  pauseBody(): void {
    this.connection.pauseInput();
  }

  resumeBody(): void {
    this.connection.resumeInput();
  }

  sendContinue(): void {
    if (!this.awaitsContinue || this.headSent || this.over) return;
    this.continued = true;
    this.connection.write("HTTP/1.1 100 Continue\r\n\r\n");
  }

  /** HTTP/1.1 clients get no 103: many take the first head for the last (design 5.8). */
  sendInformational(): void {}

  sendHead(status: number, reason: string, headers: HeaderList, bodyLength: number): void {
    let lines = "";
    for (let i = 0; i < headers.length; i += 2) lines += `${headers[i]}: ${headers[i + 1]}\r\n`;
    this.sendLines(status, reason, `${lines}\r\n`, bodyLength);
  }

  sendLines(status: number, reason: string, lines: string, bodyLength: number): void {
    if (this.over || this.headSent) return;
    this.status = status;
    this.headSent = true;
    const { request } = this;
    this.framing = this.chooseFraming(status, bodyLength);
    let head = beginning(status, reason, serverHeader(this.server));
    if (this.framing === "tunnel") head += `Connection: Upgrade\r\nUpgrade: ${request.upgrade}\r\n`;
    else {
      if (bodyLength >= 0 && status !== 204) head += `Content-Length: ${bodyLength}\r\n`;
      else if (this.framing === "chunked") head += "Transfer-Encoding: chunked\r\n";
      if (!this.connection.mayKeepAlive(this, this.framing === "close")) head += "Connection: close\r\n";
      else if (request.version === "1.0") head += "Connection: keep-alive\r\n";
    }
    this.held = head + lines;
  }

  sendData(chunk: Uint8Array, transient = false): boolean {
    if (this.over || chunk.length === 0 || this.framing === "none") return !this.over;
    this.bodyBytesSent += chunk.length;
    const bytes = chunk as Buffer;
    const chunked = this.framing === "chunked";
    const prefix = chunked ? `${chunk.length.toString(16)}\r\n` : "";
    if (chunk.length + this.held.length <= (transient ? JOINED_BYTES_MAX : JOINED_KEPT_BYTES_MAX)) {
      const text = latin1(bytes, 0, bytes.length);
      this.held += chunked ? `${prefix}${text}\r\n` : text;
      return !this.connection.writePending;
    }
    const kept = transient ? Buffer.from(bytes) : bytes;
    this.connection.writeAround(this.held + prefix, kept, chunked ? "\r\n" : "");
    this.held = "";
    return !this.connection.writePending;
  }

  flush(): void {
    if (this.held === "" || this.over) return;
    const text = this.held;
    this.held = "";
    this.connection.write(text);
  }

  end(): void {
    if (this.over) return;
    if (this.framing === "chunked") this.held += "0\r\n\r\n";
    this.flush();
    this.over = true;
    this.connection.exchangeEnded(this);
  }

  abort(): void {
    if (this.over) return;
    this.flush();
    this.over = true;
    this.connection.exchangeAborted(this.framing === "close");
  }

  /** RFC 9112, 6.3; an HTTP/1.0 client is not sent the chunked coding. */
  private chooseFraming(status: number, bodyLength: number): Framing {
    if (status === 101) return "tunnel";
    if (this.request.method === "HEAD" || status === 204 || status === 304 || status < 200) return "none";
    if (bodyLength >= 0) return "length";
    return this.request.version === "1.1" ? "chunked" : "close";
  }
}

/** Status line, `Server` and `Date`: the same for most answers of a second, so the last one is kept. */
function beginning(status: number, reason: string, server: string): string {
  const date = httpDate();
  if (status !== last.status || date !== last.date || reason !== last.reason || server !== last.server) {
    const text = onePiece(`HTTP/1.1 ${status} ${reason}\r\nServer: ${server}\r\nDate: ${date}\r\n`);
    last = { status, reason, server, date, text };
  }
  return last.text;
}

let last = { status: 0, reason: "", server: "", date: "", text: "" };
