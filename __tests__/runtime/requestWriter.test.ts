import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "../../testkit/property.js";
import { eventually } from "../../testkit/waiting.js";
import { LASTING, type Memory, TRANSIENT } from "../../src/runtime/sockets/memory.js";
import { RequestWriter } from "../../src/runtime/upstream/requestWriter.js";
import { randomBody } from "../../testkit/random.js";

/** Requests on a real socket: whatever comes in one turn, in which pieces and memory, arrives as it was given. */

let server: Server;
let near: Socket;
let far: Socket;
let received: Buffer[];
let drained: number;
let stalled: number;
let writer: RequestWriter;

beforeEach(async () => {
  // Paused from the start: one that has begun to read would take one more piece.
  server = createServer({ pauseOnConnect: true });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const accepted = once(server, "connection");
  near = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1" });
  await once(near, "connect");
  [far] = (await accepted) as [Socket];
  received = [];
  drained = 0;
  stalled = 0;
  far.on("data", (chunk: Buffer) => received.push(chunk));
  writer = new RequestWriter(near, {
    onWrite: () => undefined,
    onWritten: () => drained++,
    onStall: () => stalled++,
    onFault: (error) => {
      throw error;
    },
  });
});
afterEach(async () => {
  near.destroy();
  far.destroy();
  await new Promise((done) => server.close(done));
});

const turn = (): Promise<void> => new Promise(setImmediate);
const HEAD = "PUT /caf\xe9 HTTP/1.1\r\n\r\n";
const SMALL = [1, 5, 1_000, 16_384];
const LARGE = [16_385, 100_000];

/** Where pieces are: memory that nobody overwrites, memory that changes at once, or memory that is overwritten when free. */
const MEMORIES = ["lasting", "transient", "lent"] as const;
type Kind = (typeof MEMORIES)[number];

/** Overwrites its bytes as soon as nobody keeps them. */
class Lent implements Memory {
  readonly copies = false;
  kept = 0;

  constructor(private readonly bytes: Buffer) {}

  keep(bytes: Buffer): Buffer {
    this.kept++;
    return bytes;
  }

  giveBack(): void {
    this.kept--;
    this.reuse();
  }

  reuse(): void {
    if (this.kept === 0) this.bytes.fill("!");
  }
}

/** Writes a piece of the body, and overwrites it as soon as its memory allows. */
function write(piece: Buffer, kind: Kind): boolean {
  const lent = new Lent(piece);
  const taken = writer.body(piece, kind === "lent" ? lent : kind === "lasting" ? LASTING : TRANSIENT);
  if (kind === "transient") piece.fill("!");
  if (kind === "lent") lent.reuse();
  return taken;
}

interface Step {
  readonly bytes: number;
  readonly memory: Kind;
  /** Whether the turn of the event loop ends after it. */
  readonly last: boolean;
}

/** Sends these as the body of a request, and returns what has to arrive. */
async function send(steps: readonly Step[], chunked: boolean): Promise<Buffer> {
  far.resume();
  const body: Buffer[] = [];
  const length = steps.reduce((sum, { bytes }) => sum + bytes, 0);
  writer.framing.beginRequest(chunked ? -1 : length, true, false);
  writer.begin(HEAD);
  expect([writer.unsent, writer.complete]).toEqual([true, false]);
  for (const { bytes, memory, last } of steps) {
    const piece = randomBody(bytes);
    body.push(Buffer.from(chunked ? `${bytes.toString(16)}\r\n` : ""), Buffer.from(piece));
    if (chunked) body.push(Buffer.from("\r\n"));
    const before = drained;
    const taken = write(piece, memory);
    expect(writer.unsent).toBe(false);
    if (!taken) await eventually(() => drained > before);
    else if (last) await turn();
  }
  writer.end();
  if (chunked) body.push(Buffer.from("0\r\n\r\n"));
  return Buffer.concat([Buffer.from(HEAD, "latin1"), ...body]);
}

test.each([false, true])("in any order of pieces (past the stream: %s)", async (direct) => {
  if (direct) writer.connected();
  const step = fc.record({
    bytes: fc.constantFrom(...SMALL, ...LARGE),
    memory: fc.constantFrom(...MEMORIES),
    last: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 8 }), fc.boolean(), async (steps, chunked) => {
      received.length = 0;
      const expected = await send(steps, chunked);
      await eventually(() => received.reduce((sum, { length }) => sum + length, 0) >= expected.length);
      await eventually(() => writer.complete);
      expect(Buffer.concat(received).equals(expected)).toBe(true);
    }),
    { numRuns: 40 },
  );
});

