import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import { randomBytes, scryptSync, X509Certificate } from "node:crypto";
import { once } from "node:events";
import { connect as connectHttp2, type ClientHttp2Session } from "node:http2";
import { readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import * as net from "node:net";
import * as tls from "node:tls";
import type { ProxyConfigInput, VirtualServerInput } from "../../src/model/index.js";
import { hashText } from "../../src/model/serving.js";
import { CLIENTS_ONLY, issue, type Issued, revocationList } from "../../testkit/certificates.js";
import { ask } from "../../testkit/http2Session.js";
import { everywhere, logsIn, loopback, writeCertificate } from "../../testkit/oneServer.js";
import { Accepted, isComplete, parseResponse, responding, RawUpstream } from "../../testkit/peers.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Certificates of clients, over real handshakes with master and workers as processes, as strangers would try to get around them. */

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;
const PROTOCOLS = ["http/1.1", "h2"] as const;
const WAYS = VERSIONS.flatMap((version) => PROTOCOLS.map((protocol) => [protocol, version] as const));

let folder: string;
let port: number;
let announcedPort: number;
let upstream: RawUpstream;
let portico: Portico;
const at = (name: string): string => join(folder, name);

let ca: Issued;
let otherCa: Issued;
let middle: Issued;
let server: Issued;
const clients: Record<string, Issued> = {};
const SERIAL = Buffer.from([0x00, 0x9f, 0x01, 0x02]);

beforeAll(async () => {
  const ec = { type: "ec" } as const;
  ca = await issue({ ...ec, name: "Clients", ca: true });
  otherCa = await issue({ ...ec, name: "Others", ca: true });
  server = await issue({ ...ec, names: ["closed.example", "open.example"] });
  const of = async (issuer: Issued, name: string, more = {}): Promise<Issued> =>
    issue({ ...ec, name, issuer, extensions: [CLIENTS_ONLY], ...more });
  clients.alice = await of(ca, "alice");
  clients.bob = await of(ca, "bob", { names: ["bob.example"] });
  clients.lost = await of(ca, "lost", { serial: SERIAL });
  clients.old = await of(ca, "old", { from: -3, to: -1 });
  clients.early = await of(ca, "early", { from: 1 });
  clients.stranger = await of(otherCa, "alice");
  clients.self = await issue({ ...ec, name: "alice" });
  clients.impostor = await issue({ ...ec, name: "alice", issuer: { ...otherCa, name: "Clients" } });
  middle = await of(ca, "Middle", { ca: true, extensions: [] });
  const below = await of(middle, "below");
  clients.below = { ...below, cert: below.cert + middle.cert };
  const notCa = await of(clients.alice, "carol");
  clients.signedByClient = { ...notCa, cert: notCa.cert + clients.alice.cert };
});

beforeEach(async () => {
  folder = openFolder();
  [port, announcedPort] = (await freePorts(2)) as [number, number];
  upstream = await new RawUpstream(responding("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")).listen();
  writeFileSync(at("ca.pem"), ca.cert);
  writeFileSync(at("other.pem"), otherCa.cert);
  writeFileSync(at("chain.pem"), middle.cert + ca.cert);
  writeFileSync(at("crl.pem"), revocationList(ca));
  writeFileSync(at("users"), `alice:${ALICE}\n`, { mode: 0o600 });
});

afterEach(async () => {
  await portico.stop();
  await upstream.close();
});

const scrypt = (password: string): string => {
  const unpadded = (bytes: Buffer): string => bytes.toString("base64").replace(/=+$/, "");
  const salt = "salt of sixteen.";
  const hash = scryptSync(password, salt, 32, { N: 2 ** 10, r: 8, p: 1 });
  return hashText({
    ...{ kind: "scrypt", ln: 10, r: 8, p: 1 },
    ...{ salt: unpadded(Buffer.from(salt)), hash: unpadded(hash) },
  });
};
const ALICE = scrypt("wonderland");

const proxied = { type: "proxy", upstream: "web" } as const;

function config(more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
  const files = { ...writeCertificate(folder, server), policy: "mozilla-intermediate" } as const;
  const listeners = ["https", "announced"];
  const closed = { ca: at("ca.pem"), crl: at("crl.pem") };
  const of = (
    name: string,
    clientCertificate?: VirtualServerInput["clientCertificate"],
  ): VirtualServerInput => ({
    name,
    serverNames: [`${name}.example`],
    listeners,
    ...(clientCertificate === undefined ? {} : { clientCertificate }),
    routes: [everywhere(proxied)],
  });
  return {
    version: 1,
    workers: 2,
    logs: logsIn(folder),
    listeners: [
      loopback("https", port, files),
      { ...loopback("announced", announcedPort, files), proxyProtocol: { from: ["127.0.0.1"] } },
    ],
    accessPolicies: {
      users: { basic: { usersFile: at("users"), userField: "Remote-User" } },
      away: { allow: ["192.0.2.0/24"] },
    },
    upstreams: [{ name: "web", url: `http://127.0.0.1:${upstream.port}` }],
    virtualServers: [
      { ...of("open"), default: true },
      of("closed", { ...closed, userField: "Remote-User" }),
      of("same", { ...closed, names: ["bob", "bob.example"], userField: "Remote-User" }),
      {
        ...of("both", { ...closed, userField: "X-Remote-User" }),
        routes: [
          { name: "users", path: "/", access: "users", action: proxied },
          { name: "away", path: "/away", access: "away", action: proxied },
        ],
      },
      of("chain", { ca: at("chain.pem") }),
      of("other", { ca: at("other.pem") }),
      of("optional", { ...closed, required: false, userField: "Remote-User" }),
    ],
    ...more,
  };
}

async function start(given = config()): Promise<void> {
  portico = await Portico.start(given, { env: { RUNTIME_DIRECTORY: folder } });
  expect(portico.ended ? portico.errors : "").toBe("");
}

interface Asked {
  /** The name of the handshake. */
  readonly sni?: string;
  readonly client?: Issued;
  readonly version?: (typeof VERSIONS)[number];
  readonly protocol?: (typeof PROTOCOLS)[number];
  readonly session?: Buffer;
  /** The client that a PROXY protocol header names. */
  readonly announced?: string;
}

interface Answer {
  readonly status: number;
  readonly body: string;
}

/** A client's connection, whatever it speaks. */
class Client {
  private readonly http1: Accepted | undefined;
  private readonly http2: ClientHttp2Session | undefined;
  session: Buffer | undefined;

  private constructor(
    readonly socket: tls.TLSSocket,
    protocol: string,
  ) {
    socket.on("session", (bytes: Buffer) => (this.session = bytes));
    if (protocol === "http/1.1") this.http1 = new Accepted(socket);
    else {
      this.http2 = connectHttp2("https://127.0.0.1", { createConnection: () => socket });
      this.http2.on("error", () => undefined);
    }
  }

  static async connect(asked: Asked = {}): Promise<Client> {
    const { sni = "closed.example", client, version = "TLSv1.3", protocol = "http/1.1", session } = asked;
    const over = asked.announced === undefined ? undefined : net.connect(announcedPort, "127.0.0.1");
    over?.write(`PROXY TCP4 ${asked.announced} 192.0.2.1 4711 443\r\n`);
    const socket = tls.connect({
      ...(over === undefined ? { host: "127.0.0.1", port } : { socket: over }),
      ...(sni === "" ? {} : { servername: sni }),
      ...(client === undefined ? {} : { key: client.key, cert: client.cert }),
      rejectUnauthorized: false,
      ALPNProtocols: [protocol],
      minVersion: version,
      maxVersion: version,
      session,
    });
    const made = new Client(socket, protocol);
    await once(socket, "secureConnect");
    return made;
  }

  async ask(name: string, fields: Record<string, string> = {}, path = "/"): Promise<Answer> {
    if (this.http2 !== undefined) return ask(this.http2, { ":path": path, ":authority": name, ...fields });
    const peer = this.http1!;
    const from = peer.received.length;
    const lines = Object.entries(fields).map(([field, value]) => `${field}: ${value}\r\n`);
    peer.send(`GET ${path} HTTP/1.1\r\nHost: ${name}\r\n${lines.join("")}\r\n`);
    await peer.until(() => peer.ended || peer.closed || isComplete(peer.received.slice(from)));
    return parseResponse(peer.received.slice(from));
  }

  end(): void {
    this.http2?.destroy();
    this.socket.destroy();
  }
}

/** One request on a connection of its own. */
async function statusOf(name: string, asked: Asked = {}): Promise<number> {
  const client = await Client.connect({ sni: name, ...asked });
  const { status } = await client.ask(name);
  client.end();
  return status;
}

/** A request's head as it reached the upstream. */
async function headOf(client: Client, name: string, fields: Record<string, string> = {}): Promise<string> {
  const probe = `probe-${++probes}`;
  expect((await client.ask(name, { ...fields, probe })).status).toBe(200);
  return upstream.received
    .split("\r\n\r\n")
    .find((head) => head.includes(`: ${probe}\r\n`) || head.endsWith(probe))!;
}

let probes = 0;

/** Replaces a file as a program would that renews it, and waits until the proxy says that it reads it. */
async function renew(name: string, contents: string, says: RegExp): Promise<void> {
  writeFileSync(at("new"), contents);
  renameSync(at("new"), at(name));
  await portico.says(says);
}

describe.each(WAYS)("over %s and %s", (protocol, version) => {
  const way = { protocol, version };

  test("only clients with a valid certificate come in, and none is asked elsewhere", async () => {
    writeFileSync(at("crl.pem"), revocationList(ca, { revoked: [SERIAL] }));
    await start();
    const seen: Record<string, number> = {};
    for (const [name, client] of Object.entries(clients))
      seen[name] = await statusOf("closed.example", { ...way, client });
    expect({ ...seen, none: await statusOf("closed.example", way) }).toEqual({
      ...{ alice: 200, bob: 200, lost: 403, old: 403, early: 403, stranger: 403, self: 403 },
      ...{ impostor: 403, below: 403, signedByClient: 403, none: 403 },
    });
    const { alice, bob, stranger } = clients;
    const others = {
      names: await statusOf("same.example", { ...way, client: alice }),
      named: await statusOf("same.example", { ...way, client: bob }),
      optional: await statusOf("optional.example", way),
      invalid: await statusOf("optional.example", { ...way, client: stranger }),
      open: await statusOf("open.example", way),
      other: await statusOf("other.example", { ...way, client: stranger }),
    };
    expect(others).toEqual({ names: 403, named: 200, optional: 200, invalid: 403, open: 200, other: 200 });
    const wasAsked = async (sni: string): Promise<boolean> => {
      const client = await Client.connect({ ...way, sni, client: alice });
      const head = await headOf(client, sni);
      client.end();
      return /^client-cert:/im.test(head);
    };
    expect([await wasAsked("open.example"), await wasAsked("closed.example")]).toEqual([false, true]);
  });

  test("a connection that was made for another server is misdirected", async () => {
    await start();
    const { alice } = clients;
    const outcomes: Record<string, number> = {};
    for (const sni of [
      "open.example",
      "other.example",
      "closed.example",
      "optional.example",
      "",
      "unknown.example",
    ]) {
      const client = await Client.connect({ ...way, sni, client: alice });
      outcomes[sni] = (await client.ask("closed.example")).status;
      client.end();
    }
    expect(outcomes).toEqual({
      ...{ "open.example": 421, "other.example": 421, "": 421, "unknown.example": 421 },
      // These are servers with the same authorities.
      ...{ "closed.example": 200, "optional.example": 200 },
    });
    const client = await Client.connect({ ...way, client: alice });
    const coalesced = [];
    for (const name of ["same.example", "open.example", "other.example", "closed.example"]) {
      if (protocol === "http/1.1" && name === "same.example") continue;
      coalesced.push([name, (await client.ask(name)).status]);
    }
    client.end();
    expect(Object.fromEntries(coalesced)).toEqual({
      ...(protocol === "h2" ? { "same.example": 403 } : {}),
      ...{ "open.example": 200, "other.example": 421, "closed.example": 200 },
    });
  });

  test("no session is resumed, nor does one of another server get in", async () => {
    await start();
    const open = await Client.connect({ ...way, sni: "open.example", client: clients.alice });
    await open.ask("open.example");
    await eventually(() => open.session !== undefined || open.socket.getSession() !== undefined);
    const ofOpen = open.session ?? open.socket.getSession()!;
    open.end();
    const closed = await Client.connect({ ...way, client: clients.alice });
    expect((await closed.ask("closed.example")).status).toBe(200);
    const ofClosed = closed.session ?? closed.socket.getSession()!;
    closed.end();
    // Connections go to one worker or the other.
    for (let i = 0; i < 6; i++) {
      for (const session of [ofOpen, ofClosed]) {
        const without = await Client.connect({ ...way, session });
        expect(without.socket.isSessionReused()).toBe(false);
        expect((await without.ask("closed.example")).status).toBe(403);
        without.end();
      }
      const back = await Client.connect({ ...way, session: ofClosed, sni: "open.example" });
      expect((await back.ask("closed.example")).status).toBe(421);
      back.end();
    }
  });

  test("the upstream gets the certificate, and nothing that a stranger sends in its place", async () => {
    await start();
    const { bob, below } = clients;
    const raw = new X509Certificate(bob!.cert).raw.toString("base64");
    const client = await Client.connect({ ...way, client: bob });
    const fields = Object.fromEntries(STRANGERS.map((name) => [name, "forged"]));
    const own = await headOf(client, "closed.example", fields);
    expect(own.match(/^(?:client.cert|remote.user).*$/gim)).toEqual([
      `Client-Cert: :${raw}:`,
      "Remote-User: bob",
    ]);
    expect(own).not.toContain("forged");
    // One connection, other servers.
    expect(await headOf(client, "open.example", fields)).not.toMatch(/client.cert|remote.user|forged/i);
    expect(await headOf(client, "same.example", fields)).toMatch(/^Remote-User: bob\r$/m);
    client.end();
    const without = await Client.connect({ ...way, sni: "optional.example" });
    expect(await headOf(without, "optional.example", fields)).not.toMatch(/client.cert|remote.user|forged/i);
    without.end();
    const [leaf, issuer] = below!.cert.match(/-----BEGIN[^-]+-----[^-]+-----END[^-]+-----/g)!;
    const chained = await Client.connect({ ...way, sni: "chain.example", client: below });
    const head = await headOf(chained, "chain.example");
    chained.end();
    const encoded = (pem: string): string => `:${new X509Certificate(pem).raw.toString("base64")}:`;
    expect(head.match(/^client-cert.*$/gim)).toEqual([
      `Client-Cert: ${encoded(leaf!)}`,
      `Client-Cert-Chain: ${encoded(issuer!)}`,
    ]);
  });
});

describe.each(PROTOCOLS)("together with other features, over %s", (protocol) => {
  test("with a PROXY protocol header, addresses, and passwords", async () => {
    await start();
    const { alice } = clients;
    const via = { protocol, sni: "both.example", announced: "192.0.2.7" };
    const client = await Client.connect({ ...via, client: alice });
    const authorization = `Basic ${Buffer.from("alice:wonderland").toString("base64")}`;
    const forged = { "x-remote-user": "root", "remote-user": "root" };
    expect((await client.ask("both.example", forged)).status).toBe(401);
    expect((await client.ask("both.example", { authorization: `${authorization}x` })).status).toBe(401);
    const head = await headOf(client, "both.example", { authorization, ...forged });
    expect(head.match(/^(?:x-)?remote-user.*$/gim)!.sort()).toEqual([
      "Remote-User: alice",
      "X-Remote-User: alice",
    ]);
    expect(head).toMatch(/^X-Real-IP: 192\.0\.2\.7\r$/im);
    expect((await client.ask("both.example", {}, "/away")).status).toBe(200);
    client.end();
    // A password or an address does not stand for a certificate, nor a certificate for an address.
    const without = await Client.connect(via);
    expect((await without.ask("both.example", { authorization })).status).toBe(403);
    without.end();
    const elsewhere = await Client.connect({ protocol, sni: "both.example", client: alice });
    expect((await elsewhere.ask("both.example", {}, "/away")).status).toBe(403);
    elsewhere.end();
    expect(await statusOf("both.example", { protocol, client: clients.stranger })).toBe(403);
    await eventually(() => {
      const log = readFileSync(at("error.log"), "utf8");
      return (
        log.includes('access="both clientCertificate": none: the client has sent no certificate') &&
        log.includes('access="both clientCertificate": unknown-authority: no authority of `ca`')
      );
    }, "for the lines of the error log");
  });

  test("in a maintenance, clients without a certificate are refused as ever", async () => {
    await start();
    const { alice } = clients;
    const ordered = await askMaster(at("control.sock"), { command: "maintenance", begin: {} }, 10_000);
    expect(ordered.ok).toBe(true);
    await eventually(
      async () => (await statusOf("open.example", { protocol })) === 503,
      "for the maintenance",
    );
    await eventually(async () => (await statusOf("closed.example", { protocol, client: alice })) === 503);
    expect(await statusOf("closed.example", { protocol })).toBe(403);
  });

  test("a reload that adds, changes or removes rules applies to connections that are open", async () => {
    const before = config();
    const without = before.virtualServers.map(({ clientCertificate: _, ...one }) => one);
    await start({ ...before, virtualServers: without });
    const open = await Client.connect({ protocol, client: clients.alice });
    expect((await open.ask("closed.example")).status).toBe(200);
    const reload = async (servers: readonly VirtualServerInput[]): Promise<void> => {
      portico.errors = "";
      portico.rewrite({ ...before, virtualServers: servers });
      portico.signal("SIGHUP");
      await portico.says(/configuration reloaded/);
    };
    await reload(before.virtualServers);
    // The connection belongs to workers with the old rules, which respond to no more than what comes before their end.
    const late = (): Promise<number> =>
      open.ask("closed.example").then(
        ({ status }) => status,
        () => 0,
      );
    await late();
    expect(await late()).toBe(0);
    open.end();
    expect(await statusOf("closed.example", { protocol })).toBe(403);
    expect(await statusOf("closed.example", { protocol, client: clients.alice })).toBe(200);
    const others = before.virtualServers.map((one) =>
      one.name === "closed" ? { ...one, clientCertificate: { ca: at("other.pem") } } : one,
    );
    await reload(others);
    expect(await statusOf("closed.example", { protocol, client: clients.alice })).toBe(403);
    expect(await statusOf("closed.example", { protocol, client: clients.stranger })).toBe(200);
  });
});

/** Fields by which a stranger may try to be somebody. */
const STRANGERS = [
  ...["client-cert", "client-cert-chain", "client_cert", "client.cert", "client_cert-chain"],
  ...["remote-user", "remote_user", "remote.user", "x-client-cert", "ssl-client-cert"],
];

test("a revocation and a removed authority count on open connections, in each worker", async () => {
  await start();
  const { lost, alice, stranger } = clients;
  const connected = async (client: Issued | undefined): Promise<Client[]> =>
    Promise.all(
      WAYS.flatMap(([protocol, version]) =>
        Array.from({ length: 4 }, () => Client.connect({ protocol, version, client })),
      ),
    );
  const all = async (them: readonly Client[]): Promise<number[]> => {
    const statuses = await Promise.all(them.map(async (one) => (await one.ask("closed.example")).status));
    return [...new Set(statuses)];
  };
  const [ofLost, ofAlice] = [await connected(lost), await connected(alice)];
  expect([await all(ofLost), await all(ofAlice)]).toEqual([[200], [200]]);
  await renew("crl.pem", revocationList(ca, { revoked: [SERIAL] }), /was read again/);
  await eventually(async () => (await all(await connected(lost)))[0] === 403, "for all workers");
  expect([await all(ofLost), await all(ofAlice)]).toEqual([[403], [200]]);
  const tickets = ofLost.map(({ session, socket }) => session ?? socket.getSession() ?? undefined);
  for (const [i, [protocol, version]] of WAYS.entries()) {
    const session = tickets[4 * i];
    expect(await statusOf("closed.example", { protocol, version, client: lost, session })).toBe(403);
  }
  // The list is not that of the new authority until both files are there: the previous ones stay.
  await renew("ca.pem", otherCa.cert, /crl\.pem\)[^]*previous one stays in use/);
  expect(await all(ofAlice)).toEqual([200]);
  await renew("crl.pem", revocationList(otherCa), /was read again[^]*was read again/);
  await eventually(
    async () => (await statusOf("closed.example", { client: stranger })) === 200,
    "the new one",
  );
  await eventually(async () => (await all(ofAlice)).join() === "403", "for all workers");
  for (const one of [...ofLost, ...ofAlice]) one.end();
}, 60_000);

