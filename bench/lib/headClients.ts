import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  FrameSplitter,
  hpackString,
  PREFACE,
} from "../../testkit/http2RawClient.js";
import { type HostileField, PATH, QUERY } from "./hostileHeads.js";

/** Clients that send many requests in one write, and count what comes back. */

export type Version = "1.1" | "2.0";

export interface HeadRequest {
  readonly host: string;
  readonly target: string;
  readonly fields: readonly (readonly [string, string])[];
  readonly webSocket?: boolean;
  readonly hostile?: HostileField | undefined;
}

export abstract class HeadClient {
  closed = false;
  protected over = 0;
  private notify: () => void = () => undefined;

  protected constructor(protected readonly socket: Socket) {
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      this.receive(bytes);
      this.notify();
    });
    socket.on("error", () => undefined);
    for (const event of ["end", "close"]) {
      socket.on(event, () => {
        this.closed = true;
        socket.destroy();
        this.notify();
      });
    }
  }

  static connect(version: Version, port: number, localAddress: string): Promise<HeadClient> {
    return version === "1.1" ? Http1Client.open(port, localAddress) : Http2Client.open(port, localAddress);
  }

  /** Sends the requests at once. @returns how many have an outcome: all, unless the proxy closed the connection */
  async send(requests: readonly HeadRequest[]): Promise<number> {
    this.over = 0;
    this.socket.write(Buffer.concat(requests.map((request) => this.encoded(request))));
    await new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.close(), OUTCOME_MS);
      this.notify = () => {
        if (!this.closed && this.over < requests.length) return;
        clearTimeout(timer);
        resolve();
      };
      this.notify();
    });
    this.notify = () => undefined;
    return this.over;
  }

  close(): void {
    this.closed = true;
    this.socket.destroy();
    this.notify();
  }

  protected abstract encoded(request: HeadRequest): Buffer;
  protected abstract receive(bytes: Buffer): void;
}

const OUTCOME_MS = 5_000;

const targetOf = ({ target, hostile }: HeadRequest): string =>
  hostile?.name === PATH
    ? target + hostile.value
    : hostile?.name === QUERY
      ? `${target}?${hostile.value}`
      : target;

/** The proxy reads only the first value of some fields: the hostile one takes the place of a usual one. */
const without = (hostile: HostileField | undefined, fields: HeadRequest["fields"]): [string, string][] =>
  fields.filter(([name]) => name !== hostile?.name).map(([name, value]) => [name, value]);

const isField = (hostile: HostileField | undefined): hostile is HostileField =>
  hostile !== undefined && hostile.name !== PATH && hostile.name !== QUERY;

class Http1Client extends HeadClient {
  private text = "";
  private bodyLeft = 0;

  static async open(port: number, localAddress: string): Promise<HeadClient> {
    const socket = connect({ host: "127.0.0.1", port, localAddress });
    await once(socket, "connect");
    return new Http1Client(socket);
  }

  protected encoded({ hostile, ...request }: HeadRequest): Buffer {
    const { host, fields, webSocket } = request;
    const all = without(hostile, [["host", host], ...fields]);
    if (webSocket) all.push(["connection", "upgrade"], ["upgrade", "websocket"]);
    if (isField(hostile)) {
      for (let i = 0; i < hostile.times; i++) all.push([hostile.name, hostile.value]);
    }
    const lines = all.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    return Buffer.from(`GET ${targetOf({ ...request, hostile })} HTTP/1.1\r\n${lines}\r\n`, "latin1");
  }

  protected receive(bytes: Buffer): void {
    this.text += bytes.toString("latin1");
    for (;;) {
      const skipped = Math.min(this.bodyLeft, this.text.length);
      this.text = this.text.slice(skipped);
      this.bodyLeft -= skipped;
      const end = this.bodyLeft > 0 ? -1 : this.text.indexOf("\r\n\r\n");
      if (end === -1) return;
      const head = this.text.slice(0, end + 2);
      this.text = this.text.slice(end + 4);
      this.bodyLeft = / 304 /.test(head.slice(0, 16))
        ? 0
        : Number(/\r\ncontent-length: *(\d+)\r/i.exec(head)?.[1] ?? 0);
      this.over++;
    }
  }
}

/** Fields of HPACK's static table by which a short head is made (RFC 7541, appendix A). */
const GET_HTTPS = Buffer.from([0x82, 0x87]);
const AUTHORITY = 1;
const PATH_INDEX = 4;
/** The newest entry of the dynamic table. */
const NEWEST = Buffer.from([0x80 | 62]);

class Http2Client extends HeadClient {
  private readonly splitter = new FrameSplitter();
  private stream = 1;
  private readonly open = new Set<number>();
  /** The field that is the newest entry of the proxy's table. */
  private entry = "";

  static async open(port: number, localAddress: string): Promise<HeadClient> {
    const raw = connect({ host: "127.0.0.1", port, localAddress });
    await once(raw, "connect");
    const socket = connectTls({ socket: raw, ALPNProtocols: ["h2"], rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const client = new Http2Client(socket);
    const window = Buffer.from([0, 4, 0x7f, 0xff, 0xff, 0xff]);
    socket.write(
      Buffer.concat([PREFACE, frame(Frame.SETTINGS, 0, 0, window), windowUpdate(0x7fff0000 - 65_535)]),
    );
    return client;
  }

  protected encoded({ hostile, ...request }: HeadRequest): Buffer {
    const { host, fields, webSocket } = request;
    const start = webSocket
      ? Buffer.concat([
          literal(0x00, ":method", "CONNECT"),
          literal(0x00, ":protocol", "websocket"),
          literal(0x00, ":scheme", "https"),
        ])
      : GET_HTTPS;
    const parts = [
      start,
      literal(AUTHORITY, undefined, isField(hostile) && hostile.name === "host" ? hostile.value : host),
      literal(PATH_INDEX, undefined, targetOf({ ...request, hostile })),
      ...without(hostile, fields).map(([name, value]) => literal(0, name, value)),
    ];
    if (isField(hostile)) {
      const { name, value, times } = hostile;
      for (let i = 0; i < times; i++) {
        const entry = `${name}: ${value}`;
        parts.push(entry === this.entry ? NEWEST : literal(0x40, name, value));
        this.entry = entry;
      }
    }
    const block = Buffer.concat(parts);
    const stream = this.stream;
    this.stream += 2;
    this.open.add(stream);
    const flags = webSocket ? END_HEADERS : END_HEADERS | END_STREAM;
    return frame(Frame.HEADERS, flags, stream, block);
  }

  protected receive(bytes: Buffer): void {
    for (const { type, flags, stream } of this.splitter.frames(bytes)) {
      if (type === Frame.SETTINGS && (flags & ACK) === 0)
        this.socket.write(frame(Frame.SETTINGS, ACK, 0, ""));
      const mayEnd = type === Frame.DATA || type === Frame.HEADERS;
      const ends = type === Frame.RST_STREAM || (mayEnd && (flags & END_STREAM) !== 0);
      // A response may end before its request: RST_STREAM then follows its end.
      if (ends && this.open.delete(stream)) this.over++;
    }
  }
}

function windowUpdate(bytes: number): Buffer {
  const payload = Buffer.alloc(4);
  payload.writeUInt32BE(bytes);
  return frame(Frame.WINDOW_UPDATE, 0, 0, payload);
}

/** A field as a literal: `first` is its representation and the index of its name, which is given if that is 0. */
function literal(first: number, name: string | undefined, value: string): Buffer {
  const texts = name === undefined ? [value] : [name, value];
  return Buffer.concat([Buffer.from([first]), ...texts.map(hpackString)]);
}
