import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { DnsApiConfig } from "../../src/model/serving.js";
import { fixed, loopback, oneServer } from "../../testkit/oneServer.js";
import { openFolder, Portico } from "../../testkit/portico.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import { TestCa } from "./ca.js";
import { type Answer, DnsApiServer, type Provider, Records } from "./dnsApiServer.js";
import { Cloudflare, Desec, DuckDns, Hetzner } from "./dnsProviders.js";
import { issued, type Stage, startStage } from "./stage.js";

/** Names that are proved by records at a DNS provider, which a stand-in for its published API writes. */

let ca: TestCa;
beforeAll(async () => (ca = await TestCa.start()));
afterAll(() => ca.stop());

let stage: Stage;
let server: DnsApiServer;
let published = true;
beforeEach(() => (published = true));
afterEach(async () => {
  await stage.stop();
  server.stop();
}, 60_000);

const ZONE = "provider.example";
const PROOF = `_acme-challenge.${ZONE}`;
const DUCK = "house.duckdns.org";
const DUCK_NAMES = ["", "a.", "b."].map((sub) => `_acme-challenge.${sub}${DUCK}`);

const records = (): Records =>
  new Records(async (name, values) => {
    if (published) await ca.setTexts(name, values);
  });
// The longest zone is the one of the record, and a sibling's name only looks like it.
const ZONES = ["example", ZONE, "der.example"];
const PROVIDERS = {
  cloudflare: () => new Cloudflare(records(), ZONES),
  desec: () => new Desec(records(), ZONES),
  duckdns: () => new DuckDns(records(), { house: DUCK_NAMES }),
  hetzner: () => new Hetzner(records(), ZONES),
};
type Type = keyof typeof PROVIDERS;
const TYPES = Object.keys(PROVIDERS) as Type[];
const namesFor = (type: Type): string[] => {
  const domain = type === "duckdns" ? DUCK : ZONE;
  return [domain, `*.${domain}`, `a.${domain}`];
};

async function begin<P extends Provider>(provider: P, names: readonly string[], more: object = {}) {
  server = await DnsApiServer.start({ key: ca.key, certificate: ca.certificate }, provider);
  stage = await startStage({}, ca);
  const tokenFile = join(stage.state, "token");
  writeFileSync(tokenFile, `${provider.token}\n`, { mode: 0o600 });
  const dns: DnsApiConfig = {
    ...{ type: provider.type, url: server.url, roots: ca.roots, tokenFile },
    ...{ publishMs: 0, nameServers: [], waitMs: 60_000, ...more },
  };
  const one = stage.wanted(names, { challenge: "dns-01", authority: { dns } });
  const engine = stage.engine();
  return { provider, dns, one, engine, tokenFile };
}

async function order<P extends Provider>(provider: P, names: readonly string[], more: object = {}) {
  const begun = await begin(provider, names, more);
  begun.engine.lookAfter([begun.one]);
  return begun;
}

async function failure({ engine }: { engine: ReturnType<Stage["engine"]> }) {
  const failed = () => engine.status()[0]?.lastError;
  const said = () => stage.host.lines.some((line) => line.startsWith("error certificate not issued"));
  await eventually(said, "for a failure", { seen: () => stage.host.lines.join("\n") });
  const asked = stage.between.steps.some(({ path }) => path.startsWith("/chalZ/"));
  return { ...failed()!, asked, nextAttempt: engine.status()[0]!.nextAttempt };
}

const goneAll = (all: Records, but: readonly string[] = []): Promise<void> =>
  eventually(
    () => [...all.values.values()].flat().every((value) => but.includes(value)),
    "for the removal of the records",
    { seen: () => `${JSON.stringify([...all.values])}\n${stage.host.lines.join("\n")}` },
  );

/** All that the engine wrote and said. */
function written(): string {
  const files = (readdirSync(stage.state, { recursive: true }) as string[])
    .map((name) => join(stage.state, name))
    .filter((path) => statSync(path).isFile() && !path.endsWith("/token"));
  return [...files.map((path) => readFileSync(path, "utf8")), ...stage.host.lines].join("\n");
}

