import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import fc from "../../testkit/property.js";
import { eventually } from "../../testkit/waiting.js";
import { RequestWriter } from "../../src/runtime/upstream/requestWriter.js";

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

interface Step {
  readonly bytes: number;
  readonly transient: boolean;
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
  for (const [i, { bytes, transient, last }] of steps.entries()) {
    const piece = Buffer.alloc(bytes, `${i}\xff`, "latin1");
    body.push(Buffer.from(chunked ? `${bytes.toString(16)}\r\n` : ""), Buffer.from(piece));
    if (chunked) body.push(Buffer.from("\r\n"));
    const before = drained;
    const taken = writer.body(piece, transient);
    expect(writer.unsent).toBe(false);
    if (transient) piece.fill("!");
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
    transient: fc.boolean(),
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
  for (const transient of [false, true]) {
    received.length = 0;
    const steps = [1, 2, 3].map((bytes) => ({ bytes, transient, last: false }));
    const expected = await send(steps, true);
    await eventually(() => writer.complete);
    await eventually(() => received.length > 0);
    expect(received.map(String)).toEqual([String(expected)]);
  }
});

test.each([
  ["small", 12_000, false],
  ["small, in memory that changes", 12_000, true],
  ["large", 100_000, false],
  ["large, in memory that changes", 100_000, true],
])("more than the kernel takes is refused until it was written: %s", async (_what, bytes, transient) => {
  writer.connected();
  writer.framing.beginRequest(-1, true, false);
  writer.begin(HEAD);
  const piece = Buffer.alloc(bytes, "x");
  let sent = 0;
  // Within one turn; what is gathered has its own end.
  while (writer.body(piece, transient)) if ((sent += bytes) > 1 << 26) throw new Error("all of it is taken");
  sent += bytes;
  expect([writer.pending, writer.complete, drained]).toEqual([true, false, 0]);
  // On a busy machine the kernel widens its window meanwhile, and takes more.
  far.resume();
  await eventually(() => drained > 0);
  expect(writer.pending).toBe(false);
  writer.end();
  const overhead = HEAD.length + (sent / bytes) * (bytes.toString(16).length + 4) + 5;
  await eventually(() => received.reduce((sum, { length }) => sum + length, 0) >= sent + overhead);
  expect(received.reduce((sum, { length }) => sum + length, 0)).toBe(sent + overhead);
  expect(writer.complete).toBe(true);
});

test.each([false, true])(
  "what was gathered and is not taken at the end of the turn is reported, once (in memory that changes: %j)",
  async (transient) => {
    writer.connected();
    writer.framing.beginRequest(-1, true, false);
    writer.begin(HEAD);
    for (let turns = 0; stalled === 0 && turns < 200; turns++) {
      for (let i = 0; i < 20; i++) expect(writer.body(Buffer.alloc(16_000), transient)).toBe(true);
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
  writer.body(Buffer.from("before"), false);
  await eventually(() => received.length > 0);
  writer.body(Buffer.from("never"), true);
  writer.failed = true;
  await turn();
  expect(stalled).toBe(0);
  for (const bytes of [10, 100_000])
    for (const transient of [false, true]) expect(writer.body(Buffer.alloc(bytes), transient)).toBe(true);
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
  const body = Buffer.alloc(1 << 24, "x");
  writer.framing.beginRequest(body.length, true, false);
  writer.begin(HEAD);
  expect(writer.body(body, false)).toBe(false);
  writer.end();
  far.resume();
  await eventually(() => writer.complete);
  await turn();
  expect([drained, stalled]).toEqual([1, 0]);
});

test.each([false, true])(
  "what went out before the end of its turn holds nobody back (in memory that changes: %j)",
  async (transient) => {
    far.resume();
    writer.framing.beginRequest(-1, true, false);
    writer.begin(HEAD);
    for (const bytes of [10, 100_000]) writer.body(Buffer.alloc(bytes), transient);
    await turn();
    expect(stalled).toBe(0);
  },
);
