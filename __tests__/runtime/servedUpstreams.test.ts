import { parseConfig, type ProxyConfig, type UpstreamInput } from "../../src/model/index.js";
import { Queue } from "../../src/runtime/queue.js";
import { masterGauges } from "../../src/runtime/supervisor/served/servedCounts.js";
import { Outcomes } from "../../src/runtime/supervisor/served/serverStates.js";
import { ServedUpstreams } from "../../src/runtime/supervisor/served/servedUpstreams.js";
import type { SeenServer, ServerOrders } from "../../src/runtime/upstream/upstreamServers.js";

/** What notifications and metrics say of servers, by what checks, commands and each of the workers know of them. */

const [A, B, ONE, NAME] = ["http://10.0.0.1:80", "http://10.0.0.2:80", "http://10.0.0.3:80", "http://web:80"];

function configOf(...upstreams: UpstreamInput[]): ProxyConfig {
  const parsed = parseConfig({
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port: 80, protocol: "http" }],
    upstreams,
    virtualServers: [{ name: "a", serverNames: ["_"], default: true, listeners: ["http"], routes: [] }],
  });
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

const SEVERAL: UpstreamInput = { name: "web", servers: [{ url: A }, { url: B }] };
const SINGLE: UpstreamInput = { name: "one", url: ONE };
const CHECKED: UpstreamInput = { ...SINGLE, health: { path: "/ok" } };

/** @param workers what each of them sees of the servers of `web` */
function servedBy(
  config: ProxyConfig,
  orders: ServerOrders,
  workers: readonly (readonly SeenServer[])[] = [],
) {
  const supervised = {
    orderServers: () => Promise.resolve(workers.map((web) => ({ web }))),
    orderPauses: () => Promise.resolve([]),
  };
  const host = {
    loaded: () => ({ config }) as never,
    supervised,
    changes: new Queue(),
    notNow: () => undefined,
  };
  const served = new ServedUpstreams(host, { write: () => undefined });
  served.adopt(orders);
  return served;
}

/** What metrics say once a request to each of these servers met a response. */
const upIn = (config: ProxyConfig, served: ServedUpstreams, ...asked: readonly string[]) =>
  served
    .listed()
    .then((listed) =>
      masterGauges([], listed, config, outcomesOf(asked)).upstreamUp!.map(({ labels, values }) => [
        ...labels,
        ...values,
      ]),
    );

function outcomesOf(asked: readonly string[]): Outcomes {
  const outcomes = new Outcomes();
  outcomes.add({ upstreamResponses: asked.map((url) => ({ labels: ["web", url], values: [1] })) });
  return outcomes;
}

const IN = { url: A, inProgress: 1, out: false, ignored: false };
const OUT = { url: A, inProgress: 0, out: true, ignored: false, why: "refused" };
const IGNORED = { ...OUT, out: false, ignored: true };
const FINE = { drained: false, down: false };

test.each<[what: string, order: object, workers: SeenServer[], down: string | undefined, up: number]>([
  ["gets requests", FINE, [IN, IN], undefined, 1],
  ["is drained", { ...FINE, drained: true }, [IN, IN], undefined, 0],
  ["is drained and down", { drained: true, down: true, why: "status 500" }, [IN, IN], undefined, 0],
  ["is down", { ...FINE, down: true, why: "status 500" }, [IN, IN], "status 500", 0],
  ["one worker leaves out", FINE, [IN, OUT], "refused", 0],
  ["all workers leave out", FINE, [OUT, OUT], "refused", 0],
  ["failed requests as all others did", FINE, [IGNORED, IN], "refused", 0],
  ["failed requests as all others did, and is drained", { ...FINE, drained: true }, [IGNORED], undefined, 0],
])("one of several servers that %s", async (_what, order, workers, down, up) => {
  const config = configOf(SEVERAL);
  const other = { url: B, inProgress: 0, out: false, ignored: false };
  const served = servedBy(
    config,
    { web: { [A]: order as never } },
    workers.map((one) => [one, other]),
  );
  expect(await served.down()).toEqual(down === undefined ? [] : [{ upstream: "web", url: A, why: down }]);
  expect(await upIn(config, served, A, B)).toEqual([
    ["web", A, up],
    ["web", B, 1],
  ]);
});

