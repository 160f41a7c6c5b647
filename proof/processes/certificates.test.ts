import { createDiffieHellmanGroup } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import * as http2 from "node:http2";
import * as net from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import * as tls from "node:tls";
import type { ListenerInput, ProxyConfigInput } from "../../src/model/index.js";
import { integer, sequence } from "../../src/runtime/tls/der.js";
import { CertificateServers, type Secured } from "../../src/runtime/tls/certificateServers.js";
import { fixed, loopback } from "../../testkit/oneServer.js";
import { type CertificateOptions, type Issued, issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { killAll, openFolder, Portico, processes, SELDOM } from "../../testkit/portico.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";

/** Several certificates of one listener, over real handshakes with master and workers as processes. */

let folder: string;
let port: number;
let portico: Portico | undefined;
const at = (name: string): string => join(folder, name);

/** Names of each certificate; the first is the default. */
const NAMES = {
  default: ["files.example.org", "127.0.0.1"],
  wide: ["*.example.org", "example.org"],
  office: ["office.example.org", "*.office.example.org"],
} as const;
type Name = keyof typeof NAMES;

/** A front end that is shared by the tests that change neither its config nor its files. */
let shared: { readonly portico: Portico; readonly folder: string; readonly port: number } | undefined;

async function useShared(): Promise<Portico> {
  shared ??= { portico: await Portico.start(config()), folder, port };
  ({ folder, port } = shared);
  return shared.portico;
}

const firsts = new Map<Name, Issued>();

beforeAll(async () => {
  for (const name of Object.keys(NAMES) as Name[]) {
    firsts.set(name, await issue({ type: "ec", names: NAMES[name], name: `${name} 1` }));
  }
});

async function stopShared(): Promise<void> {
  await shared?.portico.stop();
  shared = undefined;
}

afterAll(stopShared);

beforeEach(async () => {
  folder = openFolder();
  [port] = (await freePorts(1)) as [number];
  for (const [name, issued] of firsts) place(name, 1, issued);
});

afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});

/** Issues a certificate, and writes it as certbot does. */
async function certify(name: Name, version: number, options: CertificateOptions = {}): Promise<void> {
  place(
    name,
    version,
    await issue({ type: "ec", names: NAMES[name], name: `${name} ${version}`, ...options }),
  );
}

/** As certbot does: a folder of versions, and links to the newest one. */
function place(name: Name, version: number, { key, cert }: Issued): void {
  mkdirSync(at(name), { recursive: true });
  writeFileSync(at(`${name}/key${version}.pem`), key, { mode: 0o600 });
  writeFileSync(at(`${name}/cert${version}.pem`), cert);
  link(name, "key", version);
  link(name, "cert", version);
}

function link(name: Name, part: "key" | "cert", version: number): void {
  rmSync(at(`${name}/${part}.pem`), { force: true });
  symlinkSync(`${part}${version}.pem`, at(`${name}/${part}.pem`));
}

const files = (name: Name) => ({ certificate: at(`${name}/cert.pem`), key: at(`${name}/key.pem`) });

function config(names: readonly Name[] = ["default", "wide", "office"]): ProxyConfigInput {
  const [first, ...further] = names;
  const policy = "mozilla-intermediate";
  const listener = loopback("https", port, { ...files(first!), certificates: further.map(files), policy });
  const server = (name: string, serverNames: string[]) => ({
    name,
    serverNames,
    listeners: ["https"],
    default: name === "files",
    routes: [fixed(name)],
  });
  return {
    version: 1,
    workers: 2,
    logs: { access: { path: at("access.log") }, error: { path: at("error.log") } },
    timeouts: { tlsHandshakeMs: 1_000 },
    listeners: [listener],
    virtualServers: [
      server("files", ["files.example.org", "127.0.0.1"]),
      server("office", ["office.example.org"]),
    ],
  };
}

interface Asked {
  readonly servername?: string;
  readonly host?: string;
  readonly version?: (typeof VERSIONS)[number];
  readonly session?: Buffer;
  readonly through?: number;
}

const VERSIONS = ["TLSv1.2", "TLSv1.3"] as const;

/** A handshake needs one; making it takes longer than the handshake. */
const contexts = {
  any: tls.createSecureContext(),
  "TLSv1.2": tls.createSecureContext({ maxVersion: "TLSv1.2" }),
  "TLSv1.3": tls.createSecureContext({ minVersion: "TLSv1.3" }),
};