describe.each(TYPES)("by the API of %s", (type) => {
  test("a domain, its wildcard and a name, and their renewal; others' values stay, and the token is in no file", async () => {
    const provider = PROVIDERS[type]();
    if (provider instanceof Cloudflare) await provider.add(PROOF, "somebody-else");
    else if (!(provider instanceof DuckDns)) await provider.records.set(PROOF, ["somebody-else"]);
    if (provider instanceof Hetzner) provider.ttls.set(PROOF, 300);
    const { one, engine, dns } = await order(provider, namesFor(type));
    await issued(stage, one.id);
    await goneAll(provider.records, ["somebody-else"]);
    stage.clock.advance(60_000);
    const renewed = await engine.renewNow();
    expect(renewed).toEqual({ ok: true, value: expect.stringContaining("renewed") });
    await goneAll(provider.records, ["somebody-else"]);
    if (type !== "duckdns") expect(provider.records.of(PROOF)).toEqual(["somebody-else"]);
    expect(stage.host.history).toEqual([]);
    expect(stage.host.lines.filter((line) => !line.startsWith("info"))).toEqual([]);
    expect(written()).not.toContain(provider.token);
    expect(JSON.stringify([dns, engine.status()])).not.toContain(provider.token);
  });

  test("no authority is asked with a wrong token, and the message says what it has to be, but not what it is", async () => {
    const begun = await begin(PROVIDERS[type](), namesFor(type));
    const wrong = "0123456789abcdef0123456789abcdef01234567";
    writeFileSync(begun.tokenFile, wrong);
    begun.engine.lookAfter([begun.one]);
    const failed = await failure(begun);
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(
      /\(127\.0\.0\.1:\d+\) rejects the token, or the token may not do this \(\d+\)/,
    );
    expect(failed.fix).toMatch(
      new RegExp(`^Put an? ?.*token.* into ${begun.tokenFile}\\.|^Put the token .* into`),
    );
    expect(written()).not.toContain(wrong);
    // The file is read again.
    writeFileSync(begun.tokenFile, begun.provider.token);
    stage.clock.advance(60_000);
    expect(await begun.engine.renewNow()).toEqual({ ok: true, value: expect.stringContaining("renewed") });
  });

  test("a limit that ends soon, an error and a response that is none are waited for", async () => {
    const begun = await begin(PROVIDERS[type](), namesFor(type).slice(0, 1));
    const faults: (Answer | undefined)[] = [
      { status: 429, body: { detail: "Request was throttled." }, headers: { "retry-after": "3" } },
      { status: 502, body: "<html>bad gateway</html>" },
    ];
    server.fault = () => faults.shift();
    begun.engine.lookAfter([begun.one]);
    const began = Date.now();
    await issued(stage, begun.one.id);
    expect(Date.now() - began).toBeGreaterThan(4_500);
    await goneAll(begun.provider.records);
  }, 60_000);

  test("a limit that lasts is respected", async () => {
    const begun = await begin(PROVIDERS[type](), namesFor(type).slice(0, 1));
    const limit = { status: 429, body: {}, headers: { "retry-after": "7200" } };
    server.fault = () => limit;
    begun.engine.lookAfter([begun.one]);
    const failed = await failure(begun);
    expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
    expect(failed.message).toMatch(/takes no more requests for now \(429\)/);
    expect(failed.fix).toContain("The DNS provider asked for this pause");
    expect(failed.nextAttempt! - stage.clock.now()).toBeGreaterThan(7_000_000);
    expect(server.requests).toHaveLength(1);
  });

  test("the next process finds the records of an order in progress, and writes none of them again", async () => {
    const provider = PROVIDERS[type]();
    const begun = await begin(provider, namesFor(type));
    // The records are written, and the order goes no further.
    stage.between.before = ({ path }) => Promise.resolve(path.startsWith("/chalZ/") ? "cut" : undefined);
    begun.engine.lookAfter([begun.one]);
    await failure(begun);
    const all = (): string[] => [...provider.records.values.values()].flat();
    const before = all();
    expect(before.length).toBeGreaterThan(0);
    await begun.engine.stop();
    expect(all()).toEqual(before);
    stage.between.before = () => Promise.resolve();
    server.requests.length = 0;
    stage.engine().lookAfter([begun.one]);
    await issued(stage, begun.one.id, 1);
    await goneAll(provider.records);
    const added = server.requests.filter((line) => /^POST .*(?:dns|add)_records$/.test(line));
    expect(added).toEqual([]);
  }, 60_000);

  test("records are removed after a refusal of the authority", async () => {
    published = false;
    const provider = PROVIDERS[type]();
    const begun = await order(provider, namesFor(type).slice(0, 1));
    const failed = await failure(begun);
    expect(failed).toMatchObject({ code: "dnsProof", asked: true });
    await goneAll(provider.records);
  });
});

test("a response that does not come is not awaited for ever", async () => {
  const begun = await begin(PROVIDERS.cloudflare(), [ZONE]);
  server.fault = () => "silence";
  begun.engine.lookAfter([begun.one]);
  const failed = await failure(begun);
  expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
  expect(failed.message).toMatch(
    /does not respond: 127\.0\.0\.1:\d+: (?:it did not respond in time|no response within)/,
  );
}, 90_000);

test.each<[string, Answer | "close", RegExp]>([
  ["closes the connection", "close", /does not respond: /],
  ["fails again and again", { status: 503, body: "" }, /\(127\.0\.0\.1:\d+\) failed \(503\)$/],
  ["sends no end", { status: 200, body: "x".repeat(2_000_000) }, /the response is longer than a megabyte/],
  [
    "redirects",
    { status: 302, body: "", headers: { location: "https://example.org/" } },
    /responded with 302/,
  ],
  [
    "repeats the token in an error",
    { status: 400, body: { errors: [{ message: `no: ${"cf_-".repeat(10)}` }] } },
    /no: …/,
  ],
  ["responds with another form", { status: 200, body: '{"result":{"0":null}}' }, /shows this token no zone/],
])("an API that %s", async (_, answer, message) => {
  const begun = await begin(PROVIDERS.cloudflare(), [ZONE]);
  server.fault = () => answer;
  begun.engine.lookAfter([begun.one]);
  const failed = await failure(begun);
  expect(failed).toMatchObject({ code: "dnsUpdate", asked: false });
  expect(failed.message).toMatch(message);
  expect(written()).not.toContain(begun.provider.token);
});

