import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { TextWriter } from "../../src/runtime/sockets/node/textWriter.js";

/** Writes past the stream, on real sockets: all of it arrives in order, and what goes wrong is told. */

let server: Server;
let near: Socket;
let far: Socket;
let written: (Error | null | undefined)[];
let writer: TextWriter;

beforeEach(async () => {
  server = createServer({ allowHalfOpen: true });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const accepted = once(server, "connection");
  near = connect({ port: (server.address() as AddressInfo).port, host: "127.0.0.1", allowHalfOpen: true });
  // Nothing is read, so that a reset is met by a write first.
  near.pause();
  await once(near, "connect");
  [far] = (await accepted) as [Socket];
  far.on("error", () => undefined);
  written = [];
  writer = new TextWriter(near, (error) => written.push(error));
});

afterEach(async () => {
  near.destroy();
  far.destroy();
  await new Promise((done) => server.close(done));
});

/** Writes to a peer that does not read until bytes wait; returns what was written. */
function fill(by = writer): string {
  let text = "";
  for (let i = 0; !by.pending; i++) {
    const piece = `${i} `.repeat(1_500);
    by.write(piece);
    text += piece;
    if (text.length > 1 << 28) throw new Error("the kernel takes everything");
  }
  return text;
}

async function received(): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of far) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString("latin1");
}

test("text that fits the kernel's buffer goes out at once, without a callback", async () => {
  writer.direct();
  const node = jest.spyOn(near, "write");
  writer.write("caf\xe9 ");
  writer.write("au lait");
  expect(writer.pending).toBe(false);
  near.end();
  expect(await received()).toBe("caf\xe9 au lait");
  expect([node.mock.calls.length, written]).toEqual([0, []]);
});

test.each([true, false])(
  "text that does not fit arrives complete and in order (past the stream: %s)",
  async (direct) => {
    if (direct) writer.direct();
    let text = fill();
    expect(written).toEqual([]);
    // Behind a write that waits: by the same way, and by Node's own.
    for (const piece of ["behind ", "\xff ", "x".repeat(100_000)]) {
      writer.write(piece);
      near.write(Buffer.from("bytes "));
      text += `${piece}bytes `;
    }
    near.end("the end");
    expect(await received()).toBe(`${text}the end`);
    expect(writer.pending).toBe(false);
    expect(written.length).toBeGreaterThan(0);
    expect(written.every((error) => error == null)).toBe(true);
  },
);

test("once everything is written, writes bypass the stream again", async () => {
  writer.direct();
  for (let round = 0; round < 3; round++) {
    const text = fill();
    let seen = 0;
    const drained = new Promise<void>((done) => {
      far.on("data", (chunk: Buffer) => {
        seen += chunk.length;
        if (seen === text.length) done();
      });
    });
    far.resume();
    await drained;
    while (writer.pending) await new Promise(setImmediate);
    far.removeAllListeners("data").pause();
    expect(written).toHaveLength(round + 1);
  }
});

test("of two sockets whose writes wait, each is told of its own", async () => {
  const accepted = once(server, "connection");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  await once(socket, "connect");
  const [reader] = (await accepted) as [Socket];
  const writtenThere: unknown[] = [];
  const there = new TextWriter(socket, (error) => writtenThere.push(error));
  for (const one of [writer, there]) one.direct();
  fill();
  fill(there);
  far.resume();
  while (written.length === 0) await sleep(5);
  expect([written.length, writer.pending, writtenThere.length, there.pending]).toEqual([1, false, 0, true]);
  reader.resume();
  while (writtenThere.length === 0) await sleep(5);
  expect([written.length, writtenThere.length, there.pending]).toEqual([1, 1, false]);
  socket.destroy();
  reader.destroy();
});

test("a reset during a waiting write is reported once, as Node reports it", async () => {
  writer.direct();
  const errors: NodeJS.ErrnoException[] = [];
  near.on("error", (error) => errors.push(error));
  // As upstream connections are: an answer may still be there to be read.
  (near as unknown as { _writableState: { autoDestroy: boolean } })._writableState.autoDestroy = false;
  (near as unknown as { _readableState: { autoDestroy: boolean } })._readableState.autoDestroy = false;
  // On a busy machine the kernel widens its window meanwhile, and takes what waited.
  do {
    fill();
    await sleep(50);
  } while (!writer.pending);
  written.length = 0;
  far.resetAndDestroy();
  while (written.length === 0) await sleep(5);
  expect(written.map((error) => (error as NodeJS.ErrnoException).syscall)).toEqual(["write"]);
  expect(["ECONNRESET", "EPIPE"]).toContain(errors[0]!.code);
  expect([errors[0]!.syscall, writer.pending]).toEqual(["write", false]);
});

test.each(["reset", "end"] as const)(
  "a write that fails at once is reported with the kernel's first reason: %s",
  async (how) => {
    writer.direct();
    const errors: Error[] = [];
    near.on("error", (error) => errors.push(error));
    if (how === "end") await new Promise<void>((done) => far.end("", done));
    far.resetAndDestroy();
    await sleep(50);
    writer.write("a");
    // It is not tried again.
    await sleep(20);
    expect(errors).toMatchObject([{ syscall: "write", code: how === "end" ? "EPIPE" : "ECONNRESET" }]);
    expect([writer.pending, written]).toEqual([false, []]);
  },
);

test("destroying the socket drops a waiting write", async () => {
  writer.direct();
  fill();
  near.destroy();
  await once(near, "close");
  await sleep(20);
  expect(written).toEqual([]);
  writer.write("after the end");
  near.on("error", () => undefined);
});

test("after end() a write is refused by Node, not sent", async () => {
  writer.direct();
  near.end("last");
  const failed = once(near, "error");
  writer.write("behind the end");
  expect(((await failed) as [NodeJS.ErrnoException])[0].code).toBe("ERR_STREAM_WRITE_AFTER_END");
});

test("without Node's binding everything goes through the stream", async () => {
  const { binding } = process as unknown as { binding: unknown };
  const refuse = () => {
    throw new Error("Access to this API has been restricted");
  };
  Object.assign(process, { binding: refuse });
  try {
    await jest.isolateModulesAsync(async () => {
      const modules = await import("../../src/runtime/sockets/node/textWriter.js");
      const plain = new modules.TextWriter(near, (error) => written.push(error));
      plain.direct();
      const node = jest.spyOn(near, "write");
      plain.write("text");
      expect(node).toHaveBeenCalledTimes(1);
    });
  } finally {
    Object.assign(process, { binding });
  }
  near.end();
  expect(await received()).toBe("text");
});