/** One request over HTTP/1.1 on a connection of its own. */
async function ask({ servername, host = servername ?? "127.0.0.1", version, session, through }: Asked = {}) {
  const socket = tls.connect({
    port: through ?? port,
    host: "127.0.0.1",
    rejectUnauthorized: false,
    ALPNProtocols: ["http/1.1"],
    secureContext: contexts[version ?? "any"],
    servername,
    session,
  });
  let newest: Buffer | undefined;
  socket.on("session", (bytes: Buffer) => (newest = bytes));
  await once(socket, "secureConnect");
  const certificate = socket.getPeerX509Certificate()?.subject?.replace("CN=", "");
  const reused = socket.isSessionReused();
  socket.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
  const [response] = (await nextEvent(socket, "data")) as [Buffer];
  newest ??= socket.getSession();
  socket.destroy();
  const [, status, body] = /^HTTP\/1.1 (\d+)[^]*\r\n\r\n([^]*)$/.exec(response.toString("latin1"))!;
  return { certificate, status: Number(status), body, reused, session: newest! };
}

/** A way to the proxy on which messages arrive in pieces, so that a handshake is on its way for long and costs little. */
async function slowRelay(): Promise<{ readonly port: number; close(): void }> {
  const pass = (from: net.Socket, to: net.Socket, pieceBytes: number): void => {
    let passed = Promise.resolve();
    const inPieces = async (message: Buffer): Promise<void> => {
      from.pause();
      for (let at = 0; at < message.length; at += pieceBytes) {
        to.write(message.subarray(at, at + pieceBytes));
        // The kernel sends what was written before on its own; so do pauses.
        await sleep(15);
      }
      from.resume();
    };
    from.on("data", (message: Buffer) => (passed = inPieces(message)));
    // On a busy machine the connection is closed before the last piece has been passed on.
    from.on("close", () => void passed.then(() => to.end())).on("error", () => undefined);
  };
  const relay = net.createServer({ noDelay: true }, (client) => {
    const server = net.connect(port, "127.0.0.1").setNoDelay(true);
    pass(client, server, 100);
    pass(server, client, 400);
  });
  await once(relay.listen(0, "127.0.0.1"), "listening");
  return { port: (relay.address() as net.AddressInfo).port, close: () => void relay.close() };
}

/** A look is a handshake. */
const SOMETIMES = { everyMs: 100 };

describe("which certificate a client gets", () => {
  const CHOICES: readonly (readonly [string | undefined, string])[] = [
    ["files.example.org", "default 1"],
    ["office.example.org", "office 1"],
    ["OFFICE.Example.org", "office 1"],
    ["www.example.org", "wide 1"],
    ["example.org", "wide 1"],
    ["a.office.example.org", "office 1"],
    ["a.b.office.example.org", "default 1"],
    ["unknown.example.com", "default 1"],
    [undefined, "default 1"],
  ];

  test.each(VERSIONS)(
    "follows the requested name: exactly, by wildcard, or else the default (%s)",
    async (version) => {
      await useShared();
      for (const [servername, expected] of CHOICES) {
        const { certificate } = await ask({ ...(servername && { servername }), version });
        expect([servername, certificate]).toEqual([servername, expected]);
      }
    },
  );

  test("does not depend on how the first message arrives", async () => {
    await useShared();
    const relay = await slowRelay();
    try {
      expect(await ask({ servername: "office.example.org", through: relay.port })).toMatchObject({
        certificate: "office 1",
        body: "office",
      });
    } finally {
      relay.close();
    }
  });

  test("is the only one where there is one, and the renewed one after a renewal", async () => {
    portico = await Portico.start(config(["wide"]));
    for (const servername of ["www.example.org", "other.example.com"]) {
      expect(await ask({ servername })).toMatchObject({ certificate: "wide 1", status: 200 });
    }
    const { session } = await ask({ version: "TLSv1.2" });
    expect(await ask({ version: "TLSv1.2", session })).toMatchObject({ reused: true });
    await certify("wide", 2);
    await eventually(async () => (await ask()).certificate === "wide 2", "for the renewed one", SOMETIMES);
    expect(await ask({ version: "TLSv1.2", session })).toMatchObject({
      reused: false,
      certificate: "wide 2",
    });
  });
});

