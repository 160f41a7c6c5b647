import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import * as http2 from "node:http2";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { handOver } from "../../src/runtime/load/credentialSet.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { issue, type Issued } from "../../testkit/certificates.js";
import { mountSecret } from "../../testkit/mountedSecret.js";
import {
  alive,
  checkAsNobody,
  installedRuntime,
  killAll,
  openFolder,
  Portico,
  processes,
} from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";

/** TLS sessions that several front ends share by a secret, over real handshakes with each as processes of its own. */

const LISTENERS = ["first", "otherPolicy", "otherCertificate"] as const;
type Ports = Record<(typeof LISTENERS)[number], number>;

let folder: string;
let one: Ports;
let two: Ports;
const running: Portico[] = [];
const at = (name: string): string => join(folder, name);

const pairs: Issued[] = [];
beforeAll(async () => {
  for (let i = 0; i < 2; i++) pairs.push(await issue({ type: "rsa" }));
});

beforeEach(async () => {
  folder = openFolder();
  const free = await freePorts(6);
  const named = (ports: number[]): Ports =>
    Object.fromEntries(LISTENERS.map((name, i) => [name, ports[i]!])) as Ports;
  [one, two] = [named(free.slice(0, 3)), named(free.slice(3))];
  for (const [i, name] of ["a", "b"].entries()) {
    writeFileSync(at(`${name}.key`), pairs[i]!.key, { mode: 0o600 });
    writeFileSync(at(`${name}.pem`), pairs[i]!.cert);
  }
});

afterEach(async () => {
  // Those that replaced the one that was started.
  for (const pid of processes("master")) process.kill(pid, "SIGTERM");
  await Promise.all(running.splice(0).map((portico) => portico.stop()));
  killAll();
});

/** A new secret in a file, made as docs/certificates.md says. */
function secret(name: string): string {
  const page = readFileSync(join(__dirname, "../../docs/certificates.md"), "utf8");
  const [command] = /^\(umask 077; openssl rand .*?\)/m.exec(page)!;
  execFileSync("sh", ["-c", command.replace("/etc/portico/ticket-secret", at(name))]);
  return at(name);
}

function config(ports: Ports, ticketKeys: ProxyConfigInput["ticketKeys"], body = "one"): ProxyConfigInput {
  const listener = (name: keyof Ports, files: string, policy: "mozilla-intermediate" | "file-sync") =>
    loopback(name, ports[name], { certificate: at(`${files}.pem`), key: at(`${files}.key`), policy });
  return oneServer({
    // Whether workers differ from each other, one of two front ends shows.
    workers: ports === one ? 2 : 1,
    ticketKeys,
    logs: { error: { path: at(`error-${ports.first}.log`) } },
    listeners: [
      listener("first", "a", "mozilla-intermediate"),
      listener("otherPolicy", "a", "file-sync"),
      listener("otherCertificate", "b", "mozilla-intermediate"),
    ],
    routes: [fixed(body)],
  });
}

async function start(
  ports: Ports,
  ticketKeys: ProxyConfigInput["ticketKeys"],
  env: NodeJS.ProcessEnv = {},
): Promise<Portico> {
  const portico = await Portico.start(config(ports, ticketKeys), { env });
  running.push(portico);
  expect(portico.errors).toBe("");
  return portico;
}

interface Way {
  readonly version: tls.SecureVersion;
  readonly protocol: "h2" | "http/1.1";
}

const WAYS: readonly Way[] = (["TLSv1.2", "TLSv1.3"] as const).flatMap((version) =>
  (["h2", "http/1.1"] as const).map((protocol) => ({ version, protocol })),
);
const [, WAY] = WAYS as [Way, Way];

/** One for all of a version: making it costs more than the rest of a connection. */
const CONTEXTS = Object.fromEntries(
  WAYS.map(({ version }) => [version, tls.createSecureContext({ minVersion: version, maxVersion: version })]),
);

