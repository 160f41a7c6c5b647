import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { eventually } from "../../testkit/waiting.js";
import { TestCa } from "./ca.js";
import { issued, type Stage, startStage } from "./stage.js";

/** Certificates from an authority as it should be. */

/** For all tests that want nothing else of it. */
let usualCa: TestCa;
beforeAll(async () => (usualCa = await TestCa.start({ saysWhen: true })));
afterAll(() => usualCa.stop());

let stage: Stage;
const begin = async (ca = usualCa): Promise<Stage> => (stage = await startStage({}, ca));
afterEach(() => stage.stop());

const HOUR = 3_600_000;
const DAY = 24 * HOUR;

const leafOf = (id: string): X509Certificate => new X509Certificate(stage.host.installed.get(id)!.cert);
const daysOf = (leaf: X509Certificate): number =>
  Math.round((Date.parse(leaf.validTo) - Date.parse(leaf.validFrom)) / DAY);

const KEYS = [
  ["http-01", "ecdsa-p256"],
  ["http-01", "rsa-2048"],
  ["tls-alpn-01", "ecdsa-p256"],
  ["tls-alpn-01", "rsa-2048"],
] as const;

test.each(KEYS)("for two names by %s with a key of %s", async (challenge, keyType) => {
  const { host, state, engine, wanted } = await begin();
  const one = wanted(["a.example.net", "b.example.net"], { challenge, keyType });
  const certificates = engine();
  expect((await certificates.stored([one])).size).toBe(0);
  certificates.lookAfter([one]);
  await issued(stage, one.id);
  const { key, cert } = host.installed.get(one.id)!;
  const leaf = leafOf(one.id);
  expect(leaf.subjectAltName).toMatch(/^DNS:[ab]\.example\.net, DNS:[ab]\.example\.net$/);
  expect(leaf.checkPrivateKey(createPrivateKey(key))).toBe(true);
  expect(createPrivateKey(key).asymmetricKeyType).toBe(keyType === "rsa-2048" ? "rsa" : "ec");
  expect(cert.match(/BEGIN CERTIFICATE/g)).toHaveLength(2);
  expect(await certificates.stored([one])).toEqual(
    new Map([[one.id, { id: one.id, source: "acme", names: one.names, key, cert }]]),
  );
  expect(host.history[0]!.map(({ type }) => type)).toEqual([challenge, challenge]);
  await eventually(() => host.open.length === 0, "for the challenges to be closed");
  const [status] = certificates.status();
  expect(status).toMatchObject({ id: one.id, authority: "ca", state: "valid" });
  expect(status!.issuer).toMatch(/^Pebble Intermediate CA/);
  expect(host.lines).toEqual([
    "info certificate for a.example.net, b.example.net: ordered, from ca",
    expect.stringMatching(
      /^info certificate for a\.example\.net, b\.example\.net: issued by Pebble .*, valid until 20/,
    ),
  ]);
  const files = readdirSync(state, { recursive: true, withFileTypes: true });
  const modes = files.map((entry) => [
    entry.isDirectory(),
    statSync(join(entry.parentPath, entry.name)).mode & 0o777,
  ]);
  expect(new Set(modes.map(([isDirectory, mode]) => mode === (isDirectory ? 0o700 : 0o600)))).toEqual(
    new Set([true]),
  );
  const left = (): string =>
    readdirSync(join(state, "certificates", one.id))
      .sort()
      .join(" ");
  await eventually(() => left() === "certificate.pem history.json", "for what is kept", { seen: left });
});

test.each(["http-01", "tls-alpn-01"] as const)("for an address by %s, for six days", async (challenge) => {
  const { engine, wanted } = await begin();
  const one = wanted(["127.0.0.1"], { challenge });
  engine().lookAfter([one]);
  await issued(stage, one.id);
  expect(leafOf(one.id).subjectAltName).toBe("IP Address:127.0.0.1");
  expect(daysOf(leafOf(one.id))).toBe(6);
});