describe("before a handshake", () => {
  async function first(bytes: string): Promise<string> {
    const socket = net.connect(port, "127.0.0.1");
    if (bytes !== "") socket.write(bytes);
    let response = "";
    socket.on("data", (chunk: Buffer) => (response += chunk.toString("latin1")));
    socket.on("error", () => undefined);
    await once(socket, "close");
    return response;
  }

  test("plain HTTP gets an error page at once", async () => {
    await useShared();
    expect(await first("GET / HTTP/1.1\r\nHost: files.example.org\r\n\r\n")).toMatch(
      /^HTTP\/1.1 400 [^]*plain HTTP request was sent to HTTPS port/,
    );
  });

  test("a client that sends nothing, or only a part, has no longer than a handshake may take", async () => {
    await useShared();
    const began = performance.now();
    expect(await Promise.all([first(""), first("\x16\x03\x01\x02\x00\x01")])).toEqual(["", ""]);
    expect(performance.now() - began).toBeGreaterThan(900);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await ask()).status).toBe(200);
  });

  test("a client that sends its first message late has no more time for the rest", async () => {
    portico = await Portico.start({ ...config(), workers: 1 });
    const began = performance.now();
    const socket = net.connect(port, "127.0.0.1");
    socket.on("error", () => undefined).resume();
    await sleep(800);
    socket.write(await hello("office.example.org"));
    await once(socket, "close");
    expect(performance.now() - began).toBeGreaterThan(900);
    // A second from the first message on would be 1800.
    expect(performance.now() - began).toBeLessThan(1_700);
    const log = (): string => readFileSync(at("error.log"), "utf8");
    await eventually(() => log().includes("TLS handshake failed (TLS handshake timeout)"), "for its line");
    expect(log().match(/TLS handshake failed/g)).toHaveLength(1);
    expect((await ask({ servername: "office.example.org" })).certificate).toBe("office 1");
  });

  test.each([["default"], ["default", "office"]] as const)(
    "a PROXY protocol header takes its time from that of the handshake (%s)",
    async (...names: Name[]) => {
      const what = config(names);
      const [listener] = what.listeners as [ListenerInput];
      const proxyProtocol = { from: ["127.0.0.1/32"] };
      const listeners = [{ ...listener, proxyProtocol }];
      portico = await Portico.start({ ...what, workers: 1, listeners });
      const began = performance.now();
      const socket = net.connect(port, "127.0.0.1");
      socket.on("error", () => undefined).resume();
      await sleep(750);
      socket.write("PROXY TCP4 192.0.2.7 192.0.2.1 4000 443\r\n");
      await sleep(50);
      socket.write(await hello("office.example.org"));
      await once(socket, "close");
      expect(performance.now() - began).toBeGreaterThan(900);
      expect(performance.now() - began).toBeLessThan(1_700);
      const log = (): string => readFileSync(at("error.log"), "utf8");
      await eventually(() => log().includes("client: 192.0.2.7"), "for its line", { seen: log });
      expect(log().match(/TLS handshake failed/g)).toHaveLength(1);
    },
  );

  test("a connection on which the handshake is over has no such deadline", async () => {
    await useShared();
    const socket = tls.connect({
      port,
      host: "127.0.0.1",
      servername: "a.example",
      rejectUnauthorized: false,
    });
    await once(socket, "secureConnect");
    await sleep(1_300);
    socket.write("GET / HTTP/1.1\r\nHost: files.example.org\r\n\r\n");
    const [response] = (await nextEvent(socket, "data")) as [Buffer];
    socket.destroy();
    expect(response.toString("latin1")).toMatch(/^HTTP\/1.1 200/);
  });

  test("a peer that goes away has no effect", async () => {
    const portico = await useShared();
    for (let i = 0; i < 20; i++) {
      const socket = net.connect(port, "127.0.0.1");
      await once(socket, "connect");
      socket.write("\x16\x03");
      socket.resetAndDestroy();
    }
    expect((await ask({ servername: "office.example.org" })).certificate).toBe("office 1");
    expect(portico.errors).toBe("");
  });
});

/** The first message of a real client. */
async function hello(servername: string | undefined): Promise<Buffer> {
  const server = net.createServer();
  await once(server.listen(0, "127.0.0.1"), "listening");
  const { port: to } = server.address() as net.AddressInfo;
  const client = tls.connect({ port: to, host: "127.0.0.1", ...(servername && { servername }) });
  client.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [net.Socket];
  const [bytes] = (await nextEvent(socket, "data")) as [Buffer];
  socket.destroy();
  server.close();
  return bytes;
}

