import type { X509Certificate } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { eventually } from "../../testkit/waiting.js";
import { TestCa } from "./ca.js";
import { secureContext } from "../../testkit/tlsClient.js";

/**
 * Two hundred certificates on one listener: half of them files, of which each second one is a wildcard, half of them by
 * ACME. They are renewed one after the other while clients connect.
 */

const FILES = 100;
const ACME = 100;
/** Of each kind, in a round. */
const RENEWED = 20;
const ROUNDS = 3;

const isWildcard = (i: number): boolean => i % 2 === 1;
const namesOf = (i: number): string[] => [isWildcard(i) ? `*.w${i}.example.org` : `f${i}.example.org`];
/** What a client asks for. */
const askedOf = (i: number): string => (isWildcard(i) ? `any.w${i}.example.org` : `f${i}.example.org`);
const acmeName = (i: number): string => `n${i}.example.net`;

let ca: TestCa;
let folder: string;
let portico: Portico;
beforeAll(async () => {
  ca = await TestCa.start();
  folder = openFolder();
  for (const name of ["state", "run", "tls"]) mkdirSync(join(folder, name));
  for (let i = 0; i < FILES; i++) await certify(i, 1);
});
afterAll(async () => {
  await portico?.stop();
  await ca.stop();
});

const file = (i: number, part: string): string => join(folder, `tls/${part}${i}.pem`);

async function certify(i: number, version: number): Promise<void> {
  const { key, cert } = await issue({ type: "ec", names: namesOf(i), name: `file ${i} version ${version}` });
  for (const [part, text] of Object.entries({ key, cert })) {
    writeFileSync(file(i, `next-${part}`), text, { mode: 0o600 });
    renameSync(file(i, `next-${part}`), file(i, part));
  }
}

function config(): ProxyConfigInput {
  const files = Array.from({ length: FILES }, (_, i) => ({
    certificate: file(i, "cert"),
    key: file(i, "key"),
  }));
  const acme = Array.from({ length: ACME }, (_, i) => ({ acme: { authority: "ca", names: [acmeName(i)] } }));
  const [first, ...further] = files;
  return oneServer({
    workers: 2,
    logs: { access: "off", error: { path: join(folder, "error.log") } },
    certificateAuthorities: [
      {
        name: "ca",
        directory: ca.directory,
        agreeToTerms: true,
        challenge: "http-01",
        roots: ca.roots,
        profile: "default",
      },
    ],
    listeners: [
      loopback("http", ca.httpPort),
      loopback("https", ca.tlsPort, {
        ...first!,
        certificates: [...further, ...acme],
        policy: "mozilla-intermediate",
      }),
    ],
    routes: [fixed("ok")],
  });
}

interface Seen {
  readonly certificate: X509Certificate;
  readonly ms: number;
}

/** A handshake and a request. */
function ask(servername: string): Promise<Seen> {
  return new Promise((resolve, reject) => {
    const began = performance.now();
    let ms = 0;
    const socket = tls.connect({
      host: "127.0.0.1",
      port: ca.tlsPort,
      servername,
      rejectUnauthorized: false,
      secureContext,
    });
    socket
      .on("secureConnect", () => {
        ms = performance.now() - began;
        socket.write(`GET / HTTP/1.1\r\nHost: ${servername}\r\nConnection: close\r\n\r\n`);
      })
      .on("data", (response: Buffer) => {
        const certificate = socket.getPeerX509Certificate()!;
        socket.destroy();
        if (response.toString("latin1").startsWith("HTTP/1.1 200")) resolve({ certificate, ms });
        else reject(new Error(response.toString("latin1")));
      })
      .on("error", reject)
      .on("close", () => reject(new Error("cut off")));
  });
}

const log = (): string => readFileSync(join(folder, "error.log"), "utf8");
const count = (text: string): number => log().split(text).length - 1;

const residentMiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024;

const at = (times: readonly number[], share: number): number =>
  [...times].sort((a, b) => a - b)[Math.floor(times.length * share)]!;

test("each name gets its own, handshakes stay short and memory bounded while they are renewed", async () => {
  const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: join(folder, "run") };
  portico = await Portico.start(config(), { env });
  if (portico.ended) throw new Error(portico.errors);
  await eventually(() => count(": issued by Pebble") === ACME, "for all certificates", {
    seen: () => log().slice(-1_000),
    ms: 120_000,
    everyMs: 200,
  });
  const workers = portico.workers();
  const all = [
    ...Array.from({ length: FILES }, (_, i) => askedOf(i)),
    ...Array.from({ length: ACME }, (_, i) => acmeName(i)),
  ];
  const quiet: number[] = [];
  for (const name of all) {
    const { certificate, ms } = await ask(name);
    expect(certificate.checkHost(name)).toBeDefined();
    quiet.push(ms);
  }

  const busy: number[] = [];
  const failures: string[] = [];
  let over = false;
  const load = async (offset: number): Promise<void> => {
    for (let i = offset; !over; i += 7) {
      await ask(all[i % all.length]!).then(
        ({ ms }) => busy.push(ms),
        (error: Error) => failures.push(error.message),
      );
      await sleep(100);
    }
  };
  const loads = [load(0), load(3)];
  const resident: number[] = [];
  for (let round = 1; round <= ROUNDS; round++) {
    for (let i = 0; i < RENEWED; i++) await certify(i, round + 1);
    for (let i = 0; i < RENEWED; i++) {
      const request = { command: "renew", name: acmeName(i) } as const;
      expect(await askMaster(join(folder, "run/control.sock"), request, 60_000)).toMatchObject({ ok: true });
    }
    const renewed = (): number => count(" was renewed, and is valid until");
    await eventually(() => renewed() === round * RENEWED, "for all files", { everyMs: 200 });
    resident.push(Math.max(...workers.map(residentMiB)));
  }
  over = true;
  await Promise.all(loads);

  expect(failures).toEqual([]);
  expect(portico.workers()).toEqual(workers);
  for (let i = 0; i < FILES; i++) {
    const { subject } = (await ask(askedOf(i))).certificate;
    expect(subject).toBe(`CN=file ${i} version ${i < RENEWED ? ROUNDS + 1 : 1}`);
  }
  for (let i = 0; i < ACME; i++) {
    const { certificate } = await ask(acmeName(i));
    expect(certificate.checkHost(acmeName(i))).toBeDefined();
    expect(certificate.issuer).toContain("Pebble");
  }
  // A renewal takes a worker two milliseconds: most handshakes do not meet one.
  expect(busy.length).toBeGreaterThan(100);
  expect(at(busy, 0.5)).toBeLessThan(5 * at(quiet, 0.5) + 50);
  // One more of all 200 in a worker would be several times as much.
  expect(resident.at(-1)! - resident[0]!).toBeLessThan(40);
});
