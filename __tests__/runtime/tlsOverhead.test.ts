import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issue } from "../../testkit/certificates.js";
import { connectTo } from "../../testkit/peers.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { TlsRecordClient, type TlsRecords, tlsRecordServer } from "../../testkit/tlsRecords.js";
import { eventually } from "../../testkit/waiting.js";

/** What a peer sends over TLS beside data costs time and memory that nothing else counts. */

const FEW = 100;
const TOO_MANY = 20_000;

let front: EveryProtocol;
beforeAll(async () => {
  const action = { type: "respond", status: 200, body: "here" } as const;
  front = await startEveryProtocol({ routes: [{ name: "all", path: "/", action }] });
});
afterAll(() => front.close());

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

describe.each(["http/1.1", "h2"])("KeyUpdate, %s", (protocol) => {
  test.each([true, false])("a flood ends its connection; whether the client reads: %s", async (reads) => {
    const before = await front.errorLog();
    const client = await TlsRecordClient.open(front.securePort, protocol);
    // By a reset, if something is still unread.
    const closed = new Promise((resolve) => client.tcp.once("close", resolve));
    if (!reads) client.tcp.pause();
    client.tcp.write(client.records.keyUpdates(TOO_MANY));
    await eventually(async () =>
      (await front.errorLog()).slice(before.length).includes("too many TLS messages without data"),
    );
    // Logged before its close is reported.
    await eventually(() => front.http1.size + front.http2.size === 0);
    client.tcp.destroy();
    await closed;
  });
});

test("a few of them, and requests in records of a byte, are served", async () => {
  const client = await TlsRecordClient.open(front.securePort, "http/1.1");
  let received = "";
  client.socket.on("data", (chunk: Buffer) => (received += chunk.toString("latin1")));
  const request = Buffer.concat([
    client.records.keyUpdates(FEW),
    ...Array.from(REQUEST, (char) => client.records.data(char)),
  ]);
  client.tcp.write(request);
  await eventually(() => received.endsWith("here"));
  client.tcp.destroy();
});

describe("an upstream", () => {
  const HEAD = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\nConnection: close\r\n\r\n";
  /** @param sends the records of a response */
  async function responseOf(sends: (records: TlsRecords) => Iterable<Buffer>) {
    const identity = await issue({ type: "ec", names: ["127.0.0.1"] });
    const folder = mkdtempSync(join(tmpdir(), "portico-records-"));
    const caFile = join(folder, "ca.pem");
    writeFileSync(caFile, identity.cert);
    let ended = false;
    const server = tlsRecordServer(identity, (tcp, records) => {
      tcp.once("close", () => (ended = true));
      for (const bytes of sends(records)) tcp.write(bytes);
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    const one = await startEveryProtocol({
      upstreams: [{ name: "hostile", url: `https://127.0.0.1:${port}`, tls: { caFile } }],
      routes: [{ name: "all", path: "/", action: { type: "proxy", upstream: "hostile" } }],
    });
    try {
      const client = await connectTo(one.plainPort);
      client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
      await client.until((peer) => peer.closed || peer.ended);
      await eventually(() => ended);
      client.socket.destroy();
      return { received: client.received, log: await one.errorLog() };
    } finally {
      await one.close();
      server.close();
      rmSync(folder, { recursive: true });
    }
  }

  test("that sends KeyUpdates and no response is a bad gateway", async () => {
    const { received, log } = await responseOf((records) => [records.keyUpdates(TOO_MANY / 2)]);
    expect(received).toMatch(/^HTTP\/1\.1 502 /);
    expect(log).toMatch(/\(ERR_TLS_FLOOD\): it sends too many TLS messages without data; repair/);
  });

  test("that sends some data between them does not keep a worker busy", async () => {
    const { received, log } = await responseOf(function* (records) {
      yield records.data(HEAD);
      for (let i = 0; i < 100; i++) yield Buffer.concat([records.data("x"), records.keyUpdates(100)]);
    });
    expect(received).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nx*$/);
    expect(log).toContain("ERR_TLS_FLOOD");
  });

  test("that sends a few of them, and records of a byte, has its response passed on", async () => {
    const { received, log } = await responseOf(function* (records) {
      yield records.data(HEAD);
      for (let i = 0; i < 500; i++)
        yield i % 5 === 0 ? Buffer.concat([records.keyUpdate(), records.data("x")]) : records.data("x");
    });
    expect(received).toMatch(/^HTTP\/1\.1 200 [^]*\r\n\r\nx{500}$/);
    expect(log).toBe("");
  });
});