test("the token of DuckDNS, which is in the URL, is in no message about the URL", async () => {
  const begun = await begin(PROVIDERS.duckdns(), [DUCK]);
  server.fault = () => ({ status: 200, body: "x".repeat(2_000_000) });
  begun.engine.lookAfter([begun.one]);
  expect((await failure(begun)).message).toMatch(/longer than a megabyte$/);
  expect(written()).not.toContain(begun.provider.token);
});

test("a name that no zone of the account has, and a token whose policy leaves the record out", async () => {
  const failed = await failure(await order(PROVIDERS.hetzner(), ["a.elsewhere.test"]));
  expect(failed.message).toMatch(
    /Hetzner shows this token no zone that has _acme-challenge\.a\.elsewhere\.test$/,
  );
  await stage.stop();
  server.stop();
  const provider = PROVIDERS.desec();
  provider.allowed = (subname) => subname === "_acme-challenge.b";
  const refused = await failure(await order(provider, [ZONE]));
  expect(refused.message).toMatch(/\(403\): You do not have permission to perform this action$/);
  expect(refused.fix).toContain("whose policy allows to write TXT records");
});

test("a CNAME record leads to a name at the provider, the zone's own too", async () => {
  await ca.setAlias("_acme-challenge.c.elsewhere.test", ZONE);
  const provider = PROVIDERS.desec();
  const { one } = await order(provider, ["c.elsewhere.test"], { alias: ZONE });
  await issued(stage, one.id);
  expect(server.requests.some((line) => line.startsWith(`GET /api/v1/domains/${ZONE}/rrsets/.../TXT/`))).toBe(
    true,
  );
  await goneAll(provider.records);
});

test("two orders with one domain of DuckDNS do not overwrite each other's value", async () => {
  const { dns, engine, provider } = await begin(PROVIDERS.duckdns(), []);
  const orders = ["a", "b"].map((sub) =>
    stage.wanted([`${sub}.${DUCK}`], { challenge: "dns-01", authority: { dns } }),
  );
  // Long enough for the other order to write its value, and for this one to remove its own.
  stage.between.before = async ({ path }) => {
    if (path.startsWith("/chalZ/")) await new Promise((resolve) => setTimeout(resolve, 2_000));
  };
  engine.lookAfter(orders);
  const areIssued = () => orders.every(({ id }) => stage.host.installed.has(id));
  await eventually(areIssued, "for both certificates", { seen: () => stage.host.lines.join("\n") });
  await goneAll(provider.records);
  expect(stage.host.history).toEqual([]);
});

test("without name servers the authority is asked once the provider had time to publish", async () => {
  const { engine, one } = await order(PROVIDERS.cloudflare(), [ZONE], { publishMs: 60_000 });
  const isWritten = () => server.requests.some((line) => line.startsWith("POST"));
  await eventually(isWritten, "for the record");
  const moment = () => new Promise((resolve) => setTimeout(resolve, 500));
  await moment();
  // The clock goes on meanwhile: a busy machine takes a few of the seconds that are left.
  stage.clock.advance(45_000);
  await moment();
  expect(stage.between.steps.some(({ path }) => path.startsWith("/chalZ/"))).toBe(false);
  stage.clock.advance(15_000);
  await issued(stage, one.id);
  expect(engine.status()[0]!.state).toBe("valid");
});

test("a whole front end reads the token as a credential of systemd", async () => {
  const { dns, provider } = await begin(PROVIDERS.desec(), []);
  const folder = openFolder();
  writeFileSync(join(folder, "dns-token"), provider.token, { mode: 0o600 });
  const [port] = (await freePorts(1)) as [number];
  const config = oneServer({
    certificateAuthorities: [
      {
        ...{ name: "ca", directory: ca.directory, agreeToTerms: true, roots: ca.roots },
        dns: { ...dns, tokenFile: "/nowhere/dns-token" },
      },
    ],
    listeners: [
      loopback("https", port, { acme: { authority: "ca", names: [`*.${ZONE}`] }, policy: "mozilla-modern" }),
    ],
    server: { serverNames: [`*.${ZONE}`] },
    routes: [fixed("wild")],
  });
  const state = join(folder, "state");
  const env = { STATE_DIRECTORY: state, RUNTIME_DIRECTORY: folder, CREDENTIALS_DIRECTORY: folder };
  const portico = await Portico.start(config, { env });
  try {
    const isIssued = () => portico.errors.includes("issued by Pebble");
    await eventually(isIssued, "for the certificate", { seen: () => portico.errors, everyMs: 100 });
    await goneAll(provider.records);
    expect(portico.errors).not.toContain(provider.token);
  } finally {
    await portico.stop();
  }
});
