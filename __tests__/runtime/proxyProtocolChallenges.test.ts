import { once } from "node:events";
import * as net from "node:net";
import * as tls from "node:tls";
import { bind } from "../../src/runtime/sockets/node/boundSockets.js";
import { ConnectionGate } from "../../src/runtime/listen/gate.js";
import { ListenerServer } from "../../src/runtime/listen/listener.js";
import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";

/** An authority that comes through a load balancer asks for a challenge (RFC 8737) after a PROXY protocol header. */

const NAME = "proved.example";
let every: EveryProtocol;
let server: ListenerServer;
let port: number;

beforeAll(async () => {
  every = await startEveryProtocol({
    routes: [{ name: "all", path: "/", match: "prefix", action: { type: "respond", status: 204 } }],
  });
  [port] = (await freePorts(1)) as [number];
  const listener = { ...every.serving.config.listeners[1]!, port, proxyProtocol: { from: ["127.0.0.2"] } };
  const own = {
    id: "own",
    source: "files" as const,
    ...(await issue({ names: ["own.example"] })),
  };
  server = new ListenerServer({
    listener,
    tls: { certificates: [own] },
    ticketKeys: Buffer.alloc(48, 7).toString("base64"),
    context: every.serving,
    gate: new ConnectionGate(
      every.serving.config.limits,
      every.serving.trusted,
      () => undefined,
      () => [],
    ),
    http1: every.http1,
    http2: every.http2,
  });
  const socket = bind("127.0.0.1", port);
  if (typeof socket === "number") throw new Error(`cannot bind: ${socket}`);
  // From here on it is the server's, which closes it.
  expect(await server.listen(socket)).toBeUndefined();
  server.setChallenges([
    { ...(await issue({ type: "ec", names: [NAME] })), type: "tls-alpn-01", name: NAME },
  ]);
});

afterAll(async () => {
  server.stopAccepting();
  server.closeAll();
  await every.close();
});

test.each([
  ["acme-tls/1", NAME],
  ["http/1.1", "own.example"],
])("for %s there is the certificate of %s", async (protocol, name) => {
  const socket = net.connect({ host: "127.0.0.1", port, localAddress: "127.0.0.2" });
  socket.write("PROXY TCP4 192.0.2.1 198.51.100.2 1 443\r\n");
  const secure = tls.connect({
    socket,
    servername: NAME,
    ALPNProtocols: [protocol],
    rejectUnauthorized: false,
  });
  secure.on("error", () => secure.destroy());
  await once(secure, "secureConnect");
  expect(secure.alpnProtocol).toBe(protocol);
  expect(secure.getPeerCertificate().subjectaltname).toBe(`DNS:${name}`);
  secure.destroy();
  socket.destroy();
});
