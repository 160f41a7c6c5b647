import { X509Certificate } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { everywhere, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { TestCa } from "./ca.js";
import { secureContext } from "../../testkit/tlsClient.js";

/** A whole front end that gets its certificates while it serves. */

let ca: TestCa;
let portico: Portico | undefined;
beforeAll(async () => (ca = await TestCa.start()));
afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});
afterAll(() => ca.stop());

/** How often each is renewed: with the first time as often as one week's limit of an authority allows. */
const RENEWALS = 3;

const nameOf = (i: number): string => `n${i}.example.net`;

function configOf(
  folder: string,
  challenge: "http-01" | "tls-alpn-01",
  certificates: number,
): ProxyConfigInput {
  const acme = (i: number) => ({ acme: { authority: "ca", names: [nameOf(i)] } });
  const further = Array.from({ length: certificates - 1 }, (_, i) => acme(i + 1));
  return oneServer({
    workers: 2,
    logs: { access: "off", error: { path: join(folder, "error.log") } },
    certificateAuthorities: [
      {
        name: "ca",
        directory: ca.directory,
        email: "admin@example.org",
        agreeToTerms: true,
        challenge,
        roots: ca.roots,
      },
    ],
    listeners: [
      loopback("http", ca.httpPort),
      loopback("https", ca.tlsPort, { ...acme(0), certificates: further, policy: "mozilla-intermediate" }),
    ],
    // A redirect on both listeners: a challenge gets a response before it.
    routes: [everywhere({ type: "redirect", status: 308, host: "elsewhere.example.net" })],
  });
}

/** One request; rejects if there is no whole response. */
async function ask(socket: tls.TLSSocket, name: string): Promise<void> {
  socket.write(`GET / HTTP/1.1\r\nHost: ${name}\r\n\r\n`);
  let text = "";
  await new Promise<void>((resolve, reject) => {
    const end = (): void => reject(new Error(`cut off after ${JSON.stringify(text)}`));
    const read = (chunk: Buffer): void => {
      text += chunk.toString("latin1");
      const [head = "", body] = text.split("\r\n\r\n");
      if (body === undefined || body.length < Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)) return;
      socket.off("data", read).off("close", end);
      resolve();
    };
    socket.on("data", read).on("close", end);
  });
  if (!text.startsWith("HTTP/1.1 308")) throw new Error(text);
}

function connect(name: string): Promise<tls.TLSSocket> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port: ca.tlsPort, servername: name, rejectUnauthorized: false };
    const socket = tls.connect({ ...options, secureContext }, () => resolve(socket));
    socket.on("error", reject);
  });
}

test.each([
  ["http-01", 50],
  ["tls-alpn-01", 5],
] as const)(
  "by %s, %d certificates replace temporary ones and are renewed under load: no request fails, no connection is cut",
  async (challenge, certificates) => {
    const folder = openFolder();
    const state = join(folder, "state");
    const env = { STATE_DIRECTORY: state, RUNTIME_DIRECTORY: folder };
    portico = await Portico.start(configOf(folder, challenge, certificates), { env });
    if (portico.ended) throw new Error(portico.errors);
    const kept = await Promise.all([0, 1, 2, 3].map((i) => connect(nameOf(i))));
    let requests = 0;
    let over = false;
    const failures: string[] = [];
    const load = async (ofOne: () => Promise<void>): Promise<void> => {
      while (!over) {
        await ofOne().then(
          () => (requests += 1),
          (error: Error) => failures.push(error.message),
        );
        // A connection is closed after its thousandth request, by design.
        await sleep(250);
      }
    };
    const running = [
      ...kept.map((socket, i) => load(() => ask(socket, nameOf(i)))),
      ...[0, 1].map((offset) =>
        load(async () => {
          const name = nameOf((requests + offset) % certificates);
          const socket = await connect(name);
          await ask(socket, name);
          socket.destroy();
        }),
      ),
    ];
    const log = (): string =>
      existsSync(join(folder, "error.log")) ? readFileSync(join(folder, "error.log"), "utf8") : "";
    const issued = (): number => log().split(": issued by Pebble").length - 1;
    await eventually(() => issued() === certificates, "for all certificates", {
      seen: () => `${issued()}: ${log().slice(-1_000)} ${portico!.errors.slice(-1_000)}`,
      ms: 100_000,
      everyMs: 200,
    });
    const first = issued();
    for (let renewal = 1; renewal <= RENEWALS; renewal++) {
      const outcome = await askMaster(join(folder, "control.sock"), { command: "renew" }, 100_000);
      expect(outcome).toMatchObject({ ok: true });
      await eventually(() => issued() === first * (renewal + 1), "for the lines of the log", {
        everyMs: 50,
      });
    }
    const isNew = async (i: number): Promise<boolean> => {
      const socket = await connect(nameOf(i));
      const certificate = new X509Certificate(socket.getPeerCertificate().raw);
      socket.destroy();
      return certificate.issuer.includes("Pebble") && certificate.checkHost(nameOf(i)) !== undefined;
    };
    for (let i = 0; i < certificates; i++) await eventually(() => isNew(i), `for ${nameOf(i)}`);
    over = true;
    await Promise.all(running);
    for (const socket of kept) socket.destroy();
    expect(failures).toEqual([]);
    expect(requests).toBeGreaterThan(certificates);
  },
);