describe("an account", () => {
  const externalKeys = { "kid-1": "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W" };
  let strictCa: TestCa;
  beforeAll(async () => (strictCa = await TestCa.start({ externalKeys })));
  afterAll(() => strictCa.stop());

  test("is bound to an external one", async () => {
    const { engine, wanted, state } = await begin(strictCa);
    const keyFile = join(state, "eab.key");
    mkdirSync(state, { recursive: true });
    writeFileSync(keyFile, `${externalKeys["kid-1"]}\n`);
    const one = wanted(["a.example.net"], {
      authority: { externalAccountBinding: { keyId: "kid-1", keyFile } },
    });
    engine().lookAfter([one]);
    await issued(stage, one.id);
  });
});

describe("a renewal", () => {
  test("comes when a third of the lifetime is left, and takes a new key", async () => {
    const { engine, wanted, clock, host, between } = await begin();
    const one = wanted(["a.example.net"], { authority: { profile: "default" } });
    // Without the authority's own opinion.
    between.before = ({ path }) =>
      Promise.resolve(path.includes("renewalInfo") ? { status: 404, headers: {}, body: "" } : undefined);
    const certificates = engine();
    certificates.lookAfter([one]);
    await issued(stage, one.id);
    const first = host.installed.get(one.id)!;
    clock.advance(50 * DAY);
    await eventually(
      () => between.steps.some(({ path }) => path.includes("renewalInfo")),
      "for the question",
    );
    const next = certificates.status()[0]!.nextAttempt!;
    const left = (certificates.status()[0]!.notAfter! - next) / DAY;
    expect(left).toBeGreaterThanOrEqual(30);
    expect(left).toBeLessThan(34.6);
    expect(between.orders).toBe(1);
    clock.advance(next - clock.now() + 1);
    await issued(stage, one.id);
    expect(host.installed.get(one.id)!.key).not.toBe(first.key);
    expect(between.orders).toBe(2);
  });

  test("comes when the authority says so, before its time, and names what it replaces", async () => {
    const { engine, wanted, clock, host, ca, between, state } = await begin();
    const one = wanted(["a.example.net"]);
    const certificates = engine();
    certificates.lookAfter([one]);
    await issued(stage, one.id);
    // A clock that is moved on while the authority is asked for the first time moves the second time on as well.
    const history = join(state, "certificates", one.id, "history.json");
    await eventually(
      () => readFileSync(history, "utf8").includes('"renewal"'),
      "for the authority's first word",
    );
    const now = {
      start: new Date(Date.now() - DAY).toISOString(),
      end: new Date(Date.now() - HOUR).toISOString(),
    };
    const explanationURL = "https://ca.example.net/incident";
    await ca.setRenewalInfo(
      host.installed.get(one.id)!.cert,
      JSON.stringify({ suggestedWindow: now, explanationURL }),
    );
    // The authority said six hours.
    clock.advance(5 * HOUR);
    expect(between.orders).toBe(1);
    clock.advance(HOUR + 1_000);
    await issued(stage, one.id);
    expect(between.orders).toBe(2);
    expect(host.lines).toContain(
      "info certificate for a.example.net: the authority asks to renew it now (https://ca.example.net/incident)",
    );
  });
});

test("is one that OpenSSL takes, as are the requests and temporary ones", async () => {
  const { engine, wanted, state } = await begin();
  const one = wanted(["a.example.net", "127.0.0.1"]);
  engine().lookAfter([one]);
  await issued(stage, one.id);
  const file = join(state, "certificates", one.id, "certificate.pem");
  const text = execFileSync("openssl", ["x509", "-in", file, "-noout", "-text"]).toString();
  expect(text).toContain("IP Address:127.0.0.1");
  expect(readFileSync(file, "utf8")).toMatch(/^-----BEGIN PRIVATE KEY-----\n/);
});

test("several at once do not take each other's files away while an account is made", async () => {
  const { engine, wanted, host } = await begin();
  const all = Array.from({ length: 12 }, (_, i) => wanted([`n${i}.example.net`]));
  engine().lookAfter(all);
  await eventually(() => host.installed.size === 12, "for all", { seen: () => host.lines.join("\n") });
  expect(host.lines.filter((line) => line.startsWith("error"))).toEqual([]);
});
