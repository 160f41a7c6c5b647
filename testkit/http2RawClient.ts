import type * as net from "node:net";
import type * as tls from "node:tls";
import { connectTls } from "./tlsClient.js";
import { Changes } from "./waiting.js";

/** What a client begins with (RFC 9113, 3.4). */
export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "latin1");

/** Frame types and flags of RFC 9113, 6. */
export const Frame = {
  DATA: 0,
  HEADERS: 1,
  PRIORITY: 2,
  RST_STREAM: 3,
  SETTINGS: 4,
  PUSH_PROMISE: 5,
  PING: 6,
  GOAWAY: 7,
  WINDOW_UPDATE: 8,
  CONTINUATION: 9,
} as const;
export const END_STREAM = 0x1;
export const END_HEADERS = 0x4;
export const PADDED = 0x8;
export const PRIORITY = 0x20;
export const ACK = 0x1;

export interface ReceivedFrame {
  readonly type: number;
  readonly flags: number;
  readonly stream: number;
  readonly payload: Buffer;
}

/** Takes frames out of what a connection brings. */
export class FrameSplitter {
  private rest: Buffer = Buffer.alloc(0);

  /** The frames that are whole with these bytes. */
  *frames(bytes: Buffer): Generator<ReceivedFrame> {
    this.rest = this.rest.length === 0 ? bytes : Buffer.concat([this.rest, bytes]);
    while (this.rest.length >= 9) {
      const length = this.rest.readUIntBE(0, 3);
      if (this.rest.length < 9 + length) return;
      const [type, flags, stream] = [this.rest[3]!, this.rest[4]!, this.rest.readUInt32BE(5)];
      const payload = this.rest.subarray(9, 9 + length);
      this.rest = this.rest.subarray(9 + length);
      yield { type, flags, stream, payload };
    }
  }
}

/** An HTTP/2 client that sends whatever frames it is told to, malformed ones above all. */
export class RawClient {
  readonly frames: ReceivedFrame[] = [];
  closed = false;
  /** Called for every frame that is received. */
  onFrame: (frame: ReceivedFrame) => void = () => undefined;
  private readonly splitter = new FrameSplitter();
  private readonly changes = new Changes();

  private constructor(
    readonly socket: tls.TLSSocket,
    private readonly speaks: boolean,
  ) {
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => this.receive(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.closed = true;
      this.changes.tell();
    });
  }

  /** Connects, over a socket if one is given, and, unless told otherwise, sends the preface and empty settings. */
  static async connect(port: number, preface = true, over?: net.Socket): Promise<RawClient> {
    return RawClient.over(connectTls({ port, protocol: "h2", over }), preface);
  }

  /** The same on a TLS socket that connects already. */
  static async over(socket: tls.TLSSocket, preface = true): Promise<RawClient> {
    const client = new RawClient(socket, preface);
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
    });
    if (preface) {
      socket.write(PREFACE);
      client.send(Frame.SETTINGS, 0, 0, Buffer.alloc(0));
    }
    return client;
  }

  send(type: number, flags: number, stream: number, payload: Uint8Array | string = ""): void {
    this.socket.write(frame(type, flags, stream, payload));
  }

  /** Sends a request head; pseudo-fields of a plain GET come first unless `fields` has some of its own. */
  request(stream: number, fields: readonly (readonly [string, string])[], flags = END_STREAM): void {
    const all = fields.some(([name]) => name.startsWith(":")) ? fields : [...GET, ...fields];
    this.send(Frame.HEADERS, END_HEADERS | flags, stream, hpack(all));
  }

  /** Sends a head, DATA frames and trailers, the last of which ends the stream. */
  whole(stream: number, { fields, data = [], trailers }: WholeRequest): void {
    const rest = data.length + (trailers === undefined ? 0 : 1);
    this.send(Frame.HEADERS, END_HEADERS | (rest === 0 ? END_STREAM : 0), stream, hpack(fields));
    data.forEach((payload, i) => this.send(Frame.DATA, i === rest - 1 ? END_STREAM : 0, stream, payload));
    if (trailers !== undefined) this.send(Frame.HEADERS, END_HEADERS | END_STREAM, stream, hpack(trailers));
  }

  /** The first frame that matches, now or later; undefined if the connection closed without one. */
  async next(match: (frame: ReceivedFrame) => boolean, ms = 30_000): Promise<ReceivedFrame | undefined> {
    const found = (): ReceivedFrame | undefined => this.frames.find(match);
    const seen = (): string => `: no such frame; had ${this.frames.map(describeFrame).join(", ")}`;
    await this.changes.until(() => this.closed || found() !== undefined, ms, seen);
    return found();
  }

  /** How a stream came out: its status, or the code of its reset, or of the connection's end. */
  async outcome(stream: number): Promise<string> {
    const end = await this.next(
      (f) =>
        (f.stream === stream && (f.type === Frame.RST_STREAM || f.type === Frame.HEADERS)) ||
        (f.type === Frame.GOAWAY && f.payload.readUInt32BE(4) !== 0),
    );
    return end === undefined ? "closed" : describeFrame(end);
  }

  whenClosed(ms = 30_000): Promise<void> {
    return this.changes.until(
      () => this.closed,
      ms,
      () => ": the connection stays open",
    );
  }

  destroy(): void {
    this.socket.destroy();
  }

  private receive(chunk: Buffer): void {
    for (const received of this.splitter.frames(chunk)) {
      this.frames.push(received);
      const responses = this.speaks && !this.socket.destroyed;
      if (responses && received.type === Frame.SETTINGS && (received.flags & ACK) === 0)
        this.send(Frame.SETTINGS, ACK, 0);
      this.onFrame(received);
    }
    this.changes.tell();
  }
}

