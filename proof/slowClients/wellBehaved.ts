import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";

export interface Latencies {
  readonly requests: number;
  readonly failures: number;
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** Requests of a browser's kind: four connections that are kept, some dozens of requests a second each. */
const CONNECTIONS = 4;
const PAUSE_MS = 10;
/** Longer than this without a byte counts as a failure. */
const PATIENCE_MS = 10_000;

/** How long requests through a front end take. */
export async function latencies(port: number, ms: number): Promise<Latencies> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const times: number[] = [];
  let failures = 0;
  const until = performance.now() + ms;
  const work = async (): Promise<void> => {
    while (performance.now() < until) {
      const start = performance.now();
      if (await get(port, agent)) times.push(performance.now() - start);
      else failures++;
      await sleep(PAUSE_MS);
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, work));
  agent.destroy();
  times.sort((a, b) => a - b);
  const at = (share: number): number =>
    times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
  return { requests: times.length, failures, p95Ms: at(0.95), p99Ms: at(0.99) };
}

function get(port: number, agent: http.Agent): Promise<boolean> {
  return new Promise((resolve) => {
    const host = "127.0.0.1";
    const options = { host, port, path: "/sync/", agent, localAddress: host, timeout: PATIENCE_MS };
    const request = http.get(options, (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode === 200));
      response.on("error", () => resolve(false));
    });
    request.on("timeout", () => request.destroy(new Error("no response")));
    request.on("error", () => resolve(false));
  });
}