test("after the end of the list nobody comes in, and the start says so", async () => {
  writeFileSync(at("crl.pem"), revocationList(ca, { from: -3, to: -1 }));
  await start();
  expect(portico.output + portico.errors).toMatch(/crl\.pem\).* expired on .*none of its clients comes in/);
  expect(await statusOf("closed.example", { client: clients.alice })).toBe(403);
  expect(await statusOf("chain.example", { client: clients.alice })).toBe(200);
  await eventually(() =>
    readFileSync(at("error.log"), "utf8").includes("crl-expired: a list of `crl` has expired"),
  );
});

/** Resident memory of a worker, in MiB. */
const residentOf = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1_024;

test("certificates that are too long end the connection, and nothing of them stays in memory", async () => {
  await start(config({ workers: 1 }));
  const names = Array.from({ length: 7_000 }, (_, i) => `a${i}.x`);
  const long = await issue({ type: "ec", name: "alice", names });
  const { self, stranger, alice } = clients;
  const many = { ...self!, cert: self!.cert + stranger!.cert.repeat(200) };
  const [worker] = portico.workers();
  const before = residentOf(worker!);
  for (let i = 0; i < 60; i++) {
    const client = await Client.connect({ client: i % 10 === 0 ? long : many });
    if (!client.socket.closed) await once(client.socket, "close");
  }
  expect(residentOf(worker!) - before).toBeLessThan(64);
  // What a client sends at once behind its certificate is no part of it.
  const body = randomBytes(1_000_000);
  const socket = tls.connect({
    ...alice,
    host: "127.0.0.1",
    port,
    servername: "closed.example",
    ca: server.cert,
  });
  const client = new Accepted(socket);
  socket.write(`POST / HTTP/1.1\r\nHost: closed.example\r\nContent-Length: ${body.length}\r\n\r\n`);
  socket.write(body);
  await client.until(() => isComplete(client.received));
  expect(client.received).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
});