test.each(VERSIONS)("a session over %s is resumed with the same certificate only", async (version) => {
  await useShared();
  for (const [begun, goes] of [
    ["files.example.org", { default: true, wide: false, office: false }],
    ["office.example.org", { default: false, wide: false, office: true }],
  ] as const) {
    const { session } = await ask({ servername: begun, version });
    const names = { default: "files.example.org", wide: "www.example.org", office: "office.example.org" };
    const reused: Record<string, boolean> = {};
    for (const [name, servername] of Object.entries(names)) {
      // Both workers.
      const times = await Promise.all([1, 2, 3].map(() => ask({ servername, version, session })));
      reused[name] = times.every((one) => one.reused);
      if (!reused[name]) expect(times.map((one) => one.reused)).toEqual([false, false, false]);
    }
    expect({ begun, ...reused }).toEqual({ begun, ...goes });
    // The resumed one responds for its name, and for no other.
    expect(await ask({ servername: begun, version, session })).toMatchObject({ reused: true, status: 200 });
    const other = begun === "files.example.org" ? "office.example.org" : "files.example.org";
    expect(await ask({ servername: begun, host: other, version, session })).toMatchObject({ status: 421 });
  }
});

describe("a request for a name of another certificate than that of its connection", () => {
  const CASES: readonly (readonly [servername: string | undefined, host: string, status: number])[] = [
    ["files.example.org", "files.example.org", 200],
    ["files.example.org", "office.example.org", 421],
    ["files.example.org", "www.example.org", 421],
    ["office.example.org", "files.example.org", 421],
    ["office.example.org", "x.office.example.org", 200],
    // The wildcard covers these, although others would be chosen for them.
    ["www.example.org", "files.example.org", 200],
    ["www.example.org", "office.example.org", 200],
    // No certificate covers them: a client that trusts this one for them could not be served better.
    ["files.example.org", "unknown.example.com", 200],
    ["office.example.org", "127.0.0.1", 200],
    [undefined, "127.0.0.1", 200],
    [undefined, "office.example.org", 421],
  ];

  test("is 421 over HTTP/1.1", async () => {
    await useShared();
    for (const [servername, host, status] of CASES) {
      const response = await ask({ ...(servername && { servername }), host });
      expect([servername, host, response.status]).toEqual([servername, host, status]);
    }
  });

  test("is 421 over HTTP/2, and the connection goes on", async () => {
    await useShared();
    for (const servername of ["files.example.org", "office.example.org", "www.example.org"]) {
      const session = http2.connect(`https://127.0.0.1:${port}`, { servername, rejectUnauthorized: false });
      for (const [, host, status] of CASES.filter(([name]) => name === servername)) {
        const stream = session.request({ ":path": "/", ":authority": host });
        const [headers] = (await nextEvent(stream, "response")) as [http2.IncomingHttpHeaders];
        stream.resume();
        await once(stream, "close");
        expect([servername, host, headers[":status"]]).toEqual([servername, host, status]);
      }
      session.close();
    }
  });

  test("gets a response for a trusted proxy, which may use another name", async () => {
    portico = await Portico.start({ ...config(), workers: 1, trustedProxies: ["127.0.0.1"] });
    expect(await ask({ host: "office.example.org" })).toMatchObject({ status: 200, body: "office" });
  });

  test("gets a response where there is one certificate", async () => {
    portico = await Portico.start({ ...config(["default"]), workers: 1 });
    const asked = { servername: "files.example.org", host: "office.example.org" };
    expect(await ask(asked)).toMatchObject({ status: 200, body: "office" });
  });
});