/** One request; the session is the newest that the server gave, as over TLS 1.3 tickets come after the handshake. */
async function visit(port: number, { version, protocol }: Way, session?: Buffer) {
  const socket = tls.connect({
    port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: [protocol],
    secureContext: CONTEXTS[version],
    session,
  });
  let newest: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => (newest = bytes));
  await once(socket, "secureConnect");
  expect(socket.alpnProtocol).toBe(protocol);
  const reused = socket.isSessionReused();
  if (protocol === "h2") {
    const client = http2.connect("https://localhost", { createConnection: () => socket });
    await once(client.request({ ":path": "/" }).resume(), "end");
  } else {
    socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    await nextEvent(socket, "data");
  }
  newest ??= socket.getSession();
  socket.destroy();
  return { session: newest!, reused };
}

/** Whether each of several visits resumes it: they reach both workers, where there are two. */
async function resumed(port: number, session: Buffer, way = WAY): Promise<boolean> {
  const outcomes: boolean[] = [];
  for (let i = 0; i < 4; i++) outcomes.push((await visit(port, way, session)).reused);
  expect(new Set(outcomes).size).toBe(1);
  return outcomes[0]!;
}

test("two front ends with the same secret resume each other's sessions", async () => {
  const shared = { file: secret("shared") };
  await start(one, shared);
  await start(two, shared);
  for (const way of WAYS) {
    const { session, reused } = await visit(one.first, way);
    expect([way, reused]).toEqual([way, false]);
    expect([way, await resumed(two.first, session, way)]).toEqual([way, true]);
    const back = await visit(two.first, way);
    expect([way, await resumed(one.first, back.session, way)]).toEqual([way, true]);
    // What separates listeners of one front end separates those of two.
    const others =
      way.version === "TLSv1.2"
        ? (["otherPolicy", "otherCertificate"] as const)
        : (["otherCertificate"] as const);
    for (const name of others)
      expect([way, name, await resumed(two[name], session, way)]).toEqual([way, name, false]);
  }
});

test("two front ends with different secrets resume no session of each other", async () => {
  await start(one, { file: secret("shared") });
  await start(two, { file: secret("another") });
  const { session } = await visit(one.first, WAY);
  for (const way of WAYS) {
    const mine = await visit(one.first, way);
    expect([way, await resumed(two.first, mine.session, way)]).toEqual([way, false]);
  }
  expect(await resumed(one.first, session)).toBe(true);
});

test("without a secret a front end resumes no session of another one", async () => {
  await start(one, undefined);
  await start(two, undefined);
  const { session } = await visit(one.first, WAY);
  expect(await resumed(one.first, session)).toBe(true);
  expect(await resumed(two.first, session)).toBe(false);
});

test("own keys change in their time, however often the runtime is replaced", async () => {
  const runtime = await installedRuntime((code) => code.replace(/OWN_MS = 12 \* \w+/, "OWN_MS = 8000"));
  const began = performance.now();
  const portico = await Portico.start({ ...config(one, undefined), workers: 1 }, { runtime });
  running.push(portico);
  const { session } = await visit(one.first, WAY);
  while (performance.now() - began < 9_000) {
    const [master] = processes("master");
    process.kill(master!, "SIGUSR2");
    await eventually(() => !alive(master!), "for the old master to go");
    await sleep(2_000);
  }
  await eventually(async () => !(await visit(one.first, WAY, session)).reused, "for the key to be gone");
});

test("all change keys when a period ends: older sessions begin anew, newer ones are shared", async () => {
  const rotateMs = 4_000;
  const shared = { file: secret("shared"), rotateMs };
  await Promise.all([start(one, shared), start(two, shared)]);
  for (let period = 0; period < 2; period++) {
    await sleep(rotateMs - (Date.now() % rotateMs));
    let session: Buffer | undefined;
    // A visit may fall on both sides of the change.
    await eventually(async () => {
      ({ session } = await visit(one.first, WAY));
      return (await visit(two.first, WAY, session)).reused;
    }, "to share a session");
    await sleep(rotateMs - (Date.now() % rotateMs));
    // Each has a timer of its own, and each of its workers hears of it by itself.
    const over = async (port: number): Promise<boolean> => {
      for (let i = 0; i < 4; i++) if ((await visit(port, WAY, session)).reused) return false;
      return true;
    };
    for (const { first } of [one, two]) await eventually(() => over(first), "for the period to end");
  }
});