test("no spelling of a name gets a client without a certificate in", async () => {
  const closed = { ca: at("ca.pem"), crl: at("crl.pem") };
  const { virtualServers } = config();
  await start(
    config({
      virtualServers: [
        ...virtualServers,
        {
          name: "below",
          serverNames: ["*.open.example"],
          listeners: ["https"],
          clientCertificate: closed,
          routes: [everywhere(proxied)],
        },
      ],
    }),
  );
  const outcomes = new Set<string>();
  const hosts = [
    "closed.example",
    "CLOSED.example.",
    "closed.example:443",
    "a.open.example",
    "A.Open.Example.",
  ];
  const heads = hosts.flatMap((host) => [
    `GET / HTTP/1.1\r\nHost: ${host}`,
    `GET / HTTP/1.0\r\nHost: ${host}`,
    `GET https://${host}/ HTTP/1.1\r\nHost: open.example`,
    `GET / HTTP/1.1\r\nHost: open.example\r\nHost: ${host}`,
    `GET https://open.example@${host}/ HTTP/1.1\r\nHost: open.example`,
  ]);
  for (const sni of [
    "open.example",
    "OPEN.example.",
    "",
    "unknown.example",
    "Closed.Example.",
    "A.open.example",
  ]) {
    for (const head of heads) {
      const { socket } = await Client.connect({ sni });
      const peer = new Accepted(socket);
      peer.send(`${head}\r\nConnection: close\r\n\r\n`);
      await peer.until(() => peer.ended || peer.closed);
      outcomes.add(peer.received.slice(9, 12));
      socket.destroy();
    }
  }
  expect([...outcomes].sort()).toEqual(["400", "403", "421"]);
  expect(upstream.received).toBe("");
}, 30_000);