describe("renewed files", () => {
  // Its processes would be counted.
  beforeAll(stopShared);

  const served = async (servername: string): Promise<string | undefined> =>
    (await ask({ servername })).certificate;
  const serves = (servername: string, certificate: string): Promise<void> =>
    eventually(async () => (await served(servername)) === certificate, `for ${certificate}`, SOMETIMES);

  test("are taken without a reload, and cut no connection", async () => {
    // On a busy machine a handshake through the relay takes more than a second.
    portico = await Portico.start({ ...config(), timeouts: { tlsHandshakeMs: 20_000 } });
    const workers = portico.workers();
    const session = http2.connect(`https://127.0.0.1:${port}`, {
      servername: "office.example.org",
      rejectUnauthorized: false,
    });
    const failures: unknown[] = [];
    session.on("error", (error) => failures.push(error));
    session.on("goaway", (code) => failures.push(`GOAWAY ${code}`));
    let going = true;
    const load = async (request: () => Promise<number | undefined>): Promise<number> => {
      let done = 0;
      for (; going; done++) {
        const status = await request().catch((error: unknown) => error);
        // One says enough; a session that is over would refuse without end, and nothing else had its turn.
        if (status !== 200) return failures.push(status);
      }
      return done;
    };
    const overOld = async (): Promise<number | undefined> => {
      const stream = session.request({ ":path": "/", ":authority": "office.example.org" });
      const [headers] = (await nextEvent(stream, "response")) as [http2.IncomingHttpHeaders];
      stream.resume();
      await once(stream, "close");
      await sleep(25);
      return Number(headers[":status"]);
    };
    const relay = await slowRelay();
    const overNew = (servername: string) => async () =>
      (await ask({ servername, through: relay.port })).status;
    const loads = [load(overOld), load(overNew("office.example.org")), load(overNew("files.example.org"))];
    await certify("office", 2);
    await serves("office.example.org", "office 2");
    await certify("office", 3);
    await certify("default", 2);
    await serves("office.example.org", "office 3");
    await serves("files.example.org", "default 2");
    going = false;
    const counts = await Promise.all(loads);
    session.close();
    relay.close();
    expect(failures).toEqual([]);
    expect(Math.min(...counts)).toBeGreaterThan(10);
    expect(await served("www.example.org")).toBe("wide 1");
    expect(portico.workers()).toEqual(workers);
    expect(portico.errors).toMatch(
      /certificates\[1\]\.certificate \(.*office.*\) was renewed, and is valid until 20/,
    );
  });

  test("that are broken are refused with one warning, and what was served before stays", async () => {
    portico = await Portico.start(config());
    const { cert } = await issue({ type: "ec", names: NAMES.office, name: "office 2" });
    writeFileSync(at("office/cert2.pem"), cert);
    link("office", "cert", 2);
    await portico.says(
      /is refused, and the previous one stays in use: .*office\/key\.pem\): does not belong/,
    );
    expect(await served("office.example.org")).toBe("office 1");
    // The other ones are renewed all the same; in place this time.
    const wide = await issue({ type: "ec", names: NAMES.wide, name: "wide 2" });
    writeFileSync(at("wide/key1.pem"), wide.key);
    writeFileSync(at("next.pem"), wide.cert);
    renameSync(at("next.pem"), at("wide/cert1.pem"));
    await serves("www.example.org", "wide 2");
    await certify("office", 3, { to: -0.5 });
    await portico.says(/is refused, and the previous one stays in use: .*expired on/);
    expect(await served("office.example.org")).toBe("office 1");
    expect(portico.errors.match(/is refused/g)).toHaveLength(2);
    await certify("office", 4);
    await serves("office.example.org", "office 4");
  });

  test("are served by workers that start later, after a reload and after an upgrade", async () => {
    portico = await Portico.start(config());
    await certify("office", 2);
    await serves("office.example.org", "office 2");
    for (const pid of portico.workers()) process.kill(pid, "SIGKILL");
    await eventually(() => portico!.workers().length === 2, "for new workers");
    for (let i = 0; i < 6; i++) expect(await served("office.example.org")).toBe("office 2");
    // A file that cannot be taken keeps a reload from being done, and nothing changes.
    rmSync(at("office/key.pem"));
    portico.signal("SIGHUP");
    await portico.says(/reload refused/);
    for (let i = 0; i < 4; i++) expect(await served("office.example.org")).toBe("office 2");
    await certify("office", 3);
    portico.signal("SIGHUP");
    await portico.says(/configuration reloaded/);
    for (let i = 0; i < 4; i++) expect(await served("office.example.org")).toBe("office 3");
    portico.signal("SIGUSR2");
    await portico.says(/has taken over/);
    // Its streams are now the new master's.
    portico = undefined;
    await eventually(() => processes("master").length === 1, "for the old master to go", SELDOM);
    try {
      for (let i = 0; i < 4; i++) expect(await served("office.example.org")).toBe("office 3");
      await certify("office", 4);
      await serves("office.example.org", "office 4");
    } finally {
      killAll();
    }
  });
});

