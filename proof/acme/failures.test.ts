import { createPrivateKey, X509Certificate } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { AcmeEngine, OrderedCertificate } from "../../src/runtime/acme/engine.js";
import { Random } from "../../testkit/random.js";
import { eventually } from "../../testkit/waiting.js";
import { TestCa } from "./ca.js";
import { buildProgram, startChild } from "./child.js";
import { issued, type Stage, startStage } from "./stage.js";

/** What an authority, a network, a disk and a process can do while a certificate is on its way. */

/** One for all tests, each with an empty state directory, as a client that is new. */
let ca: TestCa;
beforeAll(async () => (ca = await TestCa.start()));
afterAll(() => ca.stop());

let stage: Stage;
const begin = async (): Promise<Stage> => (stage = await startStage({}, ca));
afterEach(async () => {
  await stage.stop();
  // Some tests lead it elsewhere.
  await ca.setAddress("a.example.net", "127.0.0.1");
});

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Requests of an order from an empty state directory: directory, nonce, account, order, proof, certificate. */
let steps: Promise<number> | undefined;
const stepsOfAnOrder = (): Promise<number> => (steps ??= countedSteps());
const countedSteps = async (): Promise<number> => {
  const { engine, wanted, between } = await begin();
  const one = wanted(["a.example.net"]);
  const certificates = engine();
  certificates.lookAfter([one]);
  await issued(stage, one.id);
  await certificates.stop();
  await stage.stop();
  return between.steps.filter(({ path }) => !path.includes("renewalInfo")).length;
};

/** Key and certificate on disk belong together, and there is no key besides. */
function expectWhole(state: string, id: string): void {
  const folder = join(state, "certificates", id);
  const text = readFileSync(join(folder, "certificate.pem"), "utf8");
  const certificate = new X509Certificate(text.slice(text.indexOf("-----BEGIN CERT")));
  expect(certificate.checkPrivateKey(createPrivateKey(text))).toBe(true);
  const others = readdirSync(folder).filter((name) => name !== "certificate.pem");
  const withKey = others.filter((name) => readFileSync(join(folder, name), "utf8").includes("PRIVATE KEY"));
  expect(withKey).toEqual([]);
}

/** Every other step is tried, from the first or the second one on, as the seed chooses. */
const offset = new Random().pick(2);
const first = (when: "before" | "after"): number => 1 + (when === "before" ? offset : 1 - offset);

test("an authority that forgets everything at any step: a certificate comes all the same", async () => {
  const steps = await stepsOfAnOrder();
  expect(steps).toBeGreaterThan(8);
  for (let at = first("before"); at <= steps; at += 2) {
    const { engine, wanted, between, state } = await begin();
    const one = wanted(["a.example.net"]);
    between.before = async ({ number }) => {
      if (number !== at) return undefined;
      await ca.kill();
      await ca.startPebble();
      return "cut";
    };
    const certificates = engine();
    certificates.lookAfter([one]);
    await issued(stage, one.id, 10);
    await certificates.stop();
    expectWhole(state, one.id);
    if (at + 2 <= steps) await stage.stop();
  }
});

test.each(["before", "after"] as const)(
  "a connection that breaks at any step, %s the authority worked: one order, one certificate",
  async (when) => {
    const steps = await stepsOfAnOrder();
    for (let at = first(when); at <= steps; at += 2) {
      const { engine, wanted, between, state } = await begin();
      const one = wanted(["a.example.net"]);
      const cut = ({ number }: { number: number }): Promise<"cut" | undefined> =>
        Promise.resolve(number === at ? "cut" : undefined);
      between[when] = cut;
      const certificates = engine();
      certificates.lookAfter([one]);
      await issued(stage, one.id, 2);
      await certificates.stop();
      expect(between.orders).toBe(1);
      expectWhole(state, one.id);
      if (at + 2 <= steps) await stage.stop();
    }
  },
);

