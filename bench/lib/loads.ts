import { readFileSync, rmSync } from "node:fs";
import path from "node:path";
import type { RunningProxy } from "./proxy.js";
import { type Bench, costOf, type Sample } from "./bench.js";
import { run, runChecked } from "./children.js";
import { GIB } from "./site.js";
import { quantile } from "./statistics.js";

/** The load generators: wrk for HTTP/1.1, h2load for HTTP/2, curl for large bodies. */

/**
 * Many small requests, as fast as responses come; the value is CPU µs a request.
 * @param options.patience seconds that a response may take
 */
export async function wrk(
  bench: Bench,
  proxy: RunningProxy,
  target: string,
  { connections = 32, headers = [] as string[], seconds = bench.quick ? 1 : 2, patience = 2 } = {},
): Promise<Sample> {
  const fields = headers.flatMap((header) => ["-H", header]);
  const { result, cpuNs, circumstances } = await costOf(proxy, () =>
    runChecked(
      [
        "wrk",
        "-t1",
        `-c${connections}`,
        `-d${seconds}s`,
        "--latency",
        `--timeout=${patience}s`,
        ...fields,
        `${proxy.origin}${target}`,
      ],
      { cores: bench.loadCores, limitMs: (seconds + 20) * 1000 },
    ),
  );
  const requests = Number(/(\d+) requests in/.exec(result)?.[1]);
  const bad = /Non-2xx or 3xx responses: \d+|Socket errors: .*/.exec(result)?.[0];
  // wrk counts it as a read error when a keep-alive connection that is due ends.
  if (!(requests > 0) || (bad !== undefined && !/connect 0, read \d+, write 0, timeout 0/.test(bad))) {
    throw new Error(`wrk against ${proxy.name}: ${bad ?? result}`);
  }
  return {
    value: cpuNs / 1000 / requests,
    throughput: Number(/Requests\/sec: +([\d.]+)/.exec(result)?.[1]),
    p50Ms: milliseconds(/ 50% +([\d.]+)(us|ms|s)/.exec(result)),
    p99Ms: milliseconds(/ 99% +([\d.]+)(us|ms|s)/.exec(result)),
    ...circumstances,
  };
}

function milliseconds(match: RegExpExecArray | null): number | undefined {
  if (match === null) return undefined;
  return Number(match[1]) * { us: 0.001, ms: 1, s: 1000 }[match[2] as "us" | "ms" | "s"];
}

export interface H2loadOptions {
  readonly clients: number;
  /** Concurrent streams, each client. */
  readonly streams?: number;
  readonly seconds?: number;
  readonly method?: "GET" | "HEAD";
}

/** Many small requests over HTTP/2; the value is CPU µs a request. */
export async function h2load(
  bench: Bench,
  proxy: RunningProxy,
  target: string,
  options: H2loadOptions,
): Promise<Sample> {
  const { clients, streams = 1, seconds = bench.quick ? 1 : 2, method = "GET" } = options;
  const log = path.join(bench.site.install, "h2load.log");
  rmSync(log, { force: true });
  const { result, cpuNs, circumstances } = await costOf(proxy, () =>
    runChecked(
      [
        ...["h2load", `-c${clients}`, `-m${streams}`, "-t1", `-D${seconds}`, `--log-file=${log}`],
        ...["-H", `:method: ${method}`],
        `${proxy.origin}${target}`,
      ],
      { cores: bench.loadCores, limitMs: (seconds + 20) * 1000 },
    ),
  );
  const latenciesMs = latencies(log);
  const good = Number(/(\d+) succeeded/.exec(result)?.[1]);
  if (!(good > 0) || !/ 0 4xx, 0 5xx/.test(result))
    throw new Error(`h2load against ${proxy.name}: ${result}`);
  return {
    value: cpuNs / 1000 / latenciesMs.length,
    throughput: good / seconds,
    p50Ms: quantile([...latenciesMs], 0.5),
    p99Ms: quantile([...latenciesMs], 0.99),
    ...circumstances,
  };
}

/** h2load's log: start in µs, status, µs until the response was complete; one line a request. */
function latencies(file: string): Float64Array {
  const lines = readFileSync(file, "latin1").split("\n");
  rmSync(file);
  return Float64Array.from(
    lines.filter((line) => line !== "" && !line.includes("\t-1\t")),
    (line) => Number(line.slice(line.lastIndexOf("\t") + 1)) / 1000,
  );
}

/** One large body; the value is CPU seconds a GB (2^30 bytes, as in the table that set the bars). */
export async function curl(
  bench: Bench,
  proxy: RunningProxy,
  target: string,
  { args = [] as readonly string[], upload = undefined as string | undefined, bytes = GIB } = {},
): Promise<Sample> {
  const body = upload === undefined ? [] : ["-T", upload, "-H", "Expect:"];
  const write = "%{http_code} %{size_download} %{size_upload} %{time_total}";
  const command = ["curl", "-sSk", "-o", "/dev/null", "-w", write, "--max-time", "120", ...args, ...body];
  const { result, cpuNs, circumstances } = await costOf(proxy, () =>
    run([...command, `${proxy.origin}${target}`], { cores: bench.loadCores, limitMs: 130_000 }),
  );
  const [status, down, up, seconds] = result.stdout.split(" ").map(Number) as [
    number,
    number,
    number,
    number,
  ];
  const moved = upload === undefined ? down : up;
  if (result.code !== 0 || status !== 200 || moved !== bytes) {
    throw new Error(
      `curl against ${proxy.name}: status ${status}, ${moved} of ${bytes} bytes. ${result.stderr}`,
    );
  }
  return { value: cpuNs / 1e9 / (bytes / GIB), throughput: bytes / 1e6 / seconds, ...circumstances };
}
