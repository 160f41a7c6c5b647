import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../testkit/ports.js";
import type { MetricsListenerConfig, ProxyConfig } from "../../src/model/index.js";
import type { Counts } from "../../src/runtime/counting/counts.js";
import { exposition } from "../../src/runtime/counting/exposition.js";
import { FAMILIES, type Family } from "../../src/runtime/counting/families.js";
import { MasterSockets } from "../../src/runtime/supervisor/masterSockets.js";
import { Metrics } from "../../src/runtime/supervisor/listeners/metrics.js";
import { textResponse } from "../../src/runtime/supervisor/listeners/ownServer.js";

const COUNTS: Counts = {
  responseBytes: [{ labels: ["site", "files"], values: [12] }],
  failures: [{ labels: ["site", "", 'a"\\\n'], values: [1] }],
  loopDelay: [{ labels: [], values: [2, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7] }],
};

test("the text format of Prometheus", async () => {
  const { type, body } = await exposition(COUNTS, "*/*");
  expect(type).toBe("text/plain; version=0.0.4; charset=utf-8");
  expect(body.split("\n").filter((line) => !line.startsWith("# HELP"))).toEqual([
    "# TYPE portico_request_failures_total counter",
    'portico_request_failures_total{server="site",error_type="a\\"\\\\\\n"} 1',
    "",
    "# TYPE portico_response_body_bytes_total counter",
    'portico_response_body_bytes_total{server="site",route="files"} 12',
    "",
    "# TYPE portico_event_loop_delay_seconds histogram",
    ...["0.001", "0.002", "0.005"].map((le) => `portico_event_loop_delay_seconds_bucket{le="${le}"} 2`),
    ...["0.01", "0.025", "0.05", "0.1", "0.25", "0.5", "1", "2.5", "5", "+Inf"].map(
      (le) => `portico_event_loop_delay_seconds_bucket{le="${le}"} 3`,
    ),
    "portico_event_loop_delay_seconds_sum 0.007",
    "portico_event_loop_delay_seconds_count 3",
    "",
  ]);
});

