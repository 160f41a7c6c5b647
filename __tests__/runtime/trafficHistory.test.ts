import type { Series } from "../../src/runtime/counting/counts.js";
import {
  TrafficSamples,
  trafficTotals,
  type TrafficTotals,
} from "../../src/runtime/supervisor/served/trafficHistory.js";

const totals = (requests: number, more: Partial<TrafficTotals> = {}): TrafficTotals => ({
  requests,
  bytesIn: requests * 10,
  bytesOut: requests * 100,
  byPlace: new Map([["server a", requests]]),
  failures: new Map([
    ["route a b connection_refused", requests],
    ["route a c dns_error", 7],
  ]),
  ...more,
});

test("samples of totals become means of periods, of which a quarter of an hour is kept", () => {
  const samples = new TrafficSamples();
  for (let i = 0; i <= 400; i++) samples.add(totals(i * 50), i * 5_000);
  const { requests, bytesIn, bytesOut, periods, everyMs } = samples.history;
  expect([requests.length, periods * everyMs]).toEqual([180, 900_000]);
  expect([...new Set(requests), ...new Set(bytesIn), ...new Set(bytesOut)]).toEqual([10, 100, 1_000]);
});

test("the rate of now is that since a sample of some seconds ago, not of a moment ago", () => {
  const samples = new TrafficSamples();
  samples.add(totals(0), 0);
  samples.add(totals(50), 5_000);
  const rates = samples.recent(totals(60), 5_100);
  expect([rates.requests, rates.at("server a"), rates.at("server b")]).toEqual([11.76, 11.76, 0]);
  expect(samples.recent(totals(100), 9_000).requests).toBe(12.5);
  // A sample is old enough after three seconds.
  expect(samples.recent(totals(95), 7_999).requests).toBe(11.88);
  expect(samples.recent(totals(95), 8_000).requests).toBe(15);
});

test("before the first sample nothing is known, and a total that falls is no negative rate", () => {
  const samples = new TrafficSamples();
  expect(samples.recent(totals(60), 100).requests).toBe(0);
  samples.add(totals(100), 0);
  samples.add(totals(40), 5_000);
  expect(samples.history.requests).toEqual([0]);
  expect(samples.recent(totals(10), 9_000).requests).toBe(0);
});

test("failures are those of the last minute", () => {
  const samples = new TrafficSamples();
  for (let i = 0; i <= 30; i++) samples.add(totals(i), i * 5_000);
  expect(samples.failures(totals(31), ["route a b"])).toEqual(new Map([["connection_refused", 13]]));
  expect(samples.failures(totals(31), ["route a c"])).toEqual(new Map());
});

test.each([
  ["connection_timeout", true],
  ["destination_unavailable", true],
  ["dns_timeout", true],
  ["tls_certificate_error", true],
  ["http_response_incomplete", true],
  ["http_request_error", false],
  ["http_upgrade_failed", false],
  ["proxy_internal_error", false],
  ["no_connection_", false],
])("%s is a failure of the upstream: %s", (failure, isOfUpstream) => {
  const { failures } = trafficTotals({ failures: [{ labels: ["a", "b", failure], values: [2] }] });
  expect([...failures]).toEqual(isOfUpstream ? [[`route a b ${failure}`, 2]] : []);
});

test("totals are those of what was counted; failures are an upstream's, not those of requests", () => {
  const histogram = (...labels: string[]): Series => ({
    labels,
    values: [1, ...Array<number>(14).fill(0), 9],
  });
  expect(
    trafficTotals({
      requests: [
        histogram("a", "b", "/b", "http", "GET", "200"),
        histogram("a", "b", "/b", "http", "GET", "404"),
        histogram("a", "", "", "http", "GET", "404"),
      ],
      requestBytes: [{ labels: ["a", "b"], values: [5] }],
      responseBytes: [
        { labels: ["a", "b"], values: [6] },
        { labels: ["a", ""], values: [1] },
      ],
      failures: [
        { labels: ["a", "b", "connection_refused"], values: [3] },
        { labels: ["a", "b", "client_gone"], values: [4] },
        { labels: ["a", "b", "http_request_error"], values: [4] },
      ],
    }),
  ).toEqual({
    ...{ requests: 3, bytesIn: 5, bytesOut: 7 },
    byPlace: new Map([
      ["server a", 3],
      ["route a b", 2],
    ]),
    failures: new Map([["route a b connection_refused", 3]]),
  });
});
