import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectTo, parseResponse } from "../../testkit/peers.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/**
 * A client that ends its side in the midst of a response, and reads on. (After a close_notify of TLS 1.2 nothing more is
 * written to it: RFC 5246, 7.2.1.)
 */

const BYTES = 4 << 20;

let folder: string;
let front: EveryProtocol;

beforeAll(async () => {
  folder = publicFolder("portico-half-closed-");
  writeFileSync(join(folder, "large"), Buffer.alloc(BYTES));
  front = await startEveryProtocol({
    routes: [{ name: "files", path: "/", action: { type: "staticFiles", directory: folder } }],
  });
});
afterAll(async () => {
  await front.close();
  rmSync(folder, { recursive: true, force: true });
});

test.each([
  ["its request was whole", ""],
  // The response says that the body is not wanted (RFC 9110, 10.1.1).
  ["it had asked whether to send its body", "Expect: 100-continue\r\nContent-Length: 3\r\n"],
  ["it had asked, over chunks", "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n"],
])("gets all of the response if %s", async (_, fields) => {
  const client = await connectTo(front.plainPort);
  client.send(`GET /large HTTP/1.1\r\nHost: a\r\n${fields}\r\n`);
  await client.until(({ received }) => received.includes("\r\n\r\n"));
  client.socket.end();
  await client.until((peer) => peer.ended || peer.closed);
  const { status, body } = parseResponse(client.received);
  expect([status, body.length]).toEqual([200, BYTES]);
});

test("gets no more of the response if its request was not whole", async () => {
  const client = await connectTo(front.plainPort);
  client.send("GET /large HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n");
  await client.until(({ received }) => received.includes("\r\n\r\n"));
  client.socket.end();
  await client.until((peer) => peer.ended || peer.closed);
  expect(client.received.length).toBeLessThan(BYTES);
});
