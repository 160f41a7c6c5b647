import { execFileSync } from "node:child_process";
import { createPrivateKey, X509Certificate } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../kit/waiting.js";
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
  expect(await certificates.stored([one])).toEqual(new Map([[one.id, { key, cert, standsIn: false }]]));
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

test("with the profile that the config names, and not with one that the authority does not offer", async () => {
  const { engine, wanted, host } = await begin();
  const one = wanted(["a.example.net"], { authority: { profile: "shortlived" } });
  const other = wanted(["b.example.net"], { authority: { profile: "eternal" } });
  const certificates = engine();
  certificates.lookAfter([one, other]);
  await issued(stage, one.id);
  expect(daysOf(leafOf(one.id))).toBe(6);
  await eventually(() => certificates.status()[1]!.state === "waiting", "for the refusal");
  expect(certificates.status()[1]!.lastError).toMatchObject({
    code: "invalidProfile",
    message:
      "b.example.net: the authority does not offer the profile for these names: eternal is not known there; it offers default, shortlived",
    fix: "Leave profile of ca out, or give one that the authority offers.",
  });
  expect(host.installed.size).toBe(1);
});

test("though the authority refuses 30 % of the nonces", async () => {
  stage = await startStage({ badNonces: 30 });
  const { engine, wanted, between } = stage;
  const all = Array.from({ length: 5 }, (_, i) => wanted([`n${i}.example.net`]));
  engine().lookAfter(all);
  for (const { id } of all) if (!stage.host.installed.has(id)) await issued(stage, id);
  expect(between.orders).toBe(5);
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

  test("is not made where the authority wants an external one and there is none", async () => {
    const { engine, wanted, between } = await begin(strictCa);
    const certificates = engine();
    certificates.lookAfter([wanted(["a.example.net"])]);
    await eventually(() => certificates.status()[0]!.state === "waiting", "for the refusal");
    expect(certificates.status()[0]!.lastError).toMatchObject({
      code: "externalAccountRequired",
      message: "a.example.net: the authority wants an account of its own first",
    });
    expect(between.steps.map(({ path }) => path)).not.toContain("/sign-me-up");
  });

  test("is made once, and told when the mail address changes", async () => {
    const { engine, wanted, between } = await begin();
    const one = wanted(["a.example.net"]);
    const first = engine();
    first.lookAfter([one]);
    await issued(stage, one.id);
    await first.stop();
    const two = wanted(["b.example.net"], { authority: { email: "other@example.org" } });
    engine().lookAfter([two]);
    await issued(stage, two.id);
    const paths = between.steps.map(({ path }) => path.replace(/[\w-]*$/, ""));
    expect(between.steps.filter(({ path }) => path === "/sign-me-up")).toHaveLength(1);
    expect(paths.filter((path) => path === "/my-account/")).toHaveLength(1);
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

  test("is not put off by nonsense about it", async () => {
    const { engine, wanted, clock, host, ca } = await begin();
    const one = wanted(["a.example.net"], { authority: { profile: "default" } });
    const certificates = engine();
    certificates.lookAfter([one]);
    await issued(stage, one.id);
    for (const text of [
      "{",
      '{"suggestedWindow":{"start":"2400-01-01T00:00:00Z","end":"2300-01-01T00:00:00Z"}}',
    ]) {
      await ca.setRenewalInfo(host.installed.get(one.id)!.cert, text);
      clock.advance(7 * HOUR);
      await sleep(300);
      const { nextAttempt, notAfter } = certificates.status()[0]!;
      expect((notAfter! - nextAttempt!) / DAY).toBeGreaterThan(25);
    }
  });

  test("is made when somebody asks for it, by one of its names", async () => {
    const { engine, wanted, between } = await begin();
    const [one, two] = [wanted(["a.example.net"]), wanted(["b.example.net", "c.example.net"])];
    const certificates = engine();
    certificates.lookAfter([one, two]);
    await eventually(() => stage.host.installed.size === 2, "for both");
    expect(await certificates.renewNow("c.example.net")).toEqual({
      ok: true,
      value: "renewed: b.example.net, c.example.net",
    });
    expect(between.orders).toBe(3);
    expect(await certificates.renewNow("d.example.net")).toMatchObject({
      ok: false,
      problems: [{ code: "acme.unknown-name", path: "d.example.net" }],
    });
  });
});

test("is not renewed by hand more often than the authority allows, which is no failure of the certificate", async () => {
  const { engine, wanted, between } = await begin();
  const one = wanted(["a.example.net"], { authority: { profile: "default" } });
  const first = engine();
  first.lookAfter([one]);
  await issued(stage, one.id);
  for (let i = 0; i < 3; i++) expect(await first.renewNow()).toMatchObject({ ok: true });
  expect(await first.renewNow()).toMatchObject({
    ok: false,
    problems: [
      {
        code: "acme.not-issued",
        message: expect.stringContaining("portico stops at 4 certificates for the same names in seven days"),
      },
    ],
  });
  // Let's Encrypt: five in a week.
  expect(between.orders).toBe(4);
  expect(first.status()[0]).toMatchObject({ state: "valid" });
  expect(first.status()[0]).not.toHaveProperty("lastError");
  const next = first.status()[0]!.nextAttempt!;
  await first.stop();
  stage.clock.advance(8 * DAY);
  const second = engine();
  second.lookAfter([one]);
  await eventually(() => second.status()[0]!.state === "valid", "for the certificate on disk");
  // What was refused is not continued when it is allowed again.
  expect(second.status()[0]!.nextAttempt).toBe(next);
  expect(between.orders).toBe(4);
});

test("of other names stands in until the wanted one is there, if it covers the first name", async () => {
  const { engine, wanted, host } = await begin();
  const one = wanted(["a.example.net"]);
  const certificates = engine();
  certificates.lookAfter([one]);
  await issued(stage, one.id);
  const more = wanted(["a.example.net", "b.example.net"]);
  const other = wanted(["b.example.net", "a.example.net"], { id: "ca-other" });
  const rsa = wanted(["a.example.net"], { id: "ca-rsa", keyType: "rsa-2048" });
  const before = host.installed.get(one.id);
  expect([...(await certificates.stored([more, other, rsa]))]).toEqual([
    [more.id, { ...before, standsIn: true }],
  ]);
  certificates.lookAfter([more]);
  await issued(stage, more.id);
  const now = { ...host.installed.get(more.id), standsIn: false };
  expect((await certificates.stored([more])).get(more.id)).toEqual(now);
  // What is not wanted any more is kept.
  expect((await certificates.stored([one])).get(one.id)).toEqual({ ...before, standsIn: false });
  expect(certificates.status()).toHaveLength(1);
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
