import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, Socket } from "node:net";
import * as tls from "node:tls";
import { coarseNow } from "../../src/runtime/sockets/deadlines.js";
import { ReceiveBuffer } from "../../src/runtime/sockets/receiveBuffer.js";
import { ClientInput } from "../../src/runtime/sockets/clientInput.js";
import {
  keepReadableAfterWriteErrors,
  reportReset,
  unsentBytes,
  writeError,
} from "../../src/runtime/sockets/node/peer.js";
import { type Piece, uses } from "../../src/runtime/sockets/node/pieces.js";
import { adopt, onRead, readDirectly, readInto } from "../../src/runtime/sockets/node/reads.js";
import { handleOf, streams } from "../../src/runtime/sockets/node/streamHandles.js";
import { shakeHands, tcpSocketOf } from "../../src/runtime/sockets/node/tcpBelowTls.js";
import { issue } from "../../proof/kit/certificates.js";
import { eventually as waited } from "../../proof/kit/waiting.js";

/** What lies below Node's public sockets, piece by piece, and what is done without it. */

const eventually = (holds: () => boolean) => waited(holds, undefined, { ms: 5_000 });
const all = { ...uses };
const without = (piece: Piece): void => void ((uses as Record<Piece, boolean>)[piece] = false);
const open: Socket[] = [];
const below: Socket[] = [];
let server: Server;
let secureServer: tls.Server;

beforeAll(async () => {
  server = createServer({ allowHalfOpen: true });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  secureServer = tls.createServer(await issue({ type: "ec" }));
});
afterEach(async () => {
  Object.assign(uses, all);
  for (const one of open.splice(0)) one.destroy();
  await new Promise((done) => setTimeout(done, 20));
  for (const one of below.splice(0)) one.destroy();
});
afterAll(() => void server.close());

/** A connection: the side that was accepted, and the peer. */
async function pair(): Promise<[near: Socket, far: Socket]> {
  const accepted = once(server, "connection");
  const far = connect((server.address() as AddressInfo).port, "127.0.0.1").on("error", () => undefined);
  const [near] = (await accepted) as [Socket];
  near.on("error", () => undefined);
  open.push(near, far);
  return [near, far];
}

/** The same with TLS above it. */
async function securePair(): Promise<[near: tls.TLSSocket, far: tls.TLSSocket, below: Socket, tcp: Socket]> {
  const [accepted, tcp] = await pair();
  // They are closed after what is above them.
  below.push(...open.splice(-2));
  const secured = once(secureServer, "secureConnection");
  const far = tls.connect({ socket: tcp, rejectUnauthorized: false }).on("error", () => undefined);
  shakeHands(secureServer, accepted);
  const [near] = (await secured) as [tls.TLSSocket];
  open.push(near, far);
  if (!far.authorized && !far.getProtocol()) await once(far, "secureConnect");
  return [near.on("error", () => undefined), far, accepted, tcp];
}

type Raw = { _handle: { onread: unknown } | null; _server: unknown };
const raw = (socket: Socket): Raw => socket as unknown as Raw;

describe("whether the peer has reset a connection that is not read", () => {
  test.each([
    [true, true],
    [true, false],
    [false, true],
    [false, false],
  ])("writes past the stream: %j, over TLS: %j", async (direct, secure) => {
    if (!direct) without("directWrites");
    for (const reset of [false, true]) {
      const ignore = (): void => undefined;
      const [accepted, far, , tcpOfPeer] = secure ? await securePair() : await pair();
      const near = secure ? accepted : (adopt(accepted, new ReceiveBuffer(), ignore) ?? accepted);
      if (secure) readInto(accepted as tls.TLSSocket, new ReceiveBuffer(true), ignore);
      open.push(near);
      const errors: string[] = [];
      near.on("error", ({ message }: Error) => errors.push(message));
      near.on("data", ignore).pause();
      if (reset) {
        (tcpOfPeer ?? far).resetAndDestroy();
        await new Promise((done) => setTimeout(done, 30));
      }
      reportReset(near);
      await new Promise((done) => setTimeout(done, 30));
      if (!reset) expect([errors, near.destroyed]).toEqual([[], false]);
      else if (direct) expect(errors).toEqual([expect.stringMatching(/^write E(?:CONNRESET|PIPE)$/)]);
      else expect(near.destroyed).toBe(true);
    }
  });
});

