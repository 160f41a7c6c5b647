import { webcrypto } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, writeFileSync } from "node:fs";
import * as http from "node:http";
import { join } from "node:path";
import * as tls from "node:tls";
import "../../build/reflectMetadata.js";
import * as x509 from "@peculiar/x509";
import { run } from "../../src/cli/program.js";
import { diagnose } from "../../src/host/diagnosis/rows/rows.js";
import { parseConfig, ProblemError, type ProxyConfigInput } from "../../src/model/index.js";
import { loadConfig, loadedStateOf } from "../../src/runtime/load/loadConfig.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { ListedCertificate } from "../../src/runtime/supervisor/control/certificateList.js";
import { everywhere, fixed, loopback } from "../../testkit/oneServer.js";
import { issue } from "../../testkit/certificates.js";
import { freePorts } from "../../testkit/ports.js";
import { openFolder, Portico, processes } from "../../testkit/portico.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";
import { Between } from "./between.js";
import { TestCa } from "./ca.js";

/**
 * Certificates from an authority in a proxy that serves: master and workers as processes, real handshakes, a
 * real authority.
 */

let ca: TestCa;
let folder: string;
let portico: Portico | undefined;
beforeAll(async () => (ca = await TestCa.start()));
afterAll(() => ca.stop());
beforeEach(() => (folder = openFolder()));
afterEach(async () => {
  await portico?.stop();
  portico = undefined;
});

type Challenge = "http-01" | "tls-alpn-01";

function config(
  names: readonly string[],
  challenge: Challenge = "http-01",
  more: readonly string[] = [],
): ProxyConfigInput {
  const acme = (wanted: readonly string[]) => ({ acme: { authority: "ca", names: wanted } });
  const further = more.length === 0 ? {} : { certificates: [acme(more)] };
  return {
    version: 1,
    workers: 2,
    certificateAuthorities: [
      { name: "ca", directory: ca.directory, agreeToTerms: true, roots: ca.roots, challenge },
    ],
    listeners: [
      loopback("http", ca.httpPort),
      loopback("https", ca.tlsPort, { ...acme(names), ...further, policy: "mozilla-intermediate" }),
    ],
    virtualServers: [
      {
        name: "redirect",
        serverNames: ["_"],
        listeners: ["http"],
        default: true,
        routes: [everywhere({ type: "redirect", port: ca.tlsPort })],
      },
      { name: "site", serverNames: ["_"], listeners: ["https"], default: true, routes: [fixed("ok")] },
    ],
  };
}

const start = async (what: ProxyConfigInput): Promise<Portico> => {
  for (const name of ["state", "run"]) mkdirSync(join(folder, name), { recursive: true });
  const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: join(folder, "run") };
  return (portico = await Portico.start(what, { env }));
};

const control = (): string => join(folder, "run/control.sock");

async function listed(): Promise<readonly ListedCertificate[]> {
  const outcome = await askMaster(control(), { command: "certificates" }, 5_000);
  if (!outcome.ok) throw new Error(JSON.stringify(outcome.problems));
  return outcome.value.certificates!;
}

/** The certificate that a new connection gets. */
async function peer(servername = "a.example.net"): Promise<tls.PeerCertificate> {
  const socket = tls.connect({ port: ca.tlsPort, host: "127.0.0.1", servername, rejectUnauthorized: false });
  await once(socket, "secureConnect");
  const certificate = socket.getPeerCertificate();
  socket.destroy();
  return certificate;
}

const issuerOf = ({ issuer }: tls.PeerCertificate): string => String(issuer.CN);
const issued = (name?: string): Promise<void> =>
  eventually(async () => issuerOf(await peer(name)).startsWith("Pebble"), "for an issued certificate", {
    seen: () => portico!.errors,
    ...SELDOM,
  });
/** Each look is a handshake, or a question to the master. */
const SELDOM = { everyMs: 100 };

/** One connection for all requests of a test: it must not be cut when its listener gets another certificate. */
function keptOpen(): { ask(): Promise<number>; end(): void } {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const socket = tls.connect({
    port: ca.tlsPort,
    host: "127.0.0.1",
    servername: "a.example.net",
    rejectUnauthorized: false,
  });
  agent.createConnection = () => socket as never;
  const ask = async (): Promise<number> => {
    const request = http.get({ agent, host: "a.example.net", path: "/" });
    const [response] = (await nextEvent(request, "response")) as [http.IncomingMessage];
    await once(response.resume(), "end");
    return response.statusCode!;
  };
  return { ask, end: () => agent.destroy() };
}

