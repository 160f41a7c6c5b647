import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectHttp2 } from "../../testkit/http2Server.js";
import { type Accepted, RawUpstream, responding } from "../../testkit/peers.js";
import { openFolder } from "../../testkit/portico.js";
import { randomBody } from "../../testkit/random.js";

/**
 * Over HTTP/2 a write ends a turn of the event loop after it began, so what a download takes on a busy machine is a number
 * of turns. A client that reads is to need few, long before the kernel alone could have swallowed what was sent.
 */

const BYTES = 8 << 20;
let front: EveryProtocol;
let upstream: RawUpstream;
const CONTENT = randomBody(BYTES);

beforeAll(async () => {
  const folder = openFolder();
  writeFileSync(join(folder, "file"), CONTENT);
  const response = `HTTP/1.1 200 OK\r\nContent-Length: ${BYTES}\r\n\r\n${CONTENT.toString("latin1")}`;
  upstream = await new RawUpstream((peer: Accepted) => responding(response)(peer)).listen();
  front = await startEveryProtocol({
    routes: [
      { name: "files", path: "/files/", action: { type: "staticFiles", directory: folder } },
      { name: "web", path: "/web", action: { type: "proxy", upstream: "web" } },
    ],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterAll(async () => {
  await front.close();
  await upstream.close();
});

test.each(["/files/file", "/web"])("8 MiB take few turns of a busy event loop: %s", async (path) => {
  const session = connectHttp2(front.securePort, { initialWindowSize: 2 * BYTES });
  await new Promise<void>((resolve) => session.once("connect", () => resolve()));
  session.setLocalWindowSize(2 * BYTES);
  const stream = session.request({ ":path": path });
  const received: Buffer[] = [];
  let turns = 0;
  let over = false;
  // Nothing else decides how long a turn is.
  const busy = (): void => {
    for (const until = performance.now() + 2; performance.now() < until;);
    turns++;
    if (!over) setImmediate(busy);
  };
  await new Promise<void>((resolve, reject) => {
    stream.on("data", (chunk: Buffer) => received.push(chunk));
    stream.on("end", resolve);
    stream.on("error", reject);
    setImmediate(busy);
  });
  over = true;
  session.destroy();
  expect(Buffer.concat(received).equals(CONTENT)).toBe(true);
  expect(turns).toBeLessThan(300);
});