test.each([
  [true, true],
  [true, false],
  [false, true],
  [false, false],
])("a client is read into memory of ours (TLS: %j, past the stream: %j)", async (secure, direct) => {
  if (!direct) without("directReads");
  const [near, far] = secure ? await securePair() : await pair();
  const received: string[] = [];
  const input = new ClientInput(near, secure, (chunk) => void received.push(chunk.toString()));
  open.push(input.socket);
  // Only a plain connection has a socket that was made for it.
  expect(input.socket === near).toBe(secure);
  far.write("one");
  await eventually(() => received.length > 0);
  expect([received, input.transient]).toEqual([["one"], true]);
  // A transfer has a buffer of its own from the read after the next one.
  input.fit(1 << 20, 3);
  for (const text of ["two", "three"]) {
    far.write(text);
    await eventually(() => received.at(-1) === text);
  }
  expect(input.transient).toBe(false);
});

test("what TLS and the kernel have not taken is counted, where Node shows it", () => {
  const queue = (own?: number, below?: number): tls.TLSSocket =>
    ({
      _handle: own === undefined ? null : { writeQueueSize: own },
      _parent: below === undefined ? undefined : { _handle: { writeQueueSize: below } },
    }) as unknown as tls.TLSSocket;
  expect([queue(3, 4), queue(3), queue(undefined, 4), queue()].map(unsentBytes)).toEqual([7, 3, 4, 0]);
  without("unsentBytes");
  expect(unsentBytes(queue(3, 4))).toBe(0);
});

describe("a handle", () => {
  const [writeLatin1String, onread] = [() => 0, () => undefined];
  test.each<[what: string, handle: object | null, is: boolean]>([
    ["with all that is used", { writeLatin1String, onread }, true],
    ["without writes", { onread }, false],
    ["without reads", { writeLatin1String }, false],
    ["of other writes", { writeLatin1String: 1, onread }, false],
    ["that is closed", null, false],
  ])("is one %s: %j", (_what, handle, is) => {
    expect(handleOf({ _handle: handle } as unknown as Socket)).toBe(is ? handle : undefined);
  });

  const whole = {
    WriteWrap: class {},
    streamBaseState: new Int32Array(5),
    kReadBytesOrError: 0,
    kLastWriteWasAsync: 2,
  };
  test.each<[what: string, binding: object, is: boolean]>([
    ["with all of it", whole, true],
    ["without requests", { ...whole, WriteWrap: undefined }, false],
    ["without a state", { ...whole, streamBaseState: [] }, false],
    ["without the place of a read", { ...whole, kReadBytesOrError: undefined }, false],
    ["without the place of a write", { ...whole, kLastWriteWasAsync: undefined }, false],
  ])("is used in a Node %s: %j", async (_what, binding, is) => {
    const { binding: own } = process as unknown as { binding: unknown };
    const names: string[] = [];
    try {
      Object.assign(process, { binding: (name: string) => (names.push(name), binding) });
      await jest.isolateModulesAsync(async () => {
        const { uses: used } = await import("../../src/runtime/sockets/node/pieces.js");
        Object.assign(used, { directReads: true, directWrites: true });
        const found = await import("../../src/runtime/sockets/node/streamHandles.js");
        expect(found.streams).toBe(is ? binding : undefined);
        expect([used.directReads, used.directWrites]).toEqual([is, is]);
      });
    } finally {
      Object.assign(process, { binding: own });
    }
    expect(names).toEqual(["stream_wrap"]);
  });
});

