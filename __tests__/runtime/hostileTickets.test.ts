import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { nextEvent } from "../../testkit/waiting.js";

/** Session tickets that a client changed, and that are older than they may be, to the deployed proxy. */

const LIFETIME_S = 2;

let frontEnd: FrontEnd;

beforeAll(async () => {
  const upstreams = { web: 1, fileServer: 1, webdav: 1 };
  frontEnd = await startFrontEnd({
    upstreams,
    change: (config) => ({
      ...config,
      listeners: config.listeners.map((listener) =>
        listener.tls === undefined ? listener : { ...listener, tls: { ...listener.tls, policy: POLICY } },
      ),
    }),
  });
});
afterAll(() => frontEnd.stop());

const POLICY = {
  minVersion: "TLSv1.2",
  maxVersion: "TLSv1.3",
  ciphers: "ECDHE+AESGCM:TLS_AES_128_GCM_SHA256",
  curves: ["X25519"],
  preferServerCiphers: true,
  sessionTimeoutSeconds: LIFETIME_S,
} as const;

interface Visit {
  readonly reused: boolean;
  readonly session: Buffer;
  readonly ticket: Buffer;
}

/** A handshake, and a request so that the tickets of TLS 1.3 have come. */
async function visit(version: tls.SecureVersion, session?: Buffer): Promise<Visit> {
  const socket = tls.connect({
    port: frontEnd.tlsPort,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    session,
  });
  let newest: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => (newest = bytes));
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  const reused = socket.isSessionReused();
  socket.write("GET /nothing HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const [response] = (await nextEvent(socket, "data")) as [Buffer];
  expect(response.toString("latin1")).toMatch(/^HTTP\/1\.1 /);
  const ticket = socket.getTLSTicket();
  socket.destroy();
  return { reused, session: newest ?? session!, ticket: ticket! };
}

describe.each(["TLSv1.2", "TLSv1.3"] as const)("%s", (version) => {
  test("a ticket that was changed anywhere begins a new session, and opens none", async () => {
    const { session, ticket } = await visit(version);
    const at = session.indexOf(ticket.subarray(0, 32));
    expect(at).toBeGreaterThan(0);
    const outcomes: [number, boolean][] = [];
    // The key's name, the initialization vector, what is encrypted, and its code (RFC 5077, 4).
    for (const byte of [0, 15, 16, 31, 32, 64, ticket.length - 33, ticket.length - 1]) {
      const changed = Buffer.from(session);
      changed[at + byte]! ^= 1;
      outcomes.push([byte, (await visit(version, changed)).reused]);
    }
    expect(outcomes.filter(([, reused]) => reused)).toEqual([]);
    // A fresh one: on a busy machine the first has ended by now.
    const control = await visit(version);
    expect((await visit(version, control.session)).reused).toBe(true);
  });

  test("a ticket opens no session after its lifetime; over TLS 1.2 a session that was resumed lives no longer", async () => {
    const first = await visit(version);
    let newest = first.session;
    const until = performance.now() + LIFETIME_S * 1_000;
    let resumed = 0;
    while (performance.now() < until - 300) {
      const next = await visit(version, newest);
      // On a busy machine its time may be over already; then this is another session.
      if (!next.reused) break;
      resumed++;
      newest = next.session;
      await sleep(100);
    }
    expect(resumed).toBeGreaterThan(0);
    await sleep(1_500);
    expect((await visit(version, first.session)).reused).toBe(false);
    // Over TLS 1.3 each connection gives new tickets (RFC 8446, 4.6.1).
    if (version === "TLSv1.2") expect((await visit(version, newest)).reused).toBe(false);
  });
});
