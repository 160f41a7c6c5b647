import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectTo, RawUpstream } from "../../testkit/peers.js";
import { issue } from "../../testkit/certificates.js";

/**
 * What an upstream sent before it reset its connection is passed on, and only then does the reset count: over TLS as
 * without it.
 */

let [folder, sends]: [string, string] = ["", ""];
let delay = 0;
let front: EveryProtocol;
const upstreams: RawUpstream[] = [];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-resets-"));
  const identity = await issue({ type: "ec", names: ["127.0.0.1"] });
  const caFile = join(folder, "ca.pem");
  writeFileSync(caFile, identity.cert);
  for (const secure of [undefined, identity]) {
    const upstream: RawUpstream = new RawUpstream(({ socket }) => {
      const reset = (): unknown => upstream.transportOf(socket).resetAndDestroy();
      socket.once("data", () => socket.write(sends, "latin1", () => setTimeout(reset, delay)));
    }, secure);
    upstreams.push(await upstream.listen());
  }
  const [plain, tls] = upstreams as [RawUpstream, RawUpstream];
  front = await startEveryProtocol({
    routes: ["plain", "secure"].map((name) => ({
      name,
      path: `/${name}`,
      action: { type: "proxy", upstream: name },
    })),
    upstreams: [
      { name: "plain", url: `http://127.0.0.1:${plain.port}` },
      { name: "secure", url: `https://127.0.0.1:${tls.port}`, tls: { caFile } },
    ],
  });
});
afterAll(async () => {
  await front.close();
  for (const upstream of upstreams) await upstream.close();
  rmSync(folder, { recursive: true });
});

const INTERIM = "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n";

/** Less than the kernels hold, which nothing of the upstream holds back. */
const INTERIM_RESPONSES = [100, 1_000];
/** With the last bytes, and while the proxy rests between heads of more than a turn's work. */
const DELAYS_MS = [0, 1, 2];

describe.each(INTERIM_RESPONSES)("%s interim responses and a final one", (interim) => {
  test.each(["plain", "secure"])("of a %s upstream", async (name) => {
    sends = `${INTERIM.repeat(interim)}HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok`;
    for (delay of DELAYS_MS) {
      const client = await connectTo(front.plainPort);
      client.send(`GET /${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
      await client.until(({ closed, ended }) => closed || ended);
      expect(client.received).toMatch(/^HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\nok$/);
      client.socket.destroy();
    }
  });
});

test.each(["plain", "secure"])("without a final response the client is told: %s upstream", async (name) => {
  sends = INTERIM;
  for (delay of [1, 20]) {
    const before = (await front.errorLog()).length;
    const client = await connectTo(front.plainPort);
    client.send(`GET /${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await client.until(({ closed, ended }) => closed || ended);
    expect(client.received).toMatch(/^HTTP\/1\.1 502 /);
    // A reset that comes with the last bytes is seen as an end.
    expect((await front.errorLog()).slice(before)).toMatch(
      /(?:recv\(\) failed \(104: ECONNRESET\)|prematurely closed connection) while reading response header/,
    );
    client.socket.destroy();
  }
});

describe("what waits for a slow client", () => {
  /** More than a paused reader's buffers, less than the kernels' hold. */
  const BYTES = 100_000;
  test.each(["plain", "secure"])("of a %s upstream", async (name) => {
    sends = `HTTP/1.1 200 OK\r\nContent-Length: ${BYTES}\r\n\r\n${"x".repeat(BYTES)}`;
    delay = 20;
    const client = await connectTo(front.plainPort);
    client.socket.pause();
    client.send(`GET /${name} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`);
    await new Promise((resolve) => setTimeout(resolve, 100));
    client.socket.resume();
    await client.until(({ closed, ended }) => closed || ended);
    expect(client.received).toMatch(/\r\n\r\nx{100000}$/);
    client.socket.destroy();
  });
});
