import { setTimeout as sleep } from "node:timers/promises";
import { type FrameSink, FrameReader } from "../../src/runtime/codec/http2/frames.js";
import { ConnectionError } from "../../src/runtime/codec/http2/protocol.js";
import { seeded } from "../../proof/kit/random.js";
import {
  END_HEADERS,
  END_STREAM,
  frame,
  Frame,
  GET,
  hpack,
  RawClient,
} from "../../proof/kit/http2RawClient.js";
import {
  answer,
  ask,
  connectHttp2,
  type Http2Server,
  KeepingSink,
  startHttp2Server,
} from "../../proof/kit/http2Server.js";

/** Frames in any pieces, bytes of any kind, and a peer that is not ours. */

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

class Recorder implements FrameSink {
  readonly seen: string[] = [];
  private data = "";
  onDataBegin(stream: number, length: number): void {
    this.data = `0 ${stream} ${length} `;
  }
  onDataPiece(chunk: Buffer, from: number, to: number): void {
    this.data += chunk.toString("hex", from, to);
  }
  onDataEnd(flags: number): void {
    this.seen.push(`${this.data} ${flags}`);
  }
  onFrame(type: number, flags: number, stream: number, bytes: Buffer, from: number, to: number): void {
    this.seen.push(`${type} ${flags} ${stream} ${bytes.toString("hex", from, to)}`);
  }
}

test(
  "frames are the same in whatever pieces they arrive",
  seeded((random) => {
    for (let round = 0; round < 300; round++) {
      const frames = Array.from({ length: 20 }, () => {
        const padded = random.pick(3) === 0;
        const padding = random.pick(4);
        const body = random.bytes(random.pick(40));
        const payload = padded ? Buffer.concat([Buffer.from([padding]), body, Buffer.alloc(padding)]) : body;
        return frame(padded ? 0 : random.pick(12), padded ? 8 : random.pick(2), 1 + random.pick(9), payload);
      });
      const stream = Buffer.concat([PREFACE, ...frames]);
      const whole = new Recorder();
      new FrameReader(whole).read(stream);
      const pieces = new Recorder();
      const reader = new FrameReader(pieces);
      for (let at = 0; at < stream.length;) {
        const to = Math.min(stream.length, at + 1 + random.pick(30));
        // What was read may be overwritten afterwards.
        const chunk = Buffer.from(stream.subarray(at, to));
        reader.read(chunk);
        chunk.fill(0);
        at = to;
      }
      expect(pieces.seen).toEqual(whole.seen);
      expect(whole.seen).toHaveLength(20);
    }
  }),
);

test(
  "random bytes are frames or an error, nothing else",
  seeded((random) => {
    for (let round = 0; round < 2_000; round++) {
      const reader = new FrameReader(new Recorder());
      try {
        reader.read(PREFACE);
        for (let i = 0; i < 20; i++) reader.read(random.bytes(1 + random.pick(100)));
      } catch (error) {
        expect(error).toBeInstanceOf(ConnectionError);
      }
    }
  }),
);

describe("a server", () => {
  let server: Http2Server;
  beforeAll(async () => {
    server = await startHttp2Server({
      actions: {
        "/": (exchange) => {
          const sink = new KeepingSink();
          sink.onDone = () => answer(exchange, 200, sink.body, ["X-Length", String(sink.body.length)]);
          sink.read(exchange);
        },
      },
    });
  });
  afterAll(() => server.close());

  test(
    "survives random frames, and logs no internal fault",
    seeded(async (random) => {
      for (let round = 0; round < 60; round++) {
        const client = await RawClient.connect(server.port);
        for (let i = 0; i < 40 && !client.closed && !client.socket.destroyed; i++) {
          const type = random.pick(11);
          const head = type === Frame.HEADERS || type === Frame.CONTINUATION;
          const payload =
            head && random.pick(4) > 0 ? hpack(GET) : random.bytes([0, 4, 5, 6, 8, 30][random.pick(6)]!);
          const flags =
            random.pick(3) === 0
              ? random.pick(256)
              : random.pick(2) * END_STREAM + random.pick(2) * END_HEADERS;
          client.send(type, flags, random.pick(4) === 0 ? 0 : random.pick(12), payload);
        }
        await sleep(2);
        client.destroy();
      }
      const session = connectHttp2(server.port);
      expect((await ask(session, {})).status).toBe(200);
      session.destroy();
      expect(await server.errorLog()).not.toContain("[crit]");
    }),
  );

  test(
    "and node:http2 understand each other, many bodies of many sizes at once",
    seeded(async (random) => {
      const session = connectHttp2(server.port, { initialWindowSize: 30_000 });
      await Promise.all(
        Array.from({ length: 150 }, async (_, i) => {
          const body = random
            .bytes(random.pick(4) === 0 ? random.pick(60_000) : random.pick(2_000))
            .toString("hex");
          const fields = { ":method": "PUT", [`x-${i % 7}`]: "y".repeat(i) };
          const result = await ask(session, fields, body);
          expect(result).toMatchObject({ status: 200, code: 0 });
          expect(result.headers["x-length"]).toBe(String(body.length));
          expect(result.body === body).toBe(true);
        }),
      );
      session.destroy();
    }),
  );
});
