import { createHash } from "node:crypto";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, isComplete, parseResponse } from "../../testkit/peers.js";
import { openFolder } from "../../testkit/portico.js";
import { ask, type Asking } from "./client.js";
import { NAMES } from "./servers.js";
import { stageOf } from "./stage.js";

/** Bodies in both directions, as servers really take and send them. */

const stage = stageOf(NAMES);
const to = (server: string, what: string): [port: number, path: string] => [
  stage().port,
  `/${server}/${what}`,
];

const PIECE = Buffer.from(Array.from({ length: 65_536 }, (_, i) => (i * 31) % 256));
const UPLOAD_PIECES = 64;
const UPLOAD_BYTES = UPLOAD_PIECES * PIECE.length;
const digest = createHash("sha256");
for (let i = 0; i < UPLOAD_PIECES; i++) digest.update(PIECE);
const TAKEN = `${UPLOAD_BYTES} ${digest.digest("hex")}`;

const upload = (): Buffer[] => new Array<Buffer>(UPLOAD_PIECES).fill(PIECE);

const FRAMINGS: readonly (readonly [string, NonNullable<Asking["headers"]>])[] = [
  ["with a length", { "Content-Length": UPLOAD_BYTES }],
  ["in chunks", { "Transfer-Encoding": "chunked" }],
];
const EVERY_FRAMING = NAMES.flatMap((name) =>
  FRAMINGS.map(([framing, headers]) => [name, framing, headers] as const),
);

test.each(EVERY_FRAMING)(
  "%s takes an upload %s, with and without being asked to go on",
  async (name, _, headers) => {
    for (const more of [{}, { Expect: "100-continue" }] as Record<string, string>[]) {
      const response = await ask(...to(name, "upload"), {
        method: "POST",
        headers: { ...headers, ...more },
        body: upload(),
      });
      expect([response.status, response.body.toString()]).toEqual([200, TAKEN]);
    }
  },
);

test.each(EVERY_FRAMING)(
  "%s refuses an upload %s before it has come, and the client sees why",
  async (name, framing, headers) => {
    const fields = Object.entries(headers).map(([field, value]) => `${field}: ${value}\r\n`);
    const head = `POST /${name}/refuse HTTP/1.1\r\nHost: localhost\r\n${fields.join("")}\r\n`;
    const chunked = framing === "in chunks";
    for (let i = 0; i < 5; i++) {
      const client = await connectTo(stage().port);
      client.send(head);
      for (const piece of upload()) {
        if (chunked)
          client
            .send(`${piece.length.toString(16)}\r\n`)
            .send(piece)
            .send("\r\n");
        else client.send(piece);
      }
      if (chunked) client.send("0\r\n\r\n");
      await client.until(({ received, closed, ended }) => isComplete(received) || closed || ended);
      const { status, headers: responded, body } = parseResponse(client.received);
      expect([status, body]).toEqual([413, expect.stringContaining("too large")]);
      // The connection was closed, or holds the rest of the body, which is not taken for a request.
      if (responded["connection"] !== "close") {
        client.send(`GET /${name}/answer?id=${i} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
        await client.until(({ received }) => received.includes(`response of ${i}`));
      }
      client.socket.destroy();
    }
  },
);

test.each(NAMES)("%s sends much to one who rests before reading on, and it is whole", async (name) => {
  const size = 24 * 2 ** 20 + 1;
  const { status, body } = await ask(...to(name, `download?size=${size}`), { restMs: 100 });
  expect([status, body.length]).toEqual([200, size]);
  const block = Buffer.from(Array.from({ length: 65_536 }, (_, i) => i % 251));
  const wrong = [];
  for (let at = 0; at < size; at += block.length) {
    const piece = body.subarray(at, at + block.length);
    if (!piece.equals(block.subarray(0, piece.length))) wrong.push(at);
  }
  expect(wrong).toEqual([]);
});

test.each(NAMES)("%s sends a body bit by bit, and each piece arrives when it is sent", async (name) => {
  const seen = join(openFolder(), "seen");
  writeFileSync(seen, "");
  // The server sends no piece before the client has the one before it: a proxy that collects some gets no more.
  const onPiece = (): void => appendFileSync(seen, "x");
  const { status, pieces } = await ask(...to(name, `pieces?count=5&seen=${seen}`), { onPiece });
  expect([status, pieces.map(String)]).toEqual([200, [0, 1, 2, 3, 4].map((i) => `piece ${i}\n`)]);
});

test.each(NAMES)("%s takes a body that comes bit by bit", async (name) => {
  async function* slowly(): AsyncGenerator<Buffer> {
    for (const piece of ["one", "two", "three"]) {
      yield Buffer.from(piece);
      await sleep(60);
    }
  }
  const { status, body } = await ask(...to(name, "upload"), { method: "POST", body: slowly() });
  const hash = createHash("sha256").update("onetwothree").digest("hex");
  expect([status, body.toString()]).toEqual([200, `11 ${hash}`]);
});

test("nothing is left of it", () => stage().conserved());