describe("reads", () => {
  test("go into the buffer of the last read until there is another", () => {
    const buffer = new ReceiveBuffer();
    const chunks: number[] = [];
    const read = onRead(buffer, ({ length }) => void chunks.push(length));
    expect([read.buffer(), read.buffer()].every((one) => one === buffer.first)).toBe(true);
    expect(read.callback(5)).toBe(true);
    expect(read.buffer()).toBeUndefined();
    expect(read.buffer()).toBe(buffer.first);
    buffer.fit(1 << 20, 0);
    expect(read.callback(7)).toBe(true);
    expect(read.buffer()).toHaveLength(131_072);
    expect(chunks).toEqual([5, 7]);
  });

  test.each<[count: number, destroyed: boolean, direct: boolean]>([
    [1, false, true],
    [100, false, true],
    [0, false, false],
    [-4_095, false, false],
    [1, true, false],
  ])("of %i from a socket that is destroyed: %j, go past the stream: %j", (count, destroyed, direct) => {
    if (!all.directReads) return;
    const usual: unknown[] = [];
    const handle = { writeLatin1String: () => 0, onread: (bytes: unknown) => usual.push(bytes) };
    const socket = { _handle: handle, destroyed } as unknown as Socket;
    const read: number[] = [];
    readDirectly(socket, new ReceiveBuffer(), ({ length }) => void read.push(length));
    streams!.streamBaseState[streams!.kReadBytesOrError] = count;
    const bytes = new ArrayBuffer(1);
    handle.onread(bytes);
    expect([read, usual]).toEqual(direct ? [[count], []] : [[], [bytes]]);
  });

  test("of an accepted connection go into a buffer that is used again, and the server still counts it", async () => {
    const [near, far] = await pair();
    const { onread } = raw(near)._handle!;
    const buffer = new ReceiveBuffer();
    const chunks: Buffer[] = [];
    const moved = adopt(near, buffer, (chunk) => void chunks.push(chunk));
    if (!all.movedSockets) return expect(moved).toBeUndefined();
    open.push(moved!);
    expect([raw(near)._handle, raw(near)._server, raw(moved!)._server, moved!.allowHalfOpen]).toEqual([
      null,
      null,
      server,
      true,
    ]);
    expect(raw(moved!)._handle!.onread === onread).toBe(!all.directReads);
    far.write("hello");
    await eventually(() => chunks.length > 0);
    expect([String(chunks[0]), chunks[0]!.buffer === buffer.first.buffer]).toEqual(["hello", true]);
    const count = (): Promise<number> => new Promise((done) => server.getConnections((_, now) => done(now)));
    const before = await count();
    moved!.destroy();
    await once(moved!, "close");
    expect(await count()).toBe(before - 1);
  });

  test("of a client are its connection's: both are closed", async () => {
    const [near] = await pair();
    const { socket } = new ClientInput(near, false, () => undefined);
    socket.destroy();
    if (!near.destroyed) await once(near, "close");
  });

  test("that are paused have the client looked for every five seconds", async () => {
    const [near, far] = await pair();
    const input = new ClientInput(near, false, () => undefined);
    const { socket } = input;
    open.push(socket);
    const errors: Error[] = [];
    socket.on("error", (error) => errors.push(error));
    const asked = jest.spyOn(socket, "setKeepAlive");
    const looks = (ms: number, writePending: boolean): number => {
      input.look(coarseNow() + ms, writePending);
      return asked.mock.calls.length;
    };
    expect(looks(1_000_000, false)).toBe(0);
    input.pause();
    expect([4_999, 5_001, 10_000, 10_002].map((ms) => looks(ms, false))).toEqual([0, 1, 1, 2]);
    expect(asked).toHaveBeenLastCalledWith(true, 30_000);
    far.resetAndDestroy();
    await new Promise((done) => setTimeout(done, 20));
    // What waits to be written shows it by itself.
    expect([looks(15_003, true), errors]).toEqual([3, []]);
    looks(20_004, false);
    await eventually(() => errors.length > 0);
  });

  test("stay where they are for a connection that is closed, or a Node that cannot move them", async () => {
    const [near] = await pair();
    const ignore = (): void => undefined;
    without("movedSockets");
    expect(adopt(near, new ReceiveBuffer(), ignore)).toBeUndefined();
    expect(raw(near)._handle).not.toBeNull();
    Object.assign(uses, all);
    near.destroy();
    expect(adopt(near, new ReceiveBuffer(), ignore)).toBeUndefined();
  });

  test("of TLS go into such a buffer, too", async () => {
    const [near, far] = await securePair();
    const { onread } = raw(near)._handle!;
    const buffer = new ReceiveBuffer(true);
    const chunks: Buffer[] = [];
    const into = readInto(near, buffer, (chunk) => void chunks.push(chunk));
    expect(into).toBe(all.tlsReadBuffers);
    if (!into) return;
    near.on("data", () => undefined);
    expect(raw(near)._handle!.onread === onread).toBe(!all.directReads);
    for (const text of ["hello", "again"]) {
      const before = chunks.length;
      far.write(text);
      await eventually(() => chunks.length > before);
      expect([String(chunks[before]), chunks[before]!.buffer === buffer.first.buffer]).toEqual([text, true]);
    }
  });

  test("of TLS are not changed where something of it is missing", () => {
    const probe = new Socket({ onread: { buffer: Buffer.alloc(1), callback: () => true } } as object);
    const names = ["kBuffer", "kBufferCb", "kBufferGen"];
    const symbols = Object.getOwnPropertySymbols(probe).filter((one) => names.includes(one.description!));
    const fields = (count: number): object =>
      Object.fromEntries(symbols.slice(0, count).map((symbol) => [symbol, undefined]));
    const set: unknown[] = [];
    const handle = { useUserBuffer: (into: unknown) => set.push(into) };
    const tried = (socket: object): boolean =>
      readInto(socket as tls.TLSSocket, new ReceiveBuffer(true), () => undefined);
    for (const socket of [
      { _handle: null, ...fields(3) },
      { _handle: {}, ...fields(3) },
      { _handle: handle, ...fields(1) },
      { _handle: handle, ...fields(0) },
    ])
      expect(tried(socket)).toBe(false);
    without("tlsReadBuffers");
    expect(tried({ _handle: handle, ...fields(3) })).toBe(false);
    expect(set).toEqual([]);
  });
});

