import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect as connectPlain } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect, type TLSSocket } from "node:tls";
import { takeCopies } from "../../src/runtime/acme/copies.js";
import { type CopyLink, listenForCopies, sendCopies } from "../../src/runtime/acme/copyLink.js";
import type { WantedCertificate } from "../../src/model/serving.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { freePort } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/**
 * The other half of a pair was taken over: it has the key, and says what it likes. Whatever comes, the answer is short and
 * soon, the certificate here stays, nothing else is written, and an honest message is taken afterwards.
 */

const WANTED: WantedCertificate = {
  id: "ca-0123456789abcdef",
  names: ["a.example.net"],
  keyType: "ecdsa-p256",
  authority: { name: "ca", directory: "https://ca.example/dir", agreeToTerms: true },
  challenge: "http-01",
};
const { id, names } = WANTED;
const key = randomBytes(32);
const text = ({ key: own, cert }: Issued, ...chain: Issued[]): string =>
  own + cert + chain.map((one) => one.cert).join("");

let folder: string;
let port: number;
let close: () => Promise<void>;
let mine: string;
let newer: string;
let foreign: string;
beforeAll(async () => {
  const [ca, stranger] = [
    await issue({ name: "ca", type: "ec", ca: true }),
    await issue({ name: "ca", type: "ec", ca: true }),
  ];
  const of = async (issuer: Issued, from: number): Promise<string> =>
    text(await issue({ names, type: "ec", issuer, from }), issuer);
  [mine, newer, foreign] = [await of(ca, -9), await of(ca, -1), await of(stranger, -1)];
});
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-evil-half-"));
  mkdirSync(join(folder, "certificates", id), { recursive: true });
  writeFileSync(join(folder, "certificates", id, "certificate.pem"), mine);
  port = await freePort();
  const take = (message: unknown) => takeCopies(folder, [WANTED], message, Date.now());
  close = await listenForCopies(linkOf("127.0.0.2", "127.0.0.1"), take, () => undefined);
});
afterEach(async () => {
  await close();
  rmSync(folder, { recursive: true });
});

const linkOf = (own: string, peer: string): CopyLink => ({ own, peer, port, key });

async function open(): Promise<TLSSocket> {
  const socket = connect({
    socket: connectPlain({ port, host: "127.0.0.2", localAddress: "127.0.0.1" }),
    ciphers: "ECDHE-PSK-CHACHA20-POLY1305",
    maxVersion: "TLSv1.2",
    pskCallback: () => ({ psk: key, identity: "portico" }),
    checkServerIdentity: () => undefined,
  });
  socket.on("error", () => undefined);
  await once(socket, "secureConnect");
  return socket;
}

/** @returns how many bytes came back until the connection ended */
async function said(message: string): Promise<number> {
  const socket = await open();
  let bytes = 0;
  socket.on("data", (chunk: Buffer) => (bytes += chunk.length));
  socket.write(message);
  await once(socket, "close");
  return bytes;
}

const written = (): string[] => readdirSync(folder, { recursive: true }).map(String).sort();
const here = (): string => readFileSync(join(folder, "certificates", id, "certificate.pem"), "utf8");
const pairs = (count: number, value: (i: number) => string, name = (i: number) => `ca-${i}`): string =>
  Array.from({ length: count }, (_, i) => `${JSON.stringify(name(i))}:${JSON.stringify(value(i))}`).join();
const certificates = (inner: string): string => `{"accounts":{},"certificates":{${inner}}}\n`;

test.each<[string, () => string]>([
  ["thousands of certificates that nobody wants", () => certificates(pairs(4_900, () => foreign))],
  [
    "as many with long names",
    () =>
      certificates(
        pairs(
          4_900,
          () => "x",
          (i) => `${i}${"y".repeat(2_000)}`,
        ),
      ),
  ],
  [
    "one name twice, the foreign one last",
    () =>
      certificates(
        pairs(
          2,
          (i) => [newer, foreign][i]!,
          () => id,
        ),
      ),
  ],
  [
    "one name twice, with no certificate last",
    () =>
      certificates(
        pairs(
          2,
          (i) => [newer, "x"][i]!,
          () => id,
        ),
      ),
  ],
  [
    "names that are paths",
    () =>
      certificates(
        pairs(
          3,
          () => foreign,
          (i) => ["../x", `../${id}`, "/etc/x"][i]!,
        ),
      ),
  ],
  [
    "names that every object has",
    () =>
      certificates(
        pairs(
          2,
          () => foreign,
          (i) => ["__proto__", "toString"][i]!,
        ),
      ),
  ],
  [
    "a chain of a thousand",
    () =>
      certificates(
        pairs(
          1,
          () => mine + foreign.repeat(1_000),
          () => id,
        ),
      ),
  ],
  ["lists in the place of texts", () => `{"accounts":[],"certificates":{"${id}":["x"]}}\n`],
  ["more values than any host has", () => certificates(pairs(20_000, () => "x"))],
])("%s", async (_, message) => {
  const before = written();
  const begun = performance.now();
  expect(await said(message())).toBeLessThan(128 * 1_024);
  expect(performance.now() - begun).toBeLessThan(10_000);
  expect([here(), written()]).toEqual([mine, before]);
  const honest = { accounts: {}, certificates: { [id]: newer } };
  expect(await sendCopies(linkOf("127.0.0.1", "127.0.0.2"), honest)).toEqual({
    taken: [`certificate for ${names[0]}`],
    refused: [],
  });
  expect(here().replaceAll("\n", "")).toBe(newer.replaceAll("\n", ""));
});

test("connections that say nothing, or a byte now and then, keep no honest one out", async () => {
  const silent: TLSSocket[] = [];
  for (let i = 0; i < 8; i++) silent.push(await open());
  const drip = setInterval(() => silent.forEach((one) => void (one.writable && one.write(" "))), 20);
  const honest = { accounts: {}, certificates: { [id]: newer } };
  const { taken } = await sendCopies(linkOf("127.0.0.1", "127.0.0.2"), honest);
  expect(taken).toHaveLength(1);
  await eventually(
    () => silent.filter(({ destroyed }) => destroyed).length >= 5,
    "for the oldest to give way",
  );
  clearInterval(drip);
  silent.forEach((one) => one.destroy());
});

test("records of one byte cost no more than the message is long", async () => {
  const socket = await open();
  socket.resume();
  const before = process.memoryUsage().arrayBuffers;
  const message = certificates(
    pairs(
      1,
      () => "x".repeat(20_000),
      () => id,
    ),
  );
  for (const byte of message) socket.write(byte);
  await once(socket, "close");
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(64 * 1_048_576);
  expect(here()).toBe(mine);
});
