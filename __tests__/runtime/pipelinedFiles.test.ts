import { rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectTo, exchange } from "../../testkit/peers.js";
import { CONTENT_BYTES_MAX } from "../../src/runtime/actions/fileCache.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/**
 * A response leaves at the end of the turn, when the next request of the connection may have begun: that the one has left
 * says nothing to the other, whose file is not even open yet.
 */

const SIZES = { tiny: 100, medium: 60_000, large: CONTENT_BYTES_MAX + 1 } as const;
type Name = keyof typeof SIZES;

const UNSETTLED_MS = 200;

let folder: string;
let front: EveryProtocol;

beforeAll(async () => {
  folder = publicFolder("portico-pipelined-");
  for (const [name, size] of Object.entries(SIZES)) {
    writeFileSync(join(folder, name), Buffer.alloc(size));
    utimesSync(join(folder, name), 0, 0);
  }
  // What changed just now is not kept in memory.
  await sleep(UNSETTLED_MS);
  front = await startEveryProtocol({
    routes: [{ name: "files", path: "/", action: { type: "staticFiles", directory: folder } }],
  });
});
afterAll(async () => {
  await front.close();
  rmSync(folder, { recursive: true, force: true });
});

const get = (name: Name, more = ""): string => `GET /${name} HTTP/1.1\r\nHost: a\r\n${more}\r\n`;

test.each<{ first: Name; secure: boolean }>([
  { first: "tiny", secure: false },
  { first: "medium", secure: false },
  { first: "tiny", secure: true },
  { first: "medium", secure: true },
])("a large file after a $first one, TLS $secure", async ({ first, secure }) => {
  const port = secure ? front.securePort : front.plainPort;
  // From now on their descriptions are known, and requests for them get a response without a look at the disk.
  for (const name of [first, "large"] as const)
    await exchange(port, get(name, "Connection: close\r\n"), secure);
  const client = await connectTo(port, secure);
  client.send(get(first) + get("large", "Connection: close\r\n"));
  await client.until((peer) => peer.ended || peer.closed);
  client.socket.destroy();
  expect(client.received.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
  expect(client.received.length).toBeGreaterThan(SIZES[first] + SIZES.large);
  expect(front.serving.faults.count).toBe(0);
});