test("OpenMetrics, for whoever asks for it", async () => {
  const { type, body } = await exposition(COUNTS, "application/openmetrics-text; version=1.0.0, */*;q=0.1");
  expect(type).toBe("application/openmetrics-text; version=1.0.0; charset=utf-8");
  expect(body).toContain("# TYPE portico_response_body_bytes counter\n");
  expect(body).toContain('portico_response_body_bytes_total{server="site",route="files"} 12\n');
  expect(body).toMatch(/\n# EOF\n$/);
});

test("what another release counts is passed over", async () => {
  const foreign = { future: [{ labels: ["a"], values: [1] }] } as unknown as Counts;
  const shorter: Counts = { loopDelay: [{ labels: [], values: [1, 2] }] };
  expect((await exposition({ ...foreign, ...shorter }, "")).body).not.toMatch(/future|delay_seconds_/);
});

test("docs/metrics.md names each of them, with labels and help", () => {
  const flat = (text: string): string => text.replace(/\s+/g, " ");
  const page = flat(readFileSync(join(__dirname, "../../docs/metrics.md"), "utf8"));
  const missing = Object.values(FAMILIES)
    .map(({ name, type, labels, help }: Family) => {
      const kind = [type, ...labels.map((label) => `\`${label}\``)].join(", ");
      return flat(`- \`${name}\` (${kind}): ${help}`);
    })
    .filter((line) => !page.includes(line));
  expect(missing).toEqual([]);
});

describe("the metrics listener", () => {
  let folder: string;
  let metrics: Metrics;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "metrics-"));
    metrics = new Metrics(async () => COUNTS, { warn: () => undefined });
  });
  afterEach(async () => {
    await metrics.settle(undefined);
    rmSync(folder, { recursive: true });
  });

  const path = (): string => join(folder, "metrics.sock");

  /** The response; empty if the connection is closed without a response. */
  const ask = (at: object, target = "/metrics", host = "a"): Promise<string> =>
    new Promise((resolve, reject) => {
      let text = "";
      const socket = connect(at as never, () =>
        socket.write(`GET ${target} HTTP/1.1\r\nHost: ${host}\r\n\r\n`),
      );
      socket.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
      socket.on("error", reject).on("close", () => resolve(text));
    });

  test("on a Unix socket, which appears when this master responds and goes with it", async () => {
    const at: MetricsListenerConfig = { path: path() };
    expect(await metrics.open(at)).toEqual([]);
    expect(statSync(path(), { throwIfNoEntry: false })).toBeUndefined();
    await metrics.settle(at);
    expect(statSync(path()).mode & 0o777).toBe(0o660);
    expect(await ask({ path: path() })).toContain("portico_response_body_bytes_total");
    const next = new Metrics(async () => COUNTS, { warn: () => undefined });
    await next.open(at);
    await next.settle(at);
    await metrics.settle(undefined);
    expect(await ask({ path: path() }, "/other")).toMatch(
      /^HTTP\/1\.1 404 [^]*\r\n\r\nnot found; there are (?:\/\w+, )*\/metrics\b/,
    );
    await next.settle(undefined);
    expect(statSync(path(), { throwIfNoEntry: false })).toBeUndefined();
  });

  test("in a directory that is not there", async () => {
    const [problem] = await metrics.open({ path: join(folder, "none", "metrics.sock") });
    expect(problem).toMatchObject({ code: "listen.failed", path: "metricsListener" });
  });

  test("only for those whom `allow` names", async () => {
    const at = { address: "127.0.0.1", port: await freePort(), allow: ["10.0.0.0/8"], anyAddress: false };
    await metrics.settle(at);
    expect(await ask({ port: at.port })).toBe("");
    await metrics.settle({ ...at, allow: ["127.0.0.0/8"] });
    expect(await ask({ port: at.port })).toContain("portico_response_body_bytes_total");
  });

  test("before this master settles there, for nobody else either", async () => {
    const at = { address: "127.0.0.1", port: await freePort(), allow: ["10.0.0.0/8"], anyAddress: false };
    await metrics.open(at);
    expect(await ask({ port: at.port })).toBe("");
    const next = { ...at, port: await freePort(), allow: [] };
    await metrics.open(next);
    expect(await ask({ port: next.port }, "/metrics", "rebound.example")).toMatch("HTTP/1.1 421 ");
    expect(await ask({ port: at.port })).toBe("");
  });

  test("a reload that is refused leaves nothing open", async () => {
    const port = await freePort();
    const sockets = new MasterSockets(
      () => undefined,
      async () => COUNTS,
      { warn: () => undefined },
    );
    const own = { address: "127.0.0.1", anyAddress: false };
    const config = {
      listeners: [],
      virtualServers: [],
      healthListener: { ...own, port },
    } as unknown as ProxyConfig;
    const metricsListener = { path: join(folder, "none", "metrics.sock") };
    const refused = await sockets.acquire(
      { ...config, metricsListener },
      { ...config, healthListener: undefined },
      true,
    );
    expect(refused.ok).toBe(false);
    await expect(ask({ port }, "/readyz")).rejects.toThrow("ECONNREFUSED");
    await sockets.closeAll();
  });

  const onLoopback = async (): Promise<number> => {
    const at = { address: "127.0.0.1", port: await freePort(), allow: [], anyAddress: false };
    await metrics.settle(at);
    return at.port;
  };

  test.each([
    ["127.0.0.1:29181", 200],
    ["[::1]:29181", 200],
    ["LOCALHOST:29181", 200],
    ["app.localhost", 200],
    [hostname(), 200],
    ["", 200],
    ["rebound.example:29181", 421],
    ["127.0.0.1.rebound.example", 421],
    ["rebound.example.", 421],
    ["[rebound.example", 421],
    ["[rebound.example]:80", 421],
    ["a b", 421],
    ["files.example.org:29181", 200],
    ["www.wild.example.org", 200],
    ["a.www.wild.example.org", 421],
    ["_", 200],
  ])("on loopback for Host %s: %d", async (host, status) => {
    metrics.serverNames = ["_", "files.example.org", "*.wild.example.org"];
    expect(await ask({ port: await onLoopback() }, "/metrics", host)).toMatch(`HTTP/1.1 ${status} `);
  });

  test("a page knows whether a directory decides who gets there", async () => {
    metrics.add("/who", (_, bySocket) => textResponse(200, `by socket: ${bySocket}`));
    expect(await ask({ port: await onLoopback() }, "/who")).toContain("by socket: false");
    await metrics.settle({ path: path() });
    expect(await ask({ path: path() }, "/who", "rebound.example")).toContain("by socket: true");
  });

  test("however many ask at once, the workers are asked twice", async () => {
    let [asked, response] = [0, (): void => undefined];
    const slow = new Promise<void>((resolve) => (response = resolve));
    const busy = new Metrics(
      async () => {
        asked++;
        await slow;
        return COUNTS;
      },
      { warn: () => undefined },
    );
    await busy.settle({ path: path() });
    const all = Array.from({ length: 20 }, () => ask({ path: path() }));
    await ask({ path: path() }, "/other");
    response();
    for (const text of await Promise.all(all)) expect(text).toContain("portico_response_body_bytes_total");
    expect(asked).toBe(2);
    await busy.settle(undefined);
  });
});