describe("the connection below a TLS socket", () => {
  test.each([true, false])("is known by name: %j", async (known) => {
    if (!known) without("tcpBelowTls");
    const seen: unknown[] = [];
    const other = {} as tls.TLSSocket;
    secureServer.once("secureConnection", (socket) => seen.push(tcpSocketOf(socket), tcpSocketOf(other)));
    const [near, , tcp] = await securePair();
    expect([seen[0] === tcp, seen[1] === undefined]).toEqual([true, true]);
    expect(tcpSocketOf(near) === tcp).toBe(true);
  });
});

describe("a write that failed", () => {
  test.each([
    [-104, "ECONNRESET"],
    [-32, "EPIPE"],
  ])("with %i is the error that Node reports", (errno, code) => {
    const error = writeError(errno);
    expect([error.message, { ...error }]).toEqual([`write ${code}`, { errno, code, syscall: "write" }]);
  });

  test.each(["_write", "_writev"] as const)("leaves its socket readable: %s", (method) => {
    const results = [
      undefined,
      null,
      writeError(-32),
      Object.assign(new Error("x"), { syscall: "shutdown" }),
    ];
    const emitted: unknown[] = [];
    const ended: unknown[] = [];
    for (const result of results) {
      const write = (...args: unknown[]): void => (args.at(-1) as (error: unknown) => void)(result);
      const socket = { _write: write, _writev: write, emit: (...args: unknown[]) => emitted.push(args) };
      keepReadableAfterWriteErrors(socket as unknown as Socket);
      const call = socket[method] as (...args: unknown[]) => void;
      if (method === "_write") call("", "", (error: unknown) => ended.push(error));
      else call([], (error: unknown) => ended.push(error));
    }
    expect(ended).toEqual([undefined, null, undefined, results[3]]);
    expect(emitted).toEqual([["error", results[2]]]);
  });
});
