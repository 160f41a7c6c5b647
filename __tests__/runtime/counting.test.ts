import type { VirtualServerConfig, RouteConfig } from "../../src/model/index.js";
import { type Counts, numberOf, Totals, totalOf } from "../../src/runtime/counting/counts.js";
import { FAMILIES, type FamilyKey, sizeOf } from "../../src/runtime/counting/families.js";
import {
  type CountedExchange,
  foldedStatus,
  methodIndex,
  methodLabel,
} from "../../src/runtime/counting/requestCounts.js";
import { Slots } from "../../src/runtime/counting/slots.js";
import { WorkerCounts } from "../../src/runtime/counting/workerCounts.js";
import { isRegistered } from "../../src/runtime/dispatch/reasonPhrases.js";

const SERVER = { name: "site" } as VirtualServerConfig;
const ROUTE = { name: "files", path: "/files" } as RouteConfig;

/** An exchange that is over. */
const over = (
  more: Partial<CountedExchange> & { method?: string; tookMs?: number } = {},
): CountedExchange => ({
  request: { method: more.method ?? "GET", receivedAt: 10_000 - (more.tookMs ?? 0) },
  client: { scheme: "http" },
  status: 200,
  bodyBytesSent: 0,
  bodyBytesReceived: 0,
  countedSent: 0,
  countedReceived: 0,
  headMs: 0,
  errorToken: undefined,
  ...more,
});

test("names are those of Prometheus: lower case, with the unit, and counters end with _total", () => {
  for (const { name, type, help } of Object.values(FAMILIES)) {
    expect(name).toMatch(/^(portico|http_server)_[a-z_]+$/);
    expect(name.endsWith("_total")).toBe(type === "counter");
    expect(help).toMatch(/\.$/);
  }
});

test("a worker says what is new since it said so last", () => {
  const slots = new Slots();
  const at = slots.place("responseBytes", ["site", "files"]);
  expect(slots.changes()).toEqual({ responseBytes: [{ labels: ["site", "files"], values: [0] }] });
  expect(slots.changes()).toBeUndefined();
  slots.add(at, 5);
  slots.add(at, 2);
  expect(slots.changes()).toEqual({ responseBytes: [{ labels: ["site", "files"], values: [7] }] });
  slots.add(at);
  expect(slots.changes()).toEqual({ responseBytes: [{ labels: ["site", "files"], values: [1] }] });
});

test("places stay while the array grows", () => {
  const slots = new Slots();
  const places = Array.from({ length: 2_000 }, (_, i) => slots.place("requestBytes", ["site", String(i)]));
  places.forEach((at, i) => slots.add(at, i));
  const { requestBytes } = slots.changes()!;
  expect(requestBytes!.map(({ labels, values }) => [labels[1], values[0]])).toEqual(
    places.map((_, i) => [String(i), i]),
  );
});

test("the upper bound of a bucket belongs to it", () => {
  const slots = new Slots();
  const at = slots.place("firstByte", ["site", "files"]);
  const { bounds } = FAMILIES.firstByte;
  for (const ms of [0, 5, 6, 10_000, 10_001]) slots.observe(at, bounds, ms);
  const [one] = slots.changes()!.firstByte!;
  const { values } = one!;
  expect(values).toHaveLength(sizeOf("firstByte"));
  expect([values[0], values[1], values.at(-3), values.at(-2), values.at(-1)]).toEqual([2, 1, 1, 1, 20_012]);
});

test("requests by route, method, scheme and status; bytes as they come", () => {
  const counts = new WorkerCounts(isRegistered);
  const requests = counts.requestsOf(SERVER, ROUTE);
  counts.changes();
  const upload = over({ method: "PUT", bodyBytesReceived: 100, status: 0 });
  requests.progress(upload);
  expect(counts.changes()).toEqual({ requestBytes: [{ labels: ["site", "files"], values: [100] }] });
  requests.over(
    { ...upload, status: 201, bodyBytesReceived: 150, bodyBytesSent: 3, countedReceived: 100 },
    10_000,
  );
  requests.over(over({ tookMs: 7 }), 10_000);
  requests.over(over({ tookMs: 8 }), 10_000);
  requests.over(over({ status: 502, errorToken: "connection_refused" }), 10_000);
  const all = counts.changes()!;
  expect(totalOf(all, "requests")).toBe(4);
  expect(totalOf(all, "requests", { http_request_method: "GET", http_response_status_code: "200" })).toBe(2);
  expect(totalOf(all, "requestBytes")).toBe(50);
  expect(totalOf(all, "responseBytes")).toBe(3);
  expect(totalOf(all, "failures", { error_type: "connection_refused" })).toBe(1);
  const labels = { server: "site", route: "files", http_route: "/files", url_scheme: "http" };
  const put = { ...labels, http_request_method: "PUT", http_response_status_code: "201" };
  expect(totalOf(all, "requests", put)).toBe(1);
  const twice = all.requests!.find(({ labels }) => labels[4] === "GET" && labels[5] === "200")!;
  expect([numberOf("requests", twice), twice.values.at(-1)]).toEqual([2, 15]);
});

test("no client and no upstream makes a label", () => {
  const counts = new WorkerCounts(isRegistered);
  const requests = counts.requestsOf(SERVER, ROUTE);
  for (let i = 0; i < 3_000; i++) requests.over(over({ method: `M${i}`, status: i % 1_000 }), 10_000);
  const labels = counts.changes()!.requests!.map((one) => one.labels);
  expect(new Set(labels.map((of) => of[4]))).toEqual(new Set(["_OTHER"]));
  const statuses = labels.map((of) => Number(of[5]));
  expect(new Set(statuses).size).toBe(statuses.length);
  expect(statuses.filter((status) => status !== 499 && !isRegistered(status) && status % 100 > 0)).toEqual(
    [],
  );
});

test.each([
  [0, 499],
  [200, 200],
  [299, 200],
  [599, 500],
  [999, 500],
])("status %i is counted as %i", (status, folded) => {
  expect(foldedStatus(status, isRegistered)).toBe(folded);
});

test("methods of HTTP and WebDAV are known, whatever their case is not", () => {
  const folded = (method: string): string => methodLabel(methodIndex(method));
  expect(["GET", "PROPFIND", "get", "__proto__", ""].map(folded)).toEqual([
    "GET",
    "PROPFIND",
    "_OTHER",
    "_OTHER",
    "_OTHER",
  ]);
});

test("totals are sums by labels, and keep what they were given", () => {
  const one: Counts = { transfers: [{ labels: ["a", "b"], values: [1] }] };
  const totals = new Totals(one, one, { transfers: [{ labels: ["a,b"], values: [4] }] });
  expect(totals.counts).toEqual({
    transfers: [
      { labels: ["a", "b"], values: [2] },
      { labels: ["a,b"], values: [4] },
    ],
  });
  expect(one.transfers![0]!.values).toEqual([1]);
  const foreign = { future: [{ labels: [], values: [1] }] } as unknown as Counts;
  expect(new Totals(foreign).counts["future" as FamilyKey]).toHaveLength(1);
});