test("a session is resumed after a reload, an upgrade and a restart", async () => {
  const shared = { file: secret("shared") };
  let portico = await start(one, shared);
  const { session } = await visit(one.first, WAY);
  portico.rewrite(config(one, shared, "two"));
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(await resumed(one.first, session)).toBe(true);
  portico.signal("SIGUSR2");
  await portico.says(/a new master, process \d+, has taken over/);
  expect(await resumed(one.first, session)).toBe(true);
  for (const pid of processes("master")) process.kill(pid, "SIGTERM");
  await portico.gone;
  portico = await start(one, shared);
  expect(await resumed(one.first, session)).toBe(true);
  // Without the secret the front end goes on with keys of its own.
  portico.rewrite(config(one, undefined));
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  expect(await resumed(one.first, session)).toBe(false);
});

const mount = (text: string): void => mountSecret(at("secret"), { tickets: text }, 0o400);

test("a master that was replaced and still has clients reports no change", async () => {
  mount(SECRETS[0]!);
  const portico = await start(one, { file: at("secret/tickets") });
  const client = tls.connect({ port: one.first, host: "127.0.0.1", rejectUnauthorized: false });
  await once(client, "secureConnect");
  client.on("error", () => undefined).write("GET / HTTP/1.1\r\n");
  await sleep(500);
  portico.signal("SIGUSR2");
  await portico.says(/a new master, process \d+, has taken over/);
  mount(SECRETS[1]!);
  await portico.says(/changed on disk and is in use/);
  await sleep(4_000);
  expect(processes("master")).toHaveLength(2);
  client.destroy();
  expect(portico.errors.match(/changed on disk/g)).toHaveLength(1);
  for (const pid of processes("master")) process.kill(pid, "SIGTERM");
  await portico.gone;
});

const asRoot = process.getuid!() === 0 ? test : test.skip;

const SECRETS = ["first", "second"].map((text) => Buffer.from(text.padEnd(40, "!")).toString("base64"));

test("a changed file is taken without a reload, a bad one is refused, and the secret is never shown", async () => {
  mount(SECRETS[0]!);
  const shared = { file: at("secret/tickets") };
  const porticos = [await start(one, shared), await start(two, shared)];
  const { session } = await visit(one.first, WAY);
  expect(await resumed(two.first, session)).toBe(true);
  const bad = Buffer.from("too short to be used").toString("base64");
  mount(bad);
  for (const portico of porticos) await portico.says(/changed on disk; the new secret is refused/);
  expect(await resumed(two.first, session)).toBe(true);
  mount(SECRETS[1]!);
  for (const portico of porticos) await portico.says(/changed on disk and is in use/);
  await eventually(async () => !(await visit(one.first, WAY, session)).reused, "for the new secret");
  const newer = await visit(one.first, WAY);
  await eventually(async () => (await visit(two.first, WAY, newer.session)).reused, "to share it");
  expect(await resumed(two.first, session)).toBe(false);
  // A look later, each change was reported once.
  await sleep(4_000);
  const label = `ticketKeys.file (${at("secret/tickets")})`;
  for (const [i, portico] of porticos.entries()) {
    const refused = `${label} changed on disk; the new secret is refused, and the previous one stays in use: ${label}: has only 20 bytes [files.bad-ticket-secret]; Write a new secret into the file: openssl rand -base64 48`;
    expect(portico.errors.split("\n")).toEqual([
      `portico: ${refused}`,
      `portico: ${label} changed on disk and is in use`,
      "",
    ]);
    const log = readFileSync(at(`error-${[one, two][i]!.first}.log`), "latin1");
    expect(log).toMatch(
      /\[warn\] .* changed on disk; the new secret is refused[^]*\[info\] .* changed on disk and is in use/,
    );
    for (const hidden of [...SECRETS, bad, "first!", "second!", "too short to"])
      expect(log + portico.errors + portico.output).not.toContain(hidden);
  }
});

