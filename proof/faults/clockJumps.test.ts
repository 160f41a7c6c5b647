import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import { FakedClock } from "../../testkit/fakedClock.js";
import { type FrontEnd, startFrontEnd } from "../../testkit/frontEnd.js";
import { freePort } from "../../testkit/ports.js";
import { RestartingWeb } from "../../testkit/restartingWeb.js";
import { nextEvent } from "../../testkit/waiting.js";

/** A wall clock that jumps, as with a wrong battery clock and NTP: what waits and what is remembered. */

/** A front end holds requests for an upstream that is away; decisions 4.6. */
const HOLD_MS = 5_000;

let folder: string;
let clock: FakedClock;
let web: RestartingWeb;
let frontEnd: FrontEnd;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-clock-"));
  clock = new FakedClock(folder);
  const port = await freePort();
  web = new RestartingWeb(port);
  await web.up();
  const upstreams = { web: port, fileServer: port, webdav: port };
  frontEnd = await startFrontEnd({ upstreams, under: clock.under });
});
afterAll(async () => {
  await frontEnd?.stop();
  await web?.kill();
  rmSync(folder, { recursive: true, force: true });
});

const get = async (): Promise<number> => (await fetch(`http://127.0.0.1:${frontEnd.plainPort}/sync/`)).status;

async function handshake(session?: Buffer): Promise<{ readonly reused: boolean; readonly session: Buffer }> {
  // Over TLS 1.2 the session is there with the handshake.
  const socket = tls.connect({
    ...{ host: "127.0.0.1", port: frontEnd.tlsPort, rejectUnauthorized: false },
    ...{ session, maxVersion: "TLSv1.2" },
  });
  await nextEvent(socket, "secureConnect");
  const seen = { reused: socket.isSessionReused(), session: socket.getSession()! };
  socket.write("GET /sync/ HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  expect(String((await nextEvent(socket, "data"))[0])).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
  return seen;
}

test.each(["+1d", "-1d", "+3000d", "-3000d", "+0"])("a jump to %s", async (by) => {
  // A ticket of before the jump costs a handshake at most, and the next one is remembered.
  const before = await handshake();
  clock.jump(by);
  const after = await handshake(before.session);
  expect((await handshake(after.session)).reused).toBe(true);

  // A request that is held over a jump is held no shorter, and no longer.
  await web.kill();
  const held = get();
  await sleep(500);
  clock.jump(by === "+0" ? "-1d" : "+0");
  await sleep(500);
  await web.up();
  expect(await held).toBe(200);
  await web.kill();
  const begun = performance.now();
  const inVain = get();
  await sleep(500);
  clock.jump(by);
  expect(await inVain).toBe(502);
  const heldMs = performance.now() - begun;
  // A clock that counts is a day or more off.
  expect([heldMs > HOLD_MS - 500, heldMs < 60_000]).toEqual([true, true]);
  await web.up();
  expect(await get()).toBe(200);
});