test.each<Challenge>(["http-01", "tls-alpn-01"])(
  "a proxy serves at once, gets a certificate by %s, and takes it without cutting a connection",
  async (challenge) => {
    await start(config(["a.example.net", "b.example.net"], challenge));
    const connection = keptOpen();
    expect(await connection.ask()).toBe(200);
    await issued();
    expect((await peer()).subjectaltname).toMatch(/DNS:a\.example\.net/);
    expect(await connection.ask()).toBe(200);
    connection.end();
    const [one] = await listed();
    expect(one).toMatchObject({
      names: ["a.example.net", "b.example.net"],
      listeners: ["https"],
      source: "acme",
      from: "ca",
      state: "valid",
      issuer: expect.stringMatching(/^Pebble/),
    });
    expect(one!.nextAttempt).toBeGreaterThan(Date.now());
    // What was issued is no difference between what is installed and what runs.
    const loaded = await loadConfig({ file: portico!.configFile });
    const status = await askMaster(control(), { command: "status" }, 5_000);
    const { config: document, tls: material } = (status.ok && status.value.loaded) || never();
    expect(loadedStateOf(loaded.ok ? loaded.value : never())).toEqual({ config: document, tls: material });
    // Challenges are closed: what an authority would ask for is an unknown path again.
    const response = await fetch(`http://127.0.0.1:${ca.httpPort}/.well-known/acme-challenge/x`, {
      redirect: "manual",
    });
    expect(response.status).toBe(301);
  },
);

test("a restart serves the certificate that there is, and an upgrade goes on with it; neither orders another", async () => {
  await start(config(["a.example.net"]));
  await issued();
  const serial = (await peer()).serialNumber;
  await portico!.stop();
  await start(config(["a.example.net"]));
  expect((await peer()).serialNumber).toBe(serial);
  portico!.signal("SIGUSR2");
  await portico!.says(/has taken over/);
  expect((await peer()).serialNumber).toBe(serial);
  await eventually(
    async () => (await listed())[0]!.state === "valid",
    "for the new master to look after it",
    SELDOM,
  );
  for (const pid of processes("master")) process.kill(pid, "SIGTERM");
  await portico!.gone;
  expect(portico!.errors).not.toMatch(/ordered/);
});

test("a reload with other names orders a certificate for them; a worker that starts later has it", async () => {
  await start(config(["a.example.net"]));
  await issued();
  portico!.rewrite(config(["a.example.net"], "http-01", ["c.example.net"]));
  const outcome = await askMaster(control(), { command: "reload" }, 20_000);
  expect(outcome).toMatchObject({ ok: true });
  await issued("c.example.net");
  expect((await peer("c.example.net")).subjectaltname).toBe("DNS:c.example.net");
  expect((await peer()).subjectaltname).toBe("DNS:a.example.net");
  for (const pid of processes("worker")) process.kill(pid, "SIGKILL");
  await eventually(() => processes("worker").length === 2, "for new workers", SELDOM);
  await eventually(
    async () => (await peer("c.example.net").catch(() => undefined))?.subjectaltname === "DNS:c.example.net",
    "for a handshake",
    SELDOM,
  );
});

