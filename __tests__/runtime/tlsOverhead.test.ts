import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { TlsRecordClient } from "../../testkit/tlsRecords.js";
import { eventually } from "../../testkit/waiting.js";

/** What a client sends over TLS beside data costs time and memory that nothing else counts. */

const FEW = 100;
const TOO_MANY = 20_000;

let front: EveryProtocol;
beforeAll(async () => {
  const action = { type: "respond", status: 200, body: "here" } as const;
  front = await startEveryProtocol({ routes: [{ name: "all", path: "/", action }] });
});
afterAll(() => front.close());

const keyUpdates = (client: TlsRecordClient, count: number): Buffer =>
  Buffer.concat(Array.from({ length: count }, () => client.keyUpdate()));

const REQUEST = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

describe.each(["http/1.1", "h2"])("KeyUpdate, %s", (protocol) => {
  test.each([true, false])("a flood ends its connection; whether the client reads: %s", async (reads) => {
    const before = await front.errorLog();
    const client = await TlsRecordClient.open(front.securePort, protocol);
    // By a reset, if something is still unread.
    const closed = new Promise((resolve) => client.tcp.once("close", resolve));
    if (!reads) client.tcp.pause();
    client.tcp.write(keyUpdates(client, TOO_MANY));
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
    keyUpdates(client, FEW),
    ...Array.from(REQUEST, (char) => client.data(char)),
  ]);
  client.tcp.write(request);
  await eventually(() => received.endsWith("here"));
  client.tcp.destroy();
});