test("pieces of one turn go out together, each kind in one piece", async () => {
  for (const memory of MEMORIES) {
    received.length = 0;
    const steps = [1, 2, 3].map((bytes) => ({ bytes, memory, last: false }));
    const expected = await send(steps, true);
    await eventually(() => writer.complete);
    await eventually(() => received.length > 0);
    expect(received).toEqual([expected]);
  }
});

test.each([
  [12_000, "lasting"],
  [12_000, "transient"],
  [12_000, "lent"],
  [100_000, "lasting"],
  [100_000, "transient"],
  [100_000, "lent"],
] as const)(
  "more than the kernel takes is refused until it was written: %d bytes, %s",
  async (bytes, memory) => {
    writer.connected();
    writer.framing.beginRequest(-1, true, false);
    writer.begin(HEAD);
    const body = randomBody(bytes);
    let sent = 0;
    // Within one turn; what is gathered has its own end.
    while (write(Buffer.from(body), memory))
      if ((sent += bytes) > 1 << 26) throw new Error("all of it is taken");
    sent += bytes;
    expect([writer.pending, writer.complete, drained]).toEqual([true, false, 0]);
    // On a busy machine the kernel widens its window meanwhile, and takes more.
    far.resume();
    await eventually(() => drained > 0);
    expect(writer.pending).toBe(false);
    writer.end();
    const overhead = HEAD.length + (sent / bytes) * (bytes.toString(16).length + 4) + 5;
    await eventually(() => received.reduce((sum, { length }) => sum + length, 0) >= sent + overhead);
    const chunk = Buffer.concat([Buffer.from(`${bytes.toString(16)}\r\n`), body, Buffer.from("\r\n")]);
    const chunks = Array<Buffer>(sent / bytes).fill(chunk);
    const expected = Buffer.concat([Buffer.from(HEAD, "latin1"), ...chunks, Buffer.from("0\r\n\r\n")]);
    expect(Buffer.concat(received)).toEqual(expected);
    expect(writer.complete).toBe(true);
  },
);

test.each(MEMORIES)(
  "what was gathered and is not taken at the end of the turn is reported, once (memory: %s)",
  async (memory) => {
    writer.connected();
    writer.framing.beginRequest(-1, true, false);
    writer.begin(HEAD);
    for (let turns = 0; stalled === 0 && turns < 200; turns++) {
      for (let i = 0; i < 20; i++) expect(write(randomBody(16_000), memory)).toBe(true);
      await turn();
    }
    expect([writer.pending, stalled, drained]).toEqual([true, 1, 0]);
    far.resume();
    await eventually(() => drained > 0);
    expect([writer.pending, stalled]).toEqual([false, 1]);
  },
);

test("after a failed write nothing more is sent, and whoever sends is not held back", async () => {
  far.resume();
  writer.framing.beginRequest(-1, true, false);
  writer.begin(HEAD);
  writer.body(Buffer.from("before"), LASTING);
  await eventually(() => received.length > 0);
  writer.body(Buffer.from("never"), TRANSIENT);
  writer.failed = true;
  await turn();
  expect(stalled).toBe(0);
  for (const bytes of [10, 100_000])
    for (const memory of MEMORIES) expect(write(Buffer.alloc(bytes), memory)).toBe(true);
  writer.end();
  await turn();
  expect(writer.complete).toBe(false);
  near.end();
  await once(far, "end");
  expect(Buffer.concat(received).toString("latin1")).toBe(`${HEAD}6\r\nbefore\r\n`);
});

test("what a socket that is gone was given counts as unsent, so that another may send it", async () => {
  writer.framing.beginRequest(0, true, false);
  writer.begin(HEAD);
  writer.end();
  near.destroy();
  await turn();
  expect([writer.unsent, stalled]).toEqual([true, 0]);
});

test("the end of a request that waits to be written is no write of its own", async () => {
  writer.connected();
  const body = randomBody(1 << 24);
  writer.framing.beginRequest(body.length, true, false);
  writer.begin(HEAD);
  expect(writer.body(body, LASTING)).toBe(false);
  writer.end();
  far.resume();
  await eventually(() => writer.complete);
  await turn();
  expect([drained, stalled]).toEqual([1, 0]);
  await eventually(() => received.reduce((sum, { length }) => sum + length, 0) >= body.length + HEAD.length);
  expect(Buffer.concat(received).subarray(HEAD.length).equals(body)).toBe(true);
});

test.each(MEMORIES)(
  "what went out before the end of its turn holds nobody back (memory: %s)",
  async (memory) => {
    far.resume();
    writer.framing.beginRequest(-1, true, false);
    writer.begin(HEAD);
    for (const bytes of [10, 100_000]) write(randomBody(bytes), memory);
    await turn();
    expect(stalled).toBe(0);
  },
);