/** Value of `Strict-Transport-Security` on a new connection. */
async function hsts(): Promise<string | undefined> {
  const socket = tls.connect({ port: ca.tlsPort, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "secureConnect");
  socket.write("GET / HTTP/1.1\r\nHost: a.example.net\r\n\r\n");
  const [response] = (await nextEvent(socket, "data")) as [Buffer];
  socket.destroy();
  return /^strict-transport-security: (.*)\r$/im.exec(response.toString("latin1"))?.[1];
}

/** The same config at an authority whose responses a test may change. */
function through(between: Between, what: ProxyConfigInput): ProxyConfigInput {
  const [authority] = what.certificateAuthorities!;
  return { ...what, certificateAuthorities: [{ ...authority!, directory: between.directory }] };
}

test("HSTS begins with the issued certificate, without a reload", async () => {
  const between = await Between.start(ca);
  let go: () => void = () => undefined;
  const gone = new Promise<void>((resolve) => (go = resolve));
  between.before = async ({ path }) => (path === "/order-plz" ? void (await gone) : undefined);
  const what = through(between, config(["a.example.net"]));
  const virtualServers = what.virtualServers.map((one) =>
    one.name === "site" ? { ...one, hsts: { maxAge: 300 } } : one,
  );
  await start({ ...what, virtualServers });
  await eventually(() => between.steps.some(({ path }) => path === "/order-plz"), "for the order");
  expect(issuerOf(await peer())).toMatch(/temporary/);
  expect(await hsts()).toBeUndefined();
  const workers = portico!.workers();
  go();
  await issued();
  await eventually(async () => (await hsts()) === "max-age=300", "for both workers to have it", SELDOM);
  expect(portico!.workers()).toEqual(workers);
  await between.stop();
});

test("after a change of the names, the certificate that serves meanwhile is listed as temporary", async () => {
  await start(config(["a.example.net"]));
  await issued();
  await ca.setAddress("b.example.net", "127.0.0.9");
  portico!.rewrite(config(["a.example.net", "b.example.net"]));
  expect(await askMaster(control(), { command: "reload" }, 20_000)).toMatchObject({ ok: true });
  await eventually(async () => (await listed())[0]!.state === "waiting", "for the failure", SELDOM);
  expect(issuerOf(await peer())).toMatch(/^Pebble/);
  expect((await listed())[0]).toMatchObject({
    names: ["a.example.net", "b.example.net"],
    source: "temporary",
    from: "ca",
    issuer: expect.stringMatching(/^Pebble/),
  });
  const shown = await ran("certificates", "--control", control());
  expect(shown.code).toBe(1);
  expect(shown.out).toMatch(/temporary, until ca issues one/);
  await ca.setAddress("b.example.net", "127.0.0.1");
  await ran("certificates", "renew", "--control", control());
  await eventually(async () => (await listed())[0]!.source === "acme", "for the wanted one", SELDOM);
  expect((await ran("certificates", "--control", control())).code).toBe(0);
});

test("a certificate with a weak signature is not put into service, and no worker is lost", async () => {
  const between = await Between.start(ca);
  let csr = "";
  between.before = ({ payload }) => {
    csr = (payload as { csr?: string } | undefined)?.csr ?? csr;
    return Promise.resolve();
  };
  // A signature by SHA-1 is too weak for a server.
  between.after = async ({ path }, response) =>
    path.startsWith("/certZ/") ? { ...response, body: await weak(csr) } : undefined;
  await start(through(between, config(["a.example.net"])));
  const workers = portico!.workers();
  await eventually(async () => (await listed())[0]!.state === "waiting", "for the failure", SELDOM);
  expect((await listed())[0]).toMatchObject({
    source: "temporary",
    lastError: { code: "unusableCertificate", message: expect.stringContaining("is signed with SHA-1") },
  });
  expect(issuerOf(await peer())).toMatch(/temporary/);
  expect(portico!.workers()).toEqual(workers);
  await between.stop();
});

async function weak(csr: string): Promise<string> {
  const request = new x509.Pkcs10CertificateRequest(Buffer.from(csr, "base64url"));
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    hash: "SHA-1",
    modulusLength: 2048,
    publicExponent: new Uint8Array([1, 0, 1]),
  };
  const keys = await webcrypto.subtle.generateKey(algorithm, false, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create(
    {
      serialNumber: "01",
      subject: "CN=a",
      issuer: "CN=weak",
      notBefore: new Date(Date.now() - 3_600_000),
      notAfter: new Date(Date.now() + 3_600_000_000),
      signingAlgorithm: algorithm,
      publicKey: request.publicKey,
      signingKey: keys.privateKey,
      extensions: [new x509.SubjectAlternativeNameExtension([{ type: "dns", value: "a.example.net" }])],
    },
    webcrypto,
  );
  return `${certificate.toString("pem")}\n`;
}

describe("doctor names the cause of a certificate that is not issued:", () => {
  /** One for all of them: it asks for each at an authority of its own. */
  let asking: { readonly portico: Portico; readonly folder: string; readonly config: ProxyConfigInput };
  let elsewhere: http.Server;
  beforeAll(async () => {
    folder = openFolder();
    await ca.setAddress("closed.example.net", "127.0.0.9");
    elsewhere = http.createServer((_, response) => response.writeHead(404).end());
    await once(elsewhere.listen(ca.httpPort, "127.0.0.8"), "listening");
    await ca.setAddress("moved.example.net", "127.0.0.8");
    const [down] = await freePorts(1);
    const { key, cert } = await issue({ type: "ec", names: ["other.example"] });
    writeFileSync(join(folder, "roots.pem"), cert);
    expect(key).toMatch(/PRIVATE KEY/);
    const what = oneEach({
      closed: {},
      moved: {},
      down: { directory: `https://127.0.0.1:${down}/dir` },
      untrusted: { roots: join(folder, "roots.pem") },
      blocked: {},
    });
    asking = { portico: await start(what), folder, config: what };
    portico = undefined;
  });
  beforeEach(() => void (folder = asking.folder));
  afterAll(async () => {
    elsewhere.close();
    await asking.portico.stop();
  });

  /** A certificate for each name, from an authority of this name with these differences. */
  function oneEach(authorities: Readonly<Record<string, object>>): ProxyConfigInput {
    const base = config(["a.example.net"]);
    const [usual] = base.certificateAuthorities!;
    const acme = (name: string) => ({ acme: { authority: name, names: [`${name}.example.net`] } });
    const [first, ...further] = Object.keys(authorities).map(acme);
    const tls = { ...first!, certificates: further, policy: "mozilla-intermediate" as const };
    return {
      ...base,
      workers: 1,
      certificateAuthorities: Object.entries(authorities).map(([name, more]) => ({
        ...usual!,
        name,
        ...more,
      })),
      listeners: base.listeners.map((one) => (one.protocol === "https" ? { ...one, tls } : one)),
    };
  }

  /** What `portico doctor` says of what the running proxy knows of a certificate. */
  async function diagnosed(name: string): Promise<{ failed: string[]; texts: string }> {
    const found = async () => (await listed()).find(({ names }) => names[0] === name)!;
    await eventually(async () => (await found()).lastError !== undefined, "for the failure", {
      seen: () => asking.portico.errors,
      ...SELDOM,
    });
    const certificate = await found();
    expect(certificate).toMatchObject({ source: "temporary" });
    expect(issuerOf(await peer(name))).toMatch(/temporary/);
    const parsed = parseConfig(asking.config);
    if (!parsed.ok) throw new ProblemError(parsed.problems);
    const evidence = {
      place: "host",
      config: parsed.value,
      responses: [],
      certificates: [certificate],
    } as const;
    const acme = diagnose(evidence).filter(({ id }) => id.startsWith("acme-"));
    const failed = acme.filter(({ status }) => status === "failed");
    expect(acme.find(({ id }) => id === "acme-certificates")!.status).not.toBe("ok");
    return {
      failed: failed.map(({ id }) => id),
      texts: failed.map(({ cause, fix }) => `${cause}: ${fix}`).join("\n"),
    };
  }

  test.each([
    ["closed", "acme-port", /cannot connect to this host: Make port 80 of this host reachable/],
    [
      "moved",
      "acme-dns",
      /resolves to another host.*: Check that every A and AAAA record of moved\.example\.net points to this host/,
    ],
    ["down", "acme-authority", /Let this host open connections/],
    ["untrusted", "acme-authority", /set roots of .* to its root certificates/],
    ["blocked", "acme-certificates", /Remove blocked\.example\.net from the names/],
  ])("%s.example.net: %s", async (name, row, words) => {
    const { failed, texts } = await diagnosed(`${name}.example.net`);
    expect(failed).toEqual([row]);
    expect(texts).toMatch(words);
  });
});

test("portico certificates shows a table and JSON, and renews on demand", async () => {
  await start(config(["a.example.net"]));
  await issued();
  const serial = (await peer()).serialNumber;
  const shown = await ran("certificates", "--control", control());
  expect(shown).toMatchObject({ code: 0, err: "" });
  expect(shown.out).toMatch(
    /^NAMES +ISSUER +DAYS LEFT +SOURCE +NEXT ATTEMPT\na\.example\.net +Pebble [^\n]* +\d+ +ACME \(ca\) +20[^\n]* UTC\n$/,
  );
  const asJson = await ran("certificates", "--json", "--control", control());
  expect(JSON.parse(asJson.out)).toMatchObject({
    ok: true,
    certificates: [{ names: ["a.example.net"], source: "acme" }],
  });
  const renewed = await ran("certificates", "renew", "a.example.net", "--control", control());
  expect(renewed).toMatchObject({ code: 0, out: "renewed: a.example.net\n" });
  await eventually(async () => (await peer()).serialNumber !== serial, "for the new certificate", SELDOM);
  const unknown = await ran("certificates", "renew", "other.example.net", "--control", control());
  expect(unknown.code).toBe(1);
  expect(unknown.err).toMatch(/acme\.unknown-name/);
});

test("without a directory for them no certificate is asked for, which the log and doctor say", async () => {
  mkdirSync(join(folder, "run"));
  portico = await Portico.start(config(["a.example.net"]), {
    env: { RUNTIME_DIRECTORY: join(folder, "run") },
  });
  await portico.says(/no certificate is requested/);
  const shown = await ran("certificates", "--control", control());
  expect(shown.code).toBe(1);
  expect(shown.out).toMatch(/temporary, until ca issues one/);
  const parsed = parseConfig(config(["a.example.net"]));
  const certificates = await listed();
  const rows = diagnose({
    place: "host",
    config: parsed.ok ? parsed.value : never(),
    responses: [],
    certificates,
  });
  expect(rows.find(({ id }) => id === "acme-certificates")!.cause).toMatch(
    /no directory to store the certificate in/,
  );
});

const never = (): never => {
  throw new Error("the config has problems");
};

async function ran(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const to = { out: "", err: "" };
  const code = await run(args, {
    out: (text) => void (to.out += text),
    err: (text) => void (to.err += text),
  });
  return { code, ...to };
}
