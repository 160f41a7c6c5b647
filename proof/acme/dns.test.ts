import { X509Certificate } from "node:crypto";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer as createHttpsServer, type Server } from "node:https";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { once } from "node:events";
import type { DnsProofsConfig } from "../../src/model/index.js";
import { connect as connectTls } from "node:tls";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { alive, openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { AcmeDns } from "./acmeDns.js";
import { Bind } from "./bind.js";
import { TestCa } from "./ca.js";
import { issued, type Stage, startStage } from "./stage.js";

/** Names that are proved by DNS records (dns-01). */

let bind: Bind;
/** Asks BIND, and one that is told what its records are. */
let ca: TestCa;
let toldCa: TestCa;
beforeAll(async () => {
  bind = await Bind.start();
  [ca, toldCa] = await Promise.all([TestCa.start({ dnsPort: bind.primary }), TestCa.start()]);
});
afterAll(() => Promise.all([bind.stop(), ca.stop(), toldCa.stop()]));

let stage: Stage;
afterEach(() => stage.stop(), 60_000);

const WAIT = { nameServers: [], waitMs: 60_000 };
const server = (port: number) => ({ address: "127.0.0.1", port });
const updates = (more: object = {}): DnsProofsConfig => ({
  type: "rfc2136",
  server: server(bind.primary),
  zone: "example.net",
  keyFile: bind.keyFile,
  ttlSeconds: 60,
  ...WAIT,
  ...more,
});

async function begin(dns: DnsProofsConfig, names: readonly string[], of = ca) {
  stage = await startStage({}, of);
  const one = stage.wanted(names, { challenge: "dns-01", authority: { dns } });
  const engine = stage.engine();
  engine.lookAfter([one]);
  return { one, engine };
}

const alternatives = (id: string): string[] =>
  new X509Certificate(stage.host.installed.get(id)!.cert).subjectAltName!.split(", ").sort();

/** The failure of the first attempt, and whether the authority was asked to look. */
async function failure({ engine }: Awaited<ReturnType<typeof begin>>) {
  const failed = () => engine.status()[0]?.lastError;
  await eventually(() => failed() !== undefined, "for a failure", {
    seen: () => stage.host.lines.join("\n"),
  });
  const asked = stage.between.steps.some(({ path }) => path.startsWith("/chalZ/"));
  return { ...failed()!, asked };
}

describe("by updates of BIND (RFC 2136)", () => {
  test("a wildcard, its domain and a name, once the secondary shows the records, which are removed then", async () => {
    // Pebble panics at a name that its list of blocked ones ends with: `example.net`.
    const names = ["w.example.net", "*.w.example.net", "a.example.net"];
    const shown: number[] = [];
    const nameServers = [server(bind.primary), server(bind.secondary)];
    const { one } = await begin(updates({ nameServers }), names);
    stage.between.before = async ({ path }) => {
      if (path.startsWith("/chalZ/"))
        shown.push((await bind.values(bind.secondary, "_acme-challenge.w.example.net")).length);
    };
    await issued(stage, one.id);
    expect(alternatives(one.id)).toEqual(["DNS:*.w.example.net", "DNS:a.example.net", "DNS:w.example.net"]);
    expect(shown).toEqual([2, 2, 2]);
    for (const name of ["_acme-challenge.w.example.net", "_acme-challenge.a.example.net"])
      await eventually(async () => (await bind.values(bind.primary, name)).length === 0, "for the removal");
    expect(stage.host.history).toEqual([]);
    expect(stage.host.lines.filter((line) => !line.startsWith("info"))).toEqual([]);
  });

  test("names of one zone by records in another, which CNAME records lead to", async () => {
    const dns = updates({ zone: "example.org", alias: "proofs.example.org" });
    const { one } = await begin(dns, ["there.example.net", "too.example.net"]);
    await issued(stage, one.id);
    const left = (): Promise<string[]> => bind.values(bind.primary, "proofs.example.org");
    await eventually(async () => (await left()).length === 0, "for the removal");
  });

  test.each([
    [
      "the key has another secret",
      () => ({ keyFile: bind.otherSecret }),
      /\(NOTAUTH\): the key of this name has another secret/,
    ],
    ["the key is unknown", () => ({ keyFile: bind.otherKey }), /\(NOTAUTH\): it does not know the key/],
    ["the zone is unknown", () => ({ zone: "net" }), /NOTAUTH/],
    ["the record is outside the zone", () => ({ zone: "example.org" }), /NOTZONE/],
    ["nothing listens", () => ({ server: server(1) }), /127\.0\.0\.1: the connection was refused/],
  ])("no authority is asked where %s", async (_, more, message) => {
    const failed = await failure(await begin(updates(more()), ["b.example.net"]));
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(message);
    expect(failed.fix).toContain("Let the DNS server 127.0.0.1 accept updates of");
    const [, secret] = /secret "(.*)"/.exec(readFileSync(bind.keyFile, "utf8"))!;
    expect(stage.host.lines.join("\n")).not.toContain(secret);
  });

  test.each<[string, Buffer, RegExp]>([
    ["what is no message", Buffer.from("\0\x03abc", "latin1"), /not a DNS message/],
    [
      "a message to something else",
      Buffer.concat([Buffer.from("\0\x0c", "latin1"), Buffer.alloc(12)]),
      /belongs to another message/,
    ],
    ["the half of one", Buffer.from("\xff\xffabc", "latin1"), /closed the connection without a response/],
  ])("nor where the server sends %s", async (_, bytes, message) => {
    const liar = createServer((socket) => socket.on("error", () => undefined).end(bytes)).listen(
      0,
      "127.0.0.1",
    );
    await once(liar, "listening");
    const dns = updates({ server: server((liar.address() as AddressInfo).port) });
    const failed = await failure(await begin(dns, ["b.example.net"]));
    liar.close();
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(message);
  });

  test("nor where one of the name servers does not show the record", async () => {
    const dns = updates({ nameServers: [server(bind.primary), server(1)], waitMs: 1_000 });
    const failed = await failure(await begin(dns, ["b.example.net"]));
    expect(failed).toMatchObject({ code: "dnsRecord", asked: false });
    expect(failed.message).toMatch(
      /127\.0\.0\.1 has no TXT record _acme-challenge\.b\.example\.net \(\w+\), after 1 s$/,
    );
  });

  test("an authority that finds nothing is said to have found no record", async () => {
    const failed = await failure(await begin(updates(), ["b.example.net"], toldCa));
    expect(failed).toMatchObject({ code: "dnsProof", asked: true });
    expect(failed.fix).toContain("dig TXT _acme-challenge.b.example.net");
  });
});

test("a whole front end serves a wildcard's names with their certificate", async () => {
  stage = await startStage({}, ca);
  const folder = openFolder();
  const [port] = (await freePorts(1)) as [number];
  const { nameServers: _, ...dns } = updates();
  const config = oneServer({
    certificateAuthorities: [
      { name: "ca", directory: ca.directory, agreeToTerms: true, roots: ca.roots, dns },
    ],
    listeners: [
      loopback("https", port, {
        acme: { authority: "ca", names: ["*.w.example.net"] },
        policy: "mozilla-modern",
      }),
    ],
    server: { serverNames: ["*.w.example.net"] },
    routes: [fixed("wild")],
  });
  const env = { STATE_DIRECTORY: join(folder, "state"), RUNTIME_DIRECTORY: folder };
  const portico = await Portico.start(config, { env });
  const issuerOf = async (name: string): Promise<string> => {
    const socket = connectTls({ host: "127.0.0.1", port, servername: name, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { issuer } = new X509Certificate(socket.getPeerCertificate().raw);
    socket.destroy();
    return issuer;
  };
  try {
    const isIssued = async () => (await issuerOf("any.w.example.net")).includes("Pebble");
    await eventually(isIssued, "for the certificate", { seen: () => portico.errors, everyMs: 100 });
  } finally {
    await portico.stop();
  }
});

describe("by a program", () => {
  const program = (script: string, more: object = {}): DnsProofsConfig => {
    const command = join(toldCa.folder, "record");
    writeFileSync(command, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    chmodSync(command, 0o755);
    return { type: "program", command, timeoutMs: 20_000, ...WAIT, ...more };
  };

  test("it is called for each record and afterwards, and what it says is in the log", async () => {
    const calls = join(toldCa.folder, "calls");
    const secret = join(toldCa.folder, "token");
    writeFileSync(secret, "a token");
    const api = `http://127.0.0.1:${toldCa.dnsManagementPort}`;
    const script = `echo "$@" $(cat $PORTICO_CREDENTIAL_FILE) >> ${calls}
      case $1 in
        present) curl -sf -d "{\\"host\\": \\"$2.\\", \\"value\\": \\"$3\\"}" ${api}/set-txt ;;
        cleanup) echo "gone: $2" >&2; yes | head -c 100000 >&2 ;;
      esac`;
    const { one } = await begin(
      program(script, { credentialFile: secret }),
      ["*.example.net", "c.example.net"],
      toldCa,
    );
    await issued(stage, one.id);
    await eventually(() => readFileSync(calls, "utf8").match(/^cleanup /gm)?.length === 2);
    const line = (change: string, name: string) =>
      expect.stringMatching(new RegExp(`^${change} _acme-challenge\\.${name} [\\w-]{43} a token$`));
    const names = ["example.net", "c.example.net"];
    const lines = readFileSync(calls, "utf8").trim().split("\n");
    expect(lines.sort()).toEqual(
      ["cleanup", "present"].flatMap((change) => names.map((name) => line(change, name)).reverse()),
    );
    const said = stage.host.lines.filter((text) => text.includes("cleanup"));
    expect(said[0]).toMatch(
      new RegExp(
        `^info .*/record cleanup \\S+ [\\w-]{43}: done after \\d+\\.\\d s, as user ${process.geteuid!()}: y`,
      ),
    );
    for (const text of said) expect(text.length).toBeLessThan(5_000);
  });

  test("each record is removed that can be, and what a program that fails says last is in the log and the reason", async () => {
    const calls = join(toldCa.folder, "calls of cleanup");
    const api = `http://127.0.0.1:${toldCa.dnsManagementPort}`;
    const script = `echo "$@" >> '${calls}'
      case $1 in
        present) curl -sf -d "{\\"host\\": \\"$2.\\", \\"value\\": \\"$3\\"}" ${api}/set-txt ;;
        cleanup) yes | head -c 1000 >&2; echo "the zone is locked" >&2; exit 4 ;;
      esac`;
    const { one } = await begin(program(script), ["*.example.net", "d.example.net"], toldCa);
    await issued(stage, one.id);
    await eventually(() => stage.host.lines.some((text) => text.includes("a DNS record was not removed")));
    expect(readFileSync(calls, "utf8").match(/^cleanup /gm)).toHaveLength(2);
    const said = stage.host.lines.filter((text) => text.includes("the zone is locked"));
    expect(
      said.filter((text) => /^warn .*\/record cleanup \S+ \S+: ended with status 4 after /.test(text)),
    ).toHaveLength(2);
    expect(said.at(-1)).toMatch(
      /^warn a DNS record was not removed .* ended with status 4: …[^…]*the zone is locked$/,
    );
  });

  test.each<[string, string, object, RegExp]>([
    [
      "fails",
      "echo no such zone >&2; exit 3",
      {},
      /record present _acme-challenge\.c\.example\.net \S+ ended with status 3: no such zone$/,
    ],
    ["is killed", "kill -TERM $$", {}, / present \S+ \S+ ended with SIGTERM$/],
    ["takes too long", "sleep 60 & sleep 60", { timeoutMs: 300 }, /was killed: it took longer than 0\.3 s$/],
    ["is missing", "", { command: "/nowhere" }, /\/nowhere cannot be run \(2: No such file or directory\)$/],
    ["is a directory", "", { command: "/usr" }, /\/usr is a directory: Use the path of a regular file\.?$/],
  ])("no authority is asked where it %s", async (_, script, more, message) => {
    const failed = await failure(await begin(program(script, more), ["c.example.net"], toldCa));
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(message);
  });

  test.each([
    [0o4755, /would run as another user or group/],
    [0o2755, /would run as another user or group/],
    [0o775, /can be changed by other users/],
    [0o757, /can be changed by other users/],
    [0o644, /cannot be run/],
  ])("nor is it run with the mode %s", async (mode, message) => {
    const dns = program("exit 0");
    if (dns.type === "program") chmodSync(dns.command, mode);
    expect((await failure(await begin(dns, ["c.example.net"], toldCa))).message).toMatch(message);
  });

  test("nor where its interpreter is missing", async () => {
    const dns = program("exit 0");
    if (dns.type === "program") writeFileSync(dns.command, "#!/nowhere/sh\n");
    const { message } = await failure(await begin(dns, ["c.example.net"], toldCa));
    expect(message).toMatch(/ present \S+ \S+ cannot be run \(2: No such file or directory\)$/);
  });

  test("nor where a name server shows another record of that name", async () => {
    const more = { alias: "ready.example.net", nameServers: [server(bind.primary)], waitMs: 1_000 };
    const failed = await failure(await begin(program("exit 0", more), ["c.example.net"], toldCa));
    expect(failed).toMatchObject({ code: "dnsRecord", asked: false });
    expect(failed.message).toMatch(
      /127\.0\.0\.1 has a TXT record ready\.example\.net, but not with \S{43}, after 1 s$/,
    );
  });

  test("a stop ends it with all that it has started", async () => {
    const pids = join(toldCa.folder, "pids");
    const script = `sleep 3600 & echo $$ $! > ${pids}.new; mv ${pids}.new ${pids}; wait`;
    const { engine } = await begin(program(script, { timeoutMs: 600_000 }), ["c.example.net"], toldCa);
    await eventually(() => existsSync(pids), "for the program");
    await engine.stop();
    const running = () => readFileSync(pids, "utf8").trim().split(" ").map(Number).filter(alive);
    await eventually(() => running().length === 0, "for its end");
  }, 60_000);

  test("a record that cannot be removed stays behind, which the log says", async () => {
    const api = `http://127.0.0.1:${toldCa.dnsManagementPort}`;
    const script = `[ $1 = cleanup ] && exit 4
      curl -sf -d "{\\"host\\": \\"$2.\\", \\"value\\": \\"$3\\"}" ${api}/set-txt`;
    const { one } = await begin(program(script), ["c.example.net"], toldCa);
    await issued(stage, one.id);
    await eventually(() => stage.host.lines.some((text) => text.includes("a DNS record was not removed")));
    expect(stage.host.lines).toContainEqual(
      expect.stringMatching(
        /^warn a DNS record was not removed after use: .*record cleanup .* ended with status 4$/,
      ),
    );
  });
});

describe("by acme-dns", () => {
  const account = (name: string) => ({
    username: `user-${name}`,
    password: `password-${name}`,
    subdomain: name,
    fulldomain: `${name}.auth.example.net`,
    allowfrom: [],
  });
  let acmeDns: Server;
  let respond: (txt: string) => { status: number; body: string };
  beforeAll(async () => {
    acmeDns = createHttpsServer({ key: toldCa.key, cert: toldCa.certificate }, async (request, response) => {
      const { subdomain, txt } = JSON.parse(await text(request)) as { subdomain: string; txt: string };
      const { username, password } = account(subdomain);
      const known = request.headers["x-api-user"] === username && request.headers["x-api-key"] === password;
      if (known) await toldCa.setText(`${subdomain}.auth.example.net`, txt);
      const { status, body } = known ? respond(txt) : { status: 401, body: '{"error":"forbidden"}' };
      response.writeHead(status).end(body);
    });
    await once(acmeDns.listen(0, "127.0.0.1"), "listening");
    for (const name of ["d.example.net", "e.example.net"])
      await toldCa.setAlias(`_acme-challenge.${name}`, `${name[0]}.auth.example.net`);
  });
  beforeEach(() => (respond = (txt) => ({ status: 200, body: JSON.stringify({ txt }) })));
  afterAll(() => acmeDns.close());

  const told = (accounts: object): DnsProofsConfig => {
    const accountsFile = join(toldCa.folder, "accounts.json");
    writeFileSync(accountsFile, JSON.stringify(accounts));
    const url = `https://127.0.0.1:${(acmeDns.address() as AddressInfo).port}/`;
    return { type: "acme-dns", url, accountsFile, roots: toldCa.roots, ...WAIT };
  };

  test("each name by its account, the wildcard by that of its domain", async () => {
    const dns = told({ "d.example.net": account("d"), "e.example.net": account("e") });
    const { one } = await begin(dns, ["d.example.net", "*.d.example.net", "e.example.net"], toldCa);
    await issued(stage, one.id);
    expect(alternatives(one.id)).toHaveLength(3);
    expect(stage.host.lines.join("\n")).not.toContain("password");
  });

  test.each<[string, () => object, typeof respond | undefined, RegExp]>([
    [
      "does not know the account",
      () => ({ ...account("d"), password: "x" }),
      undefined,
      /responded with 401: it does not know the account/,
    ],
    [
      "confirms another value",
      () => account("d"),
      () => ({ status: 200, body: '{"txt":"x"}' }),
      /responded with 200: it does not confirm/,
    ],
    [
      "responds without JSON",
      () => account("d"),
      () => ({ status: 200, body: "<html>" }),
      /responded with 200: it does not confirm/,
    ],
    [
      "responds without end",
      () => account("d"),
      () => ({ status: 200, body: "x".repeat(2_000_000) }),
      /the acme-dns server .* longer than a megabyte/,
    ],
  ])("no authority is asked where the server %s", async (_, accounts, said, message) => {
    if (said !== undefined) respond = said;
    const failed = await failure(await begin(told(accounts()), ["d.example.net"], toldCa));
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(message);
  });

  test("an account that would lose values is not used, and a name without one neither", async () => {
    const names = ["d.example.net", "*.d.example.net", "e.example.net"];
    const failed = await failure(await begin(told(account("d")), names, toldCa));
    expect(failed.message).toMatch(/keeps 2 values, and 3 are needed/);
    await stage.stop();
    const missing = await failure(
      await begin(told({ "d.example.net": account("d") }), ["e.example.net"], toldCa),
    );
    expect(missing.message).toMatch(/accounts\.json has no account for e\.example\.net$/);
  });
});

// It is no package of a registry: PORTICO_ACME_DNS names the program for whoever has built it.
const { PORTICO_ACME_DNS: program } = process.env;
if (program !== undefined)
  test("by the real acme-dns: a domain and its wildcard", async () => {
    const server = await AcmeDns.start(program, toldCa);
    const account = await server.register();
    const own = await Bind.start(`_acme-challenge.real CNAME ${account.fulldomain}.\n`, {
      [AcmeDns.zone]: server.dnsPort,
    });
    const asking = await TestCa.start({ dnsPort: own.primary });
    try {
      const accountsFile = join(asking.folder, "accounts.json");
      writeFileSync(accountsFile, JSON.stringify({ "real.example.net": account }));
      const dns = { type: "acme-dns", url: server.url, accountsFile, roots: toldCa.roots, ...WAIT } as const;
      const { one } = await begin(dns, ["real.example.net", "*.real.example.net"], asking);
      await issued(stage, one.id);
      expect(alternatives(one.id)).toEqual(["DNS:*.real.example.net", "DNS:real.example.net"]);
      const [first, second] = await own.values(own.primary, "_acme-challenge.real.example.net");
      expect(first).toMatch(/^[\w-]{43}$/);
      expect(second).toMatch(/^[\w-]{43}$/);
    } finally {
      await Promise.all([server.stop(), own.stop(), asking.stop()]);
    }
  });