test.each([
  [[false, false], 1],
  [[true, false], 1],
  [[true, true], 0],
])("a name whose addresses are down (%j) is up: %d", async (downs, up) => {
  const config = configOf({ name: "web", url: NAME, spread: true });
  const orders = downs.map((down, i) => [[A, B][i]!, { drained: false, down, of: NAME }]);
  const served = servedBy(config, { web: Object.fromEntries(orders) as never });
  expect(await upIn(config, served, NAME)).toEqual([["web", NAME, up]]);
});

test("times of a certificate are counted in seconds, under its first name", () => {
  const listed = {
    names: ["a.example", "b.example"],
    from: "ca",
    notBefore: 2_000,
    notAfter: 5_000,
    renewAt: 4_000,
  } as never;
  const fromFiles = { names: ["c.example"], from: "/c.pem", notBefore: 2_000, notAfter: 5_000 } as never;
  const counts = masterGauges([listed, fromFiles], [], configOf(), new Outcomes());
  expect(counts.certificateEnd![0]).toEqual({ labels: ["a.example", "ca"], values: [5] });
  expect(counts.certificateRenewal).toEqual([{ labels: ["a.example", "ca"], values: [4] }]);
});

test("the only server of an upstream with checks is watched: it can be down, and is not drained", async () => {
  const config = configOf(SEVERAL, CHECKED);
  const orders = { one: { [ONE]: { drained: false, down: true, why: "status 500" } } };
  const served = servedBy(config, orders);
  expect(await served.down()).toEqual([{ upstream: "one", url: ONE, why: "status 500" }]);
  const { upstreams } = await served.list();
  expect(upstreams!.map(({ name }) => name)).toEqual(["web", "one"]);
  expect(await served.drain({ name: "one", server: ONE }, true)).toMatchObject({
    ok: false,
    problems: [{ code: "control.unknown-server", allowed: "web" }],
  });
  await served.keepOnly(configOf(SEVERAL, CHECKED));
  expect(served.orders).toMatchObject(orders);
  await served.keepOnly(configOf(SINGLE));
  expect(await served.down()).toEqual([]);
  expect(served.orders).toEqual({});
});

test("what a worker found out about an outage is for workers that start, and for the next config and master", async () => {
  const config = configOf(SINGLE);
  const served = servedBy(config, {});
  const outage = { overAt: 1, began: 2, metAt: 2 };
  served.heard([{ upstream: "one", url: ONE, outage }]);
  const orders = { one: { [ONE]: { drained: false, down: false, outage } } };
  expect(served.orders).toEqual(orders);
  await served.keepOnly(config);
  expect(served.orders).toEqual(orders);
  expect(servedBy(config, served.orders).orders).toEqual(orders);
  served.heard([{ upstream: "one", url: ONE, outage: { overAt: 3, began: 2, metAt: 2 } }]);
  expect(served.orders["one"]![ONE]!.outage).toEqual({ overAt: 3, began: 2, metAt: 2 });
  await served.keepOnly(configOf(SEVERAL));
  expect(served.orders).toEqual({});
});

test("a worker of an earlier config tells in vain of what the config no longer has", () => {
  const served = servedBy(configOf(SINGLE), {});
  const outage = { overAt: 1, began: 2, metAt: 2 };
  served.heard([
    { upstream: "gone", url: ONE, outage },
    { upstream: "one", url: "http://127.0.0.1:1", outage },
  ]);
  expect(served.orders).toEqual({});
});

test("a drain is forgotten where the server is the only one, not what is known of its outages", async () => {
  const outage = { overAt: 1, began: 2, metAt: 2 };
  const served = servedBy(configOf(SEVERAL), { web: { [A]: { drained: true, down: false, outage } } });
  await served.keepOnly(configOf({ name: "web", url: A }));
  expect(served.orders).toEqual({ web: { [A]: { drained: false, down: false, outage } } });
});
