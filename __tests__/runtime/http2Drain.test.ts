import { setTimeout as sleep } from "node:timers/promises";
import type { Exchange } from "../../src/runtime/exchange/exchange.js";
import {
  ACK,
  describeFrame,
  END_HEADERS,
  END_STREAM,
  Frame,
  GET,
  hpack,
  RawClient,
  type ReceivedFrame,
  uint32,
} from "../../testkit/http2RawClient.js";
import { type Http2Server, respond, startHttp2Server } from "../../testkit/http2Server.js";
import { randomBody, seeded, type Random } from "../../testkit/random.js";

/** A drain cuts no transfer that runs, whatever else its client sends before it has seen the GOAWAY (RFC 9113, 6.8). */

const MB = 1_000_000;
const MIB = 1_048_576;
const LONG = 50 * MB;
const PIECE = randomBody(16_384);

/** Responds with as many bytes as the path says, and uploads with their length. */
function transfer(exchange: Exchange): void {
  const { method, path } = exchange.request;
  if (method === "GET") return send(exchange, Number(path.slice(1)));
  let length = 0;
  exchange.readBody({
    onData: (chunk) => {
      length += chunk.length;
      return true;
    },
    onEnd: () => respond(exchange, 200, String(length)),
  });
}

function send(exchange: Exchange, bytes: number): void {
  let left = bytes;
  const pump = (): void => {
    for (let more = true; more && left > 0;) {
      const size = Math.min(left, PIECE.length);
      left -= size;
      more = exchange.sendData(PIECE.subarray(0, size));
    }
    if (left === 0) exchange.end();
  };
  exchange.hold({ onDrain: pump, onReleased: () => undefined });
  exchange.sendHead(200, "", [], bytes);
  pump();
}

const fields = (method: string, path: string): Buffer =>
  hpack(
    GET.map(
      ([name, value]) => [name, name === ":method" ? method : name === ":path" ? path : value] as const,
    ),
  );

/** A client that keeps to every rule and to every window, and counts. */
class Honest {
  /** Bytes of the response of each stream, and the streams that have all of theirs. */
  readonly received = new Map<number, number>();
  readonly complete = new Set<number>();
  readonly texts = new Map<number, string>();
  /** Connection errors, and resets of streams. */
  readonly complaints: string[] = [];
  readonly resets = new Map<number, string>();
  /** The PING that comes with the first GOAWAY of a drain. */
  drainPing: Buffer | undefined = undefined;
  private readonly windows = new Map<number, number>();

  private constructor(readonly raw: RawClient) {
    raw.onFrame = (received) => this.take(received);
  }

  static async connect(port: number): Promise<Honest> {
    const raw = await RawClient.connect(port);
    const client = new Honest(raw);
    raw.send(Frame.SETTINGS, 0, 0, Buffer.from([0, 4, 0, 0x10, 0, 0]));
    raw.send(Frame.WINDOW_UPDATE, 0, 0, uint32(MIB));
    return client;
  }

  window(stream: number): number {
    return Math.min(...[stream, 0].map((one) => this.windows.get(one) ?? 65_535));
  }

  data(stream: number, payload: Uint8Array, flags = 0): void {
    this.raw.send(Frame.DATA, flags, stream, payload);
    for (const each of [stream, 0]) this.widen(each, -payload.length);
  }

  /** Everything that was sent before has been read, and what the server says to it is here. */
  async settled(): Promise<void> {
    const mark = Buffer.from(String(Math.random()).slice(2, 10).padEnd(8));
    this.raw.send(Frame.PING, 0, 0, mark);
    await this.raw.next((f) => f.type === Frame.PING && f.payload.equals(mark), 20_000);
  }

  private widen(stream: number, by: number): void {
    this.windows.set(stream, (this.windows.get(stream) ?? 65_535) + by);
  }