asRoot("as a credential it is taken from systemd at the start, and from a reload later", async () => {
  // The service itself may not read the file.
  const file = "/nowhere/ticket-secret";
  const env = { CREDENTIALS_DIRECTORY: at("start"), PORTICO_CREDENTIALS: at("handed-over") };
  mkdirSync(env.CREDENTIALS_DIRECTORY);
  writeFileSync(join(env.CREDENTIALS_DIRECTORY, "ticket-secret"), SECRETS[0]!, { mode: 0o400 });
  for (const [i, text] of SECRETS.entries()) writeFileSync(at(`secret-${i}`), text, { mode: 0o400 });
  const portico = await start(one, { file }, env);
  const beside = await start(two, { file: at("secret-0") });
  const { session } = await visit(one.first, WAY);
  expect(await resumed(two.first, session)).toBe(true);
  await beside.stop();
  await start(two, { file: at("secret-1") });
  const source = { name: "ticket-secret", file: at("secret-1") };
  await handOver(env.PORTICO_CREDENTIALS, [source], { uid: 0, gid: 0 });
  portico.signal("SIGHUP");
  await portico.says(/configuration reloaded/);
  const newer = await visit(one.first, WAY);
  expect(newer.reused).toBe(false);
  expect(await resumed(two.first, newer.session)).toBe(true);
  expect(await resumed(one.first, session)).toBe(false);
});

test("a secret that cannot be used is refused, and one that others can read is a warning", async () => {
  const file = at("tickets");
  const found = async (text: string | undefined, mode = 0o400): Promise<string> => {
    rmSync(file, { force: true });
    if (text !== undefined) writeFileSync(file, text);
    if (text !== undefined) chmodSync(file, mode);
    const portico = await Portico.start({ ...config(one, { file }), workers: 1 });
    await portico.stop();
    const [first = ""] = portico.errors.split("\n");
    return first.replace("portico: warning: ", "").replaceAll(file, "FILE");
  };
  const [good] = SECRETS as [string];
  const about = "ticketKeys.file (FILE)";
  expect(await found(undefined)).toBe(`${about}: does not exist [files.unreadable]`);
  expect(await found(" \n")).toBe(`${about}: is empty [files.bad-ticket-secret]`);
  expect(await found("not a secret")).toBe(`${about}: is not base64 text [files.bad-ticket-secret]`);
  expect(await found("c2hvcnQ=\n")).toBe(`${about}: has only 5 bytes [files.bad-ticket-secret]`);
  expect(await found(`${good.slice(0, 20)}\n${good.slice(20)}\n`)).toBe("");
  expect(await found(good, 0o444)).toBe(
    `${about}: can be read or written by every user of this host (mode 0444) [files.key-exposed]`,
  );
});

asRoot("who reads a secret or a key by its group is not warned of that", async () => {
  const [certificate, key, file] = [at("a.pem"), at("a.key"), secret("shared")];
  const { listeners, virtualServers, ...rest } = config(one, { file });
  const only = { ...listeners[0]!, tls: { certificate, key, policy: "mozilla-intermediate" as const } };
  const servers = virtualServers.map((server) => ({ ...server, listeners: ["first"] }));
  writeFileSync(
    at("portico.json"),
    JSON.stringify({ ...rest, logs: {}, listeners: [only], virtualServers: servers }),
  );
  for (const one of [key, file]) chownSync(one, 0, 65_534);
  for (const one of [key, file]) chmodSync(one, 0o440);
  expect(await checkAsNobody(at("portico.json"))).toBe("");
  for (const one of [key, file]) chmodSync(one, 0o460);
  const written = await checkAsNobody(at("portico.json"));
  expect(written.match(/can be read or written by its group \(mode 0460\)/g)).toHaveLength(2);
  for (const one of [key, file]) chmodSync(one, 0o400);
  expect(await checkAsNobody(at("portico.json"))).toMatch(/ticketKeys\.file \(.*\): cannot be read/);
});