describe("kill -9", () => {
  let program: Awaited<ReturnType<typeof buildProgram>>;
  beforeAll(async () => (program = await buildProgram()));
  afterAll(() => program.remove());

  test.each(["before", "after"] as const)(
    "at any request, %s the authority worked: one order, one certificate",
    async (when) => {
      const steps = await stepsOfAnOrder();
      for (let at = first(when); at <= steps; at += 2) {
        const { wanted, between, state, host } = await begin();
        const one = wanted(["a.example.net"]);
        const child = startChild(program.file, host, { state, wanted: one });
        between[when] = async ({ number }: { number: number }) => {
          if (number !== at) return undefined;
          await child.kill();
          return "cut";
        };
        await child.gone;
        const next = goOn(stage, one);
        await issued(stage, one.id);
        await eventually(
          () => host.open.length === 0 && !hasOrder(state, one.id),
          "for the end of the order",
        );
        await next.stop();
        expect(between.orders).toBe(1);
        expectWhole(state, one.id);
        if (at + 2 <= steps) await stage.stop();
      }
    },
  );

  test.each(["before", "after"] as const)(
    "at any change of a file, %s it: one order, one certificate",
    async (when) => {
      for (let change = first(when), last = false; !last; change += 2) {
        const { wanted, between, state, host } = await begin();
        const one = wanted(["a.example.net"]);
        const child = startChild(program.file, host, { state, wanted: one, dieAt: { change, when } });
        const isDead = (): boolean => child.process.signalCode !== null;
        await eventually(() => isDead() || host.lines.length > 1, "for its death or a certificate");
        await sleep(50);
        last = !isDead();
        await child.kill();
        const next = goOn(stage, one);
        await issued(stage, one.id);
        await eventually(() => !hasOrder(state, one.id), "for the end of the order");
        await next.stop();
        expect(between.orders).toBe(1);
        expectWhole(state, one.id);
        if (last) expect(change).toBeGreaterThan(8);
        else await stage.stop();
      }
    },
  );
});

/** As a process begins that finds what a killed one left on the disk. */
function goOn({ engine, host }: Stage, one: OrderedCertificate): AcmeEngine {
  const certificates = engine();
  void certificates.stored([one]).then((stored) => {
    for (const found of stored.values()) host.install(found);
    certificates.lookAfter([one]);
  });
  return certificates;
}

const hasOrder = (state: string, id: string): boolean =>
  readdirSync(join(state, "certificates", id)).includes("order.json");

test("a restart in the middle goes on with the order, and responds to its challenges before it asks the authority", async () => {
  const { engine, wanted, between, host } = await begin();
  const one = wanted(["a.example.net", "b.example.net"]);
  const first = engine();
  between.before = ({ path }) =>
    path.startsWith("/chalZ/") ? first.stop().then(() => "cut" as const) : Promise.resolve();
  first.lookAfter([one]);
  await eventually(() => between.steps.some(({ path }) => path.startsWith("/chalZ/")), "for the challenge");
  await sleep(100);
  const open = host.open;
  expect(open).toHaveLength(2);
  await host.respondToChallenges([]);
  let asked = -1;
  between.before = () => {
    if (asked === -1) asked = host.open.length;
    return Promise.resolve();
  };
  engine().lookAfter([one]);
  await issued(stage, one.id);
  expect(asked).toBe(2);
  expect(between.orders).toBe(1);
  expect(host.lines).toContain(
    "info certificate for a.example.net, b.example.net: the order continues, from ca",
  );
});

describe("a name that is not proved", () => {
  test("is not asked for more often than the authority allows, over restarts and by hand", async () => {
    const { engine, wanted, between, clock } = await begin();
    await ca.setAddress("a.example.net", "127.0.0.9");
    const one = wanted(["a.example.net"]);
    for (let restart = 0; restart < 3; restart++) {
      const certificates = engine();
      certificates.lookAfter([one]);
      for (let i = 0; i < 4; i++) await certificates.renewNow();
      await certificates.stop();
    }
    // Let's Encrypt: five an hour.
    expect(between.orders).toBe(4);
    const certificates = engine();
    certificates.lookAfter([one]);
    await eventually(() => certificates.status()[0]!.lastError !== undefined, "for the history");
    expect(certificates.status()[0]).toMatchObject({ state: "waiting", lastError: { code: "rateLimited" } });
    expect(certificates.status()[0]!.nextAttempt! - clock.now()).toBeGreaterThan(50 * MINUTE);
    await ca.setAddress("a.example.net", "127.0.0.1");
    clock.advance(2 * HOUR);
    await issued(stage, one.id);
    expect(certificates.status()[0]).toMatchObject({ state: "valid" });
    expect(certificates.status()[0]!.lastError).toBeUndefined();
  });
});
