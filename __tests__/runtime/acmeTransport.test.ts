import { getEventListeners, once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { issue } from "../../proof/kit/certificates.js";
import { eventually } from "../../proof/kit/waiting.js";
import { Transport } from "../../src/runtime/acme/transport.js";

/** Requests to an authority, and what they leave behind. */

let server: Server;
let roots: string;
let connections = 0;
const url = (): string => `https://127.0.0.1:${(server.address() as AddressInfo).port}/x`;

beforeAll(async () => {
  const { key, cert } = await issue({ type: "ec", names: ["127.0.0.1"] });
  roots = cert;
  server = createServer({ key, cert }, (request, response) => {
    if (request.method === "POST") request.socket.destroy();
    else response.end(request.method);
  });
  server.on("secureConnection", () => void connections++);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test("share a connection, and what stops them remembers none that is over", async () => {
  const stopping = new AbortController();
  const transport = new Transport({ roots, signal: stopping.signal });
  for (let i = 0; i < 3; i++)
    expect(await transport.send("GET", url())).toMatchObject({ status: 200, body: "GET" });
  expect(connections).toBe(1);
  await expect(transport.send("POST", url(), "{}")).rejects.toMatchObject({ code: "unreachable" });
  await eventually(() => getEventListeners(stopping.signal, "abort").length === 0);
  stopping.abort();
  await expect(transport.send("GET", url())).rejects.toBe(stopping.signal.reason);
  expect(connections).toBe(1);
});