  private take(received: ReceivedFrame): void {
    const { type, flags, stream, payload } = received;
    if (type === Frame.DATA) {
      this.received.set(stream, (this.received.get(stream) ?? 0) + payload.length);
      if (payload.length < 100) this.texts.set(stream, payload.toString());
      if (payload.length > 0)
        for (const each of [0, stream]) this.raw.send(Frame.WINDOW_UPDATE, 0, each, uint32(payload.length));
    } else if (type === Frame.WINDOW_UPDATE) this.widen(stream, payload.readUInt32BE(0));
    else if (type === Frame.RST_STREAM) this.resets.set(stream, describeFrame(received));
    else if (type === Frame.GOAWAY && payload.readUInt32BE(4) !== 0)
      this.complaints.push(describeFrame(received));
    else if (type === Frame.PING && (flags & ACK) === 0) this.drainPing = payload;
    const ends = (type === Frame.DATA || type === Frame.HEADERS) && (flags & END_STREAM) !== 0;
    if (ends) this.complete.add(stream);
    // Tens of megabytes are not to be kept, nor searched.
    if (type !== Frame.PING) this.raw.frames.pop();
  }
}

async function drained(run: (server: Http2Server, client: Honest) => Promise<void>): Promise<void> {
  const server = await startHttp2Server({
    actions: { "/": transfer },
    config: { limits: { streamResetsPerSecondMax: 10_000 } },
  });
  const client = await Honest.connect(server.port);
  try {
    await run(server, client);
  } finally {
    client.raw.destroy();
    await server.close();
  }
}

/** Requests that the client makes, goes on with and gives up, before it has seen the last GOAWAY. */
class Late {
  private next: number;
  private readonly open: number[] = [];

  constructor(
    private readonly client: Honest,
    private readonly random: Random,
    first: number,
  ) {
    this.next = first;
  }

  step(): void {
    const { client, random, open } = this;
    const stream = open[random.pick(open.length)];
    const raw = client.raw;
    const kind = random.pick(12);
    if (stream === undefined || kind === 0) return this.begin();
    if (kind <= 4) this.body(stream);
    else if (kind === 5) raw.send(Frame.WINDOW_UPDATE, 0, stream, uint32(1 + random.pick(70_000)));
    else if (kind === 6)
      raw.send(
        Frame.PRIORITY,
        0,
        1 + random.pick(200),
        Buffer.concat([uint32(0), Buffer.of(random.pick(256))]),
      );
    else if (kind === 7) raw.send(0x10, 0, 0, Buffer.concat([uint32(stream), Buffer.from("u=2")]));
    else if (kind === 8)
      raw.send(11 + random.pick(200), random.pick(256), stream, random.bytes(random.pick(50)));
    else this.end(stream, kind);
  }

  /** Gives up what is still open. */
  finish(): void {
    for (const stream of this.open.splice(0)) this.client.raw.send(Frame.RST_STREAM, 0, stream, uint32(8));
  }

  /** Some of them are refused by the server, as they are malformed, and go on all the same. */
  private begin(): void {
    const { random, client } = this;
    if (this.open.length >= 90) return;
    const stream = this.next;
    this.next += 2 + 2 * random.pick(2);
    const block = fields(["PUT", "TRACE", "GET", "BAD METHOD"][random.pick(4)]!, "/200000");
    const split = random.pick(3) === 0 ? random.pick(block.length) : block.length;
    const whole = split === block.length ? END_HEADERS : 0;
    client.raw.send(Frame.HEADERS, whole, stream, block.subarray(0, split));
    if (whole === 0) client.raw.send(Frame.CONTINUATION, END_HEADERS, stream, block.subarray(split));
    this.open.push(stream);
  }

  private body(stream: number): void {
    const { random, client } = this;
    const padded = random.pick(4) === 0;
    const payload = padded
      ? Buffer.concat([Buffer.of(9), random.bytes(random.pick(300)), Buffer.alloc(9)])
      : PIECE.subarray(0, 1 + random.pick(PIECE.length));
    if (client.window(stream) >= payload.length) client.data(stream, payload, padded ? 8 : 0);
  }