type Fields = readonly (readonly [string, string])[];

/** A request over HTTP/2; the stream ends with its last frame. */
export interface WholeRequest {
  readonly fields: Fields;
  /** Payloads of DATA frames. */
  readonly data?: readonly string[];
  readonly trailers?: Fields;
}

/** The least a request may hold (RFC 9113, 8.3.1). */
export const GET: Fields = [
  [":method", "GET"],
  [":scheme", "https"],
  [":authority", "app.example"],
  [":path", "/"],
];

export function frame(type: number, flags: number, stream: number, payload: Uint8Array | string): Buffer {
  const body = typeof payload === "string" ? Buffer.from(payload, "latin1") : payload;
  const head = Buffer.alloc(9);
  head.writeUIntBE(body.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, body]);
}

export function uint32(...values: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => bytes.writeUInt32BE(value, 4 * i));
  return bytes;
}

export const windowUpdate = (stream: number, increment: number): Buffer =>
  frame(Frame.WINDOW_UPDATE, 0, stream, uint32(increment));

/** RST_STREAM with CANCEL. */
export const cancel = (stream: number): Buffer => frame(Frame.RST_STREAM, 0, stream, uint32(8));

/** SETTINGS with one setting (RFC 9113, 6.5.2). */
export const setting = (name: number, value: number): Buffer =>
  frame(Frame.SETTINGS, 0, 0, Buffer.concat([Buffer.of(0, name), uint32(value)]));

/** Literal fields without indexing and without Huffman coding (RFC 7541, 6.2.2): any octet can be sent. */
export function hpack(fields: readonly (readonly [string, string])[]): Buffer {
  return Buffer.concat(
    fields.map(([name, value]) => Buffer.concat([Buffer.from([0]), hpackString(name), hpackString(value)])),
  );
}

export function hpackString(text: string): Buffer {
  const bytes = Buffer.from(text, "latin1");
  const length: number[] = [];
  if (bytes.length < 0x7f) length.push(bytes.length);
  else {
    length.push(0x7f);
    let rest = bytes.length - 0x7f;
    for (; rest >= 0x80; rest >>>= 7) length.push((rest & 0x7f) | 0x80);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

const ERROR_NAMES = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
];

/** `200`, `RST PROTOCOL_ERROR`, `GOAWAY ENHANCE_YOUR_CALM`; other frames by type and stream. */
export function describeFrame(received: ReceivedFrame): string {
  const { type, payload } = received;
  if (type === Frame.RST_STREAM) return `RST ${ERROR_NAMES[payload.readUInt32BE(0)]}`;
  if (type === Frame.GOAWAY) return `GOAWAY ${ERROR_NAMES[payload.readUInt32BE(4)]}`;
  if (type === Frame.HEADERS) return String(status(payload));
  return `${Object.keys(Frame)[type]}#${received.stream}`;
}

const STATIC_STATUS: Readonly<Record<number, number>> = {
  8: 200,
  9: 204,
  10: 206,
  11: 304,
  12: 400,
  13: 404,
  14: 500,
};

/** Status of a response head. `:status` comes first; its three digits are read, the rest is left alone. */
function status(block: Buffer): number {
  let at = 0;
  // Updates of the dynamic table's size come before the first field (RFC 7541, 4.2).
  while ((block[at]! & 0xe0) === 0x20) {
    if ((block[at]! & 0x1f) === 0x1f) while ((block[++at]! & 0x80) !== 0);
    at++;
  }
  const first = block[at]!;
  if ((first & 0x80) !== 0) return STATIC_STATUS[first & 0x7f] ?? NaN;
  const length = block[at + 1]! & 0x7f;
  const value = block.subarray(at + 2, at + 2 + length);
  return Number((block[at + 1]! & 0x80) === 0 ? value.toString("latin1") : huffmanDigits(value));
}

/** Decimal digits in HPACK's Huffman code: 0 to 2 take five bits, 3 to 9 six (RFC 7541, appendix B). */
function huffmanDigits(bytes: Buffer): string {
  let bits = [...bytes].map((byte) => byte.toString(2).padStart(8, "0")).join("");
  let digits = "";
  while (digits.length < 3) {
    const five = parseInt(bits.slice(0, 5), 2);
    const long = five > 2;
    digits += long ? String(parseInt(bits.slice(0, 6), 2) - 22) : String(five);
    bits = bits.slice(long ? 6 : 5);
  }
  return digits;
}
