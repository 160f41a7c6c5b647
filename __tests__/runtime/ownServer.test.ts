import { connectTo } from "../../testkit/peers.js";
import { OwnServer, textResponse } from "../../src/runtime/supervisor/listeners/ownServer.js";

/** The health listener is the master's: whatever a peer sends there, it gets one short response. */

let server: OwnServer;
let asked: string[];
beforeAll(async () => {
  const made = await OwnServer.listen({ host: "127.0.0.1", port: 0 }, ({ path }) => {
    asked.push(path);
    return path === "/readyz" ? textResponse(200, "ready") : undefined;
  });
  if (!(made instanceof OwnServer)) throw made;
  server = made;
});
afterAll(() => server.close());
beforeEach(() => (asked = []));

/** A head of so many bytes, its end included. */
const headOf = (bytes: number): string => `GET / HTTP/1.1\r\nX: ${"x".repeat(bytes - 23)}\r\n\r\n`;
const READY = "GET /readyz HTTP/1.1\r\nHost: a\r\n\r\n";

test.each<{ what: string; sends: string; ends?: boolean; status: number; asks: number }>([
  { what: "a probe", sends: READY, status: 200, asks: 1 },
  { what: "a probe of HTTP/1.0", sends: "GET /readyz HTTP/1.0\r\n\r\n", status: 200, asks: 1 },
  { what: "one that closes its side", sends: READY, ends: true, status: 200, asks: 1 },
  { what: "many requests at once", sends: READY.repeat(1_000), status: 200, asks: 1 },
  {
    what: "another method",
    sends: "POST /readyz HTTP/1.1\r\nContent-Length: 9\r\n\r\nx",
    status: 405,
    asks: 0,
  },
  { what: "a head without an end", sends: `GET / HTTP/1.1\r\nX: ${"x".repeat(4_096)}`, status: 431, asks: 0 },
  { what: "the longest head", sends: headOf(4_097), status: 404, asks: 1 },
  { what: "one that is longer", sends: headOf(4_098), status: 431, asks: 0 },
  { what: "another version", sends: "GET /readyz HTTP/2.0\r\n\r\n", status: 400, asks: 0 },
  { what: "something else", sends: "HELO a\r\n\r\n", status: 400, asks: 0 },
])("$what: $status", async ({ sends, ends = false, status, asks }) => {
  const client = await connectTo(server.at.port);
  client.send(sends);
  if (ends) client.socket.end();
  await client.until((peer) => peer.closed || peer.ended);
  client.socket.destroy();
  expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual([`HTTP/1.1 ${status}`]);
  expect(asked).toHaveLength(asks);
});

test("the response to HEAD has the length of one to GET, and no body", async () => {
  const client = await connectTo(server.at.port);
  client.send("HEAD /readyz?verbose HTTP/1.1\r\nHost: a\r\n\r\n");
  await client.until((peer) => peer.ended);
  client.socket.destroy();
  expect(client.received).toMatch(/\r\nContent-Length: 6\r\n[^]*\r\n\r\n$/);
});
