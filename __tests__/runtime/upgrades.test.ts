import { randomBytes } from "node:crypto";
import { parseConfig } from "../../src/model/index.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { connectHttp2 } from "../../testkit/http2Session.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";
import { connectTo, RawUpstream } from "../../testkit/peers.js";
import { eventually } from "../../testkit/waiting.js";

/** Upgrades that a route names, and what becomes of all others. */

const proxied = (name: string, upgrades?: readonly string[]) =>
  ({
    name,
    path: `/${name}`,
    action: { type: "proxy", upstream: "web", upgrades: upgrades && [...upgrades] },
  }) as const;

let upstream: RawUpstream;
let front: EveryProtocol;
/** `Upgrade` of the 101, or undefined for the protocol that was requested. */
let grants: string | undefined;
beforeEach(async () => {
  grants = undefined;
  upstream = await new RawUpstream((peer) => {
    peer.socket.once("data", () => {
      const [, asked] = /^Upgrade: (.*)\r$/m.exec(peer.received) ?? [];
      if (asked === undefined)
        return peer.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok");
      peer.send(`HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: ${grants ?? asked}\r\n\r\n`);
      peer.socket.on("data", (bytes: Buffer) => peer.send(bytes));
      return peer.socket.on("end", () => peer.socket.end());
    });
  }).listen();
  front = await startEveryProtocol({
    routes: [proxied("usual"), proxied("backup", ["websocket", "Backup-v1"]), proxied("none", [])],
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
  });
});
afterEach(async () => {
  const faults = front.serving.faults.count;
  await front.close();
  await upstream.close();
  expect(faults).toBe(0);
});

const asks = (path: string, upgrade: string): string =>
  `GET /${path} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: ${upgrade}\r\n\r\n`;

test("bytes pass both ways as they are, over HTTP/1.1", async () => {
  const client = await connectTo(front.plainPort);
  client.send(asks("backup", "backup-V1"));
  await client.receives("\r\n\r\n");
  expect(client.received).toMatch(/^HTTP\/1\.1 101 S\r\n[^]*Upgrade: backup-v1\r\n/i);
  expect(upstream.received).toContain("\r\nUpgrade: Backup-v1\r\n");
  const sent = randomBytes(300_000);
  client.send(sent);
  const begin = client.received.indexOf("\r\n\r\n") + 4;
  await client.until(({ received }) => received.length === begin + sent.length);
  expect(client.received.slice(begin) === sent.toString("latin1")).toBe(true);
  client.socket.end();
  await client.until(({ ended }) => ended);
});

test("bytes pass both ways as they are, over HTTP/2", async () => {
  const session = connectHttp2(front.securePort);
  await new Promise((resolve) => session.once("remoteSettings", resolve));
  const head = { ":method": "CONNECT", ":protocol": "Backup-v1", ":scheme": "https", ":path": "/backup" };
  const stream = session.request({ ...head, ":authority": "a" }, { endStream: false });
  let [status, received] = [0, Buffer.alloc(0)];
  stream.on("response", (fields) => (status = fields[":status"]!)).on("error", () => undefined);
  stream.on("data", (bytes: Buffer) => (received = Buffer.concat([received, bytes])));
  await eventually(() => status !== 0);
  expect(status).toBe(200);
  const sent = randomBytes(300_000);
  stream.write(sent);
  await eventually(() => received.length === sent.length);
  expect(received.equals(sent)).toBe(true);
  session.destroy();
});

test.each([
  ["usual", "Backup-v1", "Backup-v1"],
  ["usual", "h2c", "h2c"],
  ["none", "websocket", "websocket"],
  ["backup", "backup-v1, websocket", "backup-v1, websocket"],
])("on %s, an upgrade to %s is dropped, and the log says so once", async (path, upgrade, named) => {
  for (let i = 0; i < 3; i++) {
    const client = await connectTo(front.plainPort);
    client.send(asks(path, upgrade));
    await client.receives("ok");
    client.socket.destroy();
  }
  expect(upstream.received).not.toMatch(/upgrade/i);
  const lines = (await front.errorLog()).split("\n").filter((line) => line.includes("[info]"));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain(`the upgrade to "${named.toLowerCase()}" is dropped`);
});

test.each([["websocket"], ["other"]])("a 101 for %s, which was not requested, is 502", async (granted) => {
  grants = granted;
  const client = await connectTo(front.plainPort);
  client.send(asks("backup", "Backup-v1"));
  await client.receives("\r\n\r\n");
  expect(client.received).toMatch(/^HTTP\/1\.1 502 /);
  client.socket.destroy();
});

test("a tunnel whose time is over ends at once, and no frame is put into it", async () => {
  const client = await connectTo(front.plainPort);
  client.send(asks("backup", "Backup-v1"));
  await client.receives("\r\n\r\n");
  const { length } = client.received;
  for (const exchange of front.http1.running()) exchange.closeTunnel();
  await client.until(({ ended, closed }) => ended || closed);
  expect(client.received.length).toBe(length);
});

test.each([
  ["websocket", true],
  ["IRC/6.9", true],
  ["tcp", true],
  ["httpoxy", true],
  ["h2c", false],
  ["H2C", false],
  ["h2", false],
  ["HTTP/2.0", false],
  ["TLS/1.0", false],
  ["", false],
  ["a b", false],
  ["a\r\nb", false],
])("%j as an upgrade of a route is valid: %j", (upgrade, valid) => {
  const config = oneServer({
    listeners: [loopback("l", 80)],
    upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
    routes: [proxied("r", [upgrade])],
  });
  expect(parseConfig(config).ok).toBe(valid);
});
