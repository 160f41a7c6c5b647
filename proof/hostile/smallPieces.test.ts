import { setTimeout as sleep } from "node:timers/promises";
import { exchange } from "../../testkit/peers.js";
import { connectHttp1 } from "../wire/client.js";
import { type Stage, startStage } from "../wire/stage.js";
import { echo } from "../wire/upstream.js";

/**
 * Bodies in the smallest pieces that HTTP allows, as fast as several clients can write them. They are served, since
 * honest clients send such chunks too, if not as many at a time; but the upstream is not given a piece for each, and
 * nobody else waits for them.
 */
const CLIENTS = 4;
const COUNT = 100_000;
/** On a machine that is as busy as this test can make it. What keeps the worker busy is counted, not timed. */
const PATIENCE_MS = 3_000;
const GREETING_MS = 20_000;

let stage: Stage;
beforeAll(async () => (stage = await startStage()));
afterAll(() => stage?.stop());
beforeEach(() => stage.upstream.forget());

const head = (fields: string): string => `/sync/small HTTP/1.1\r\nHost: sync.example\r\n${fields}\r\n`;
const CHUNKS = Buffer.from(`${"1\r\nx\r\n".repeat(COUNT)}0\r\n\r\n`);
const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const BESIDE = `GET ${head("Connection: close\r\n")}`;

interface Way {
  readonly name: string;
  readonly secure: boolean;
}
const WAYS: readonly Way[] = [
  { name: "plain", secure: false },
  { name: "TLS", secure: true },
];

/** Asks for something small again and again. @returns what ends that, and tells the longest wait in milliseconds */
function watch(port: number, secure: boolean): () => Promise<number> {
  let over = false;
  let longest = 0;
  const asking = (async () => {
    while (!over) {
      const from = performance.now();
      expect((await exchange(port, BESIDE, secure)).status).toBe(200);
      longest = Math.max(longest, performance.now() - from);
      await sleep(10);
    }
  })();
  return async () => {
    over = true;
    await asking;
    return longest;
  };
}

/** How many chunks there are up to the last one, and how much data in them. */
function countChunks(bytes: Buffer, from: number): { chunks: number; data: number } {
  let chunks = 0;
  let data = 0;
  for (let at = from; ; chunks++) {
    const end = bytes.indexOf("\r\n", at);
    const size = parseInt(bytes.toString("latin1", at, end), 16);
    if (size === 0) return { chunks, data };
    data += size;
    at = end + 2 + size + 2;
  }
}

describe.each(WAYS)("over $name", ({ secure }) => {
  const port = (): number => (secure ? stage.tls.ports.https : stage.plain.ports.http);

  test("uploads in chunks of a byte", async () => {
    const longest = watch(port(), secure);
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        const client = await connectHttp1(port(), secure);
        client.send(`POST ${head("Transfer-Encoding: chunked\r\n")}`).send(CHUNKS);
        await client.until(({ received }) => received.includes("\r\n\r\n"), GREETING_MS);
        expect(client.received).toMatch(/^HTTP\/1\.1 200 /);
        client.socket.destroy();
      }),
    );
    expect(await longest()).toBeLessThan(PATIENCE_MS);
    const all = (await stage.upstream.settled(1_000)).map(({ bytes }) => bytes);
    // One may follow another on its connection.
    const uploads = all.flatMap((bytes) =>
      [...bytes.toString("latin1").matchAll(/POST /g)].map(({ index }) =>
        countChunks(bytes, bytes.indexOf("\r\n\r\n", index) + 4),
      ),
    );
    expect(uploads.map(({ data }) => data)).toEqual(Array(CLIENTS).fill(COUNT));
    for (const { chunks } of uploads) expect(chunks).toBeLessThan(COUNT / 100);
  });

  test("responds in chunks of a byte", async () => {
    stage.upstream.script = (line) =>
      line.includes("/sync/small ") ? echo(line) : CHUNKED + CHUNKS.toString("latin1");
    const longest = watch(port(), secure);
    await Promise.all(
      Array.from({ length: CLIENTS }, async () => {
        const client = await connectHttp1(port(), secure);
        client.send("GET /sync/chunks HTTP/1.1\r\nHost: sync.example\r\n\r\n");
        await client.until(({ received }) => received.endsWith("\r\n0\r\n\r\n"), GREETING_MS);
        const bytes = Buffer.from(client.received, "latin1");
        const { chunks, data } = countChunks(bytes, bytes.indexOf("\r\n\r\n") + 4);
        expect(data).toBe(COUNT);
        expect(chunks).toBeLessThan(COUNT / 100);
        client.socket.destroy();
      }),
    );
    expect(await longest()).toBeLessThan(PATIENCE_MS);
    stage.upstream.script = echo;
  });
});