describe("renewed Diffie-Hellman parameters", () => {
  /** One of the groups of RFC 3526, as PEM. */
  const parameters = (group: string): string => {
    const dh = createDiffieHellmanGroup(group);
    const der = sequence(integer(dh.getPrime()), integer(dh.getGenerator()));
    return `-----BEGIN DH PARAMETERS-----\n${der.toString("base64")}\n-----END DH PARAMETERS-----\n`;
  };
  /** What a client that knows no other key exchange gets, in bits. */
  const bits = async (servername: string): Promise<number | undefined> => {
    const socket = tls.connect({
      port,
      host: "127.0.0.1",
      servername,
      rejectUnauthorized: false,
      maxVersion: "TLSv1.2",
      ciphers: "DHE-RSA-AES128-GCM-SHA256",
    });
    await once(socket, "secureConnect");
    const info = socket.getEphemeralKeyInfo() as tls.EphemeralKeyInfo;
    socket.destroy();
    return info.size;
  };
  const renew = (text: string): void => {
    writeFileSync(at("next.pem"), text);
    renameSync(at("next.pem"), at("dhparam.pem"));
  };

  test("are taken without a reload, also by workers that start later, unless they are refused", async () => {
    await certify("default", 1, { type: "rsa" });
    await certify("office", 1, { type: "rsa" });
    renew(parameters("modp14"));
    const what = config();
    const [listener] = what.listeners as [ListenerInput];
    const section = { ...listener.tls!, dhparam: at("dhparam.pem") };
    portico = await Portico.start({ ...what, listeners: [{ ...listener, tls: section }] });
    const workers = portico.workers();
    const kept = tls.connect({ port, host: "127.0.0.1", rejectUnauthorized: false });
    await once(kept, "secureConnect");
    expect(await bits("office.example.org")).toBe(2048);
    renew(parameters("modp15"));
    for (const name of ["files.example.org", "office.example.org"])
      await eventually(async () => (await bits(name)) === 3072, "for the renewed ones", SOMETIMES);
    await portico.says(/listeners\[0\]\.tls\.dhparam \(.*dhparam\.pem\) was renewed/);
    expect(portico.workers()).toEqual(workers);
    kept.write("GET / HTTP/1.1\r\nHost: files.example.org\r\n\r\n");
    expect(String((await nextEvent(kept, "data"))[0])).toMatch(/^HTTP\/1.1 200/);
    kept.destroy();
    renew(parameters("modp5"));
    await portico.says(/dhparam\.pem\) changed on disk; the new one is refused.* has a prime of 1536 bits/);
    for (const pid of portico.workers()) process.kill(pid, "SIGKILL");
    await eventually(() => portico!.workers().length === 2, "for new workers");
    for (let i = 0; i < 4; i++) expect(await bits("files.example.org")).toBe(3072);
  });
});

test("a temporary certificate holds back HSTS for its names and those above them, until it is issued", async () => {
  const of = async (id: string, names: string[], source: "files" | "temporary") => {
    const { key, cert } = await issue({ type: "ec", names });
    return { id, source, names, key, cert };
  };
  const all = [
    await of("default", ["example.net"], "files"),
    await of("waiting", ["cloud.example.org", "other.example"], "temporary"),
    await of("above", ["example.org", "www.example.com"], "files"),
    await of("beside", ["mail.example.org", "cloud.example.org.example"], "files"),
    await of("wildcard", ["*.example.org"], "files"),
  ];
  const seen = new Map<string, Secured>();
  const servers = new CertificateServers(all, ({ id }, secured) => {
    seen.set(id, secured);
    return tls.createServer();
  });
  const held = () => [...seen].flatMap(([id, { temporary }]) => (temporary ? [id] : []));
  expect(held()).toEqual(["waiting", "above", "wildcard"]);
  servers.renew([await of("waiting", ["cloud.example.org", "other.example"], "files")]);
  expect(held()).toEqual([]);
  servers.renew([await of("beside", ["mail.example.org"], "temporary")]);
  expect(held()).toEqual(["above", "beside", "wildcard"]);
});

test("a certificate is chosen by no name that it was not asked for", async () => {
  const { key, cert } = await issue({ type: "ec", names: ["a.example.org", "bank.example.org"] });
  const bank = await issue({ type: "ec", names: ["bank.example.org"] });
  const servers = new CertificateServers(
    [
      { id: "a", source: "acme", names: ["a.example.org"], key, cert },
      { id: "bank", source: "files", key: bank.key, cert: bank.cert },
    ],
    () => tls.createServer(),
  );
  expect(servers.for("bank.example.org")).toBe(servers.all[1]!.server);
  expect(servers.for("a.example.org")).toBe(servers.all[0]!.server);
});
