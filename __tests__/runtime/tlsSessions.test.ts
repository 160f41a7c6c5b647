import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { freePorts } from "../../testkit/ports.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { fixed, logsIn, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { nextEvent } from "../../testkit/waiting.js";

/** TLS sessions: who may resume which, over real handshakes with master and workers as processes. */

/** Listeners of one front end: the first is where sessions begin. */
const LISTENERS = ["first", "sameFiles", "otherPolicy", "otherCertificate"] as const;
type Name = (typeof LISTENERS)[number];

let folder: string;
let ports: Record<Name, number>;
let portico: Portico | undefined;
const at = (name: string): string => join(folder, name);

let one: Issued;
let renewed: Issued;
let two: Issued;

beforeAll(async () => {
  [one, renewed, two] = [await issue(), await issue(), await issue()];
});

beforeEach(async () => {
  folder = openFolder();
  const free = await freePorts(LISTENERS.length);
  ports = Object.fromEntries(LISTENERS.map((name, i) => [name, free[i]!])) as Record<Name, number>;
  use("one", one);
  use("two", two);
});

afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});

function use(name: string, { key, cert }: Issued): void {
  writeFileSync(at(`${name}.key`), key, { mode: 0o600 });
  writeFileSync(at(`${name}.pem`), cert);
}

function config(body = "one"): ProxyConfigInput {
  const listener = (name: Name, files: string, policy: "file-sync" | "mozilla-intermediate") =>
    loopback(name, ports[name], { certificate: at(`${files}.pem`), key: at(`${files}.key`), policy });
  return oneServer({
    workers: 2,
    logs: logsIn(folder),
    listeners: [
      listener("first", "one", "mozilla-intermediate"),
      listener("sameFiles", "one", "mozilla-intermediate"),
      // The weaker one: a ticket of it must not open the other.
      listener("otherPolicy", "one", "file-sync"),
      listener("otherCertificate", "two", "mozilla-intermediate"),
    ],
    routes: [fixed(body)],
  });
}

interface Handshake {
  readonly session: Buffer;
  readonly reused: boolean;
}

/** Asks for `/`; over TLS 1.3 tickets come with the first bytes after the handshake. */
async function handshake(port: number, maxVersion: tls.SecureVersion, session?: Buffer): Promise<Handshake> {
  const socket = tls.connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    maxVersion,
    session,
  });
  let newest: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => (newest = bytes));
  await once(socket, "secureConnect");
  const reused = socket.isSessionReused();
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await nextEvent(socket, "data");
  newest ??= socket.getSession();
  socket.destroy();
  return { session: newest!, reused };
}

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

test.each(VERSIONS)("a session over %s belongs to the listener that created it", async (version) => {
  portico = await Portico.start(config());
  const begin = version === "TLSv1.2" ? (["first", "otherPolicy"] as const) : (["first"] as const);
  for (const from of begin) {
    const { session, reused } = await handshake(ports[from], version);
    expect(reused).toBe(false);
    const outcomes: Record<string, boolean> = {};
    for (const to of LISTENERS) outcomes[to] = (await handshake(ports[to], version, session)).reused;
    const nowhere = Object.fromEntries(LISTENERS.map((name) => [name, false]));
    expect({ from, ...outcomes }).toEqual({ from, ...nowhere, [from]: true });
  }
});

test.each(VERSIONS)(
  "over %s it survives reloads, in every worker, until the certificate changes",
  async (version) => {
    portico = await Portico.start(config());
    const { session } = await handshake(ports.first, version);
    portico.rewrite(config("two"));
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    for (let i = 0; i < 6; i++) expect((await handshake(ports.first, version, session)).reused).toBe(true);
    portico.errors = "";
    use("one", renewed);
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    for (let i = 0; i < 6; i++) expect((await handshake(ports.first, version, session)).reused).toBe(false);
  },
);

/** The cipher that comes of an offer, the first one liked best. */
async function negotiated(port: number, version: tls.SecureVersion, ciphers: readonly string[]) {
  const socket = tls.connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    minVersion: version,
    maxVersion: version,
    ciphers: ciphers.join(":"),
  });
  await once(socket, "secureConnect");
  const { standardName } = socket.getCipher();
  socket.destroy();
  return standardName;
}

test("the policy decides whose order of ciphers applies", async () => {
  const policies = ["file-sync", "mozilla-intermediate", "mozilla-modern"] as const;
  const { listeners, ...rest } = config();
  const own = listeners.map((l, i) => ({ ...l, tls: { ...l.tls!, policy: policies[i % 3]! } }));
  portico = await Portico.start({ ...rest, listeners: own });
  const OLD = ["ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES256-GCM-SHA384"];
  const NEW = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"];
  const cases = [
    ["file-sync", "TLSv1.2", OLD, "server"],
    ["mozilla-intermediate", "TLSv1.2", OLD, "client"],
    ["mozilla-intermediate", "TLSv1.3", NEW, "client"],
    ["mozilla-modern", "TLSv1.3", NEW, "client"],
  ] as const;
  for (const [policy, version, ciphers, decides] of cases) {
    const { port } = own[policies.indexOf(policy)]!;
    const one = await negotiated(port, version, ciphers);
    const other = await negotiated(port, version, ciphers.toReversed());
    expect([policy, version, one === other ? "server" : "client"]).toEqual([policy, version, decides]);
  }
});