  private end(stream: number, kind: number): void {
    const { raw } = this.client;
    if (kind === 9) this.client.data(stream, Buffer.alloc(0), END_STREAM);
    else if (kind === 10) raw.send(Frame.HEADERS, END_HEADERS | END_STREAM, stream, hpack([["x", "1"]]));
    else raw.send(Frame.RST_STREAM, 0, stream, uint32(8));
    this.open.splice(this.open.indexOf(stream), 1);
  }
}

const DOWNLOAD = 1;
const UPLOAD = 3;

function begin({ raw }: Honest, bytes: number): void {
  raw.send(Frame.HEADERS, END_HEADERS | END_STREAM, DOWNLOAD, fields("GET", `/${bytes}`));
  raw.send(Frame.HEADERS, END_HEADERS, UPLOAD, fields("PUT", "/"));
}

test(
  "a download of 50 MB goes on while its client makes requests that come too late, and carries on with them",
  seeded((random) =>
    drained(async (server, client) => {
      begin(client, LONG);
      const late = new Late(client, random, 5);
      while ((client.received.get(DOWNLOAD) ?? 0) < 5 * MB) await sleep(1);
      server.connections.drain();
      while (client.drainPing === undefined) await sleep(1);
      client.raw.send(Frame.PING, ACK, 0, client.drainPing);
      while (!client.complete.has(DOWNLOAD) && !client.raw.closed) {
        for (let i = 0; i < 5; i++) late.step();
        await sleep(1);
      }
      expect([client.complaints, client.received.get(DOWNLOAD)]).toEqual([[], LONG]);
    }),
  ),
  30_000,
);

test(
  "whatever an honest client sends in a drain, its transfers complete, and the windows add up",
  seeded(async (random) => {
    for (let round = 0; round < 12; round++)
      await drained(async (server, client) => {
        begin(client, 3 * MB);
        const late = new Late(client, random, 5);
        const steps = 200 + random.pick(400);
        const drainAt = random.pick(steps);
        const seenAt = drainAt + random.pick(steps - drainAt);
        let uploaded = 0;
        for (let step = 0; step < steps; step++) {
          late.step();
          if (step === drainAt) server.connections.drain();
          if (step === seenAt) {
            while (client.drainPing === undefined) await sleep(1);
            client.raw.send(Frame.PING, ACK, 0, client.drainPing);
          }
          if (step % 4 === 0 && client.window(UPLOAD) >= PIECE.length) {
            client.data(UPLOAD, PIECE);
            uploaded += PIECE.length;
          }
          if (step % 16 === 0) await client.settled();
        }
        late.finish();
        while (!client.complete.has(DOWNLOAD) && !client.raw.closed) await sleep(1);
        await client.settled();
        // The window has grown some times. A quarter of it is owed at most, and comes back with the byte that makes it one.
        let size = MIB / 2;
        while (size < client.window(0)) size *= 2;
        for (let left = client.window(0) - (size * 3) / 4; left > 0; left -= PIECE.length)
          client.data(9_999, PIECE.subarray(0, Math.min(PIECE.length, left)));
        await client.settled();
        expect([client.complaints, client.window(0)]).toEqual([[], size]);
        client.raw.send(Frame.DATA, END_STREAM, UPLOAD);
        while (!client.complete.has(UPLOAD) && !client.raw.closed) await sleep(1);
        expect(client.received.get(DOWNLOAD)).toBe(3 * MB);
        expect(client.texts.get(UPLOAD)).toBe(String(uploaded));
        expect([client.resets.get(DOWNLOAD), client.resets.get(UPLOAD)]).toEqual([undefined, undefined]);
        expect(await server.errorLog()).not.toContain("[crit]");
      });
  }),
  60_000,
);
