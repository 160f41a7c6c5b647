import { isWatched, type ProxyConfig } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { type ListedServer, stateOf } from "../../runtime/supervisor/control/listedUpstreams.js";
import { CONNECT_MS, tryServer } from "./expected/behind.js";
import type { CheckedResponse } from "./expected/liveCheck.js";
import type { SeenUpstreamServer } from "./evidence.js";
import { failure, ok, type Verdict, warning } from "./verdict.js";

/**
 * Asks the running proxy for the servers of upstreams that have several or checks, and connects to those that get requests, because
 * no request may have tried them yet.
 *
 * @returns undefined if there are none; else their states, or why the proxy could not be asked
 */
export async function seeUpstreamServers(
  config: ProxyConfig,
  control: string,
  timeoutMs: number,
): Promise<readonly SeenUpstreamServer[] | { readonly why: string } | undefined> {
  if (!config.upstreams.some(isWatched)) return undefined;
  const outcome = await askMaster(control, { command: "upstreams" }, timeoutMs);
  if (!outcome.ok) return { why: outcome.problems[0]!.message };
  const listed = (outcome.value.upstreams ?? []).flatMap(({ name, servers }) =>
    servers.map((server) => ({ name, server })),
  );
  return Promise.all(listed.map(({ name, server }) => seen(name, server, timeoutMs)));
}

async function seen(upstream: string, server: ListedServer, timeoutMs: number): Promise<SeenUpstreamServer> {
  const { url, backup, outIn, ignoredIn, inProgress, why } = server;
  const state = stateOf(server);
  const base = { upstream, url, backup, state };
  if (state === "drained") return { ...base, message: `drained by command, with ${inProgress} in progress` };
  if (state === "down") return { ...base, message: `down by its checks${because(why)}` };
  const workers = (count: number): string => `${count} worker${count === 1 ? "" : "s"}`;
  if (state === "out") return { ...base, message: `left out by ${workers(outIn)}${because(why)}` };
  const failed = await tryServer(url, Math.min(timeoutMs, CONNECT_MS));
  if (failed !== undefined)
    return { ...base, state: "refused", message: `a connection from here failed: ${failed.why}` };
  if (state === "failing") {
    const message = `up in ${workers(ignoredIn)} only because requests failed at all servers${because(why)}`;
    return { ...base, message };
  }
  return { ...base, message: `up, with ${inProgress} in progress` };
}

const because = (why: string | undefined): string => (why === undefined ? "" : `: ${why}`);

/** Whether one gets requests, as far as is known. */
const serves = ({ state }: SeenUpstreamServer): boolean => state === "up" || state === "failing";

/**
 * A row of `portico check --live`. A drained server is not a failure, nor is a server at which requests failed as at all
 * others: a client may have sent requests that no server responds to.
 */
export function checkedServer(server: SeenUpstreamServer): CheckedResponse {
  const { upstream, url, state, message } = server;
  const request = `server ${url}`;
  const pass = serves(server) || state === "drained";
  return { name: `upstream ${upstream}`, pass, request, expected: "it gets requests", seen: message };
}

const LOOK =
  "look at the application's own log; give the upstream `health`, so that checks decide which servers are up";

/** A row of `portico doctor`. */
export function judgeUpstreamServers(servers: readonly SeenUpstreamServer[]): Verdict {
  const lines = servers.map(({ upstream, url, message }) => `${upstream}: ${url}: ${message}`);
  const failing = servers.filter(({ state }) => state === "failing");
  const others = servers.filter((one) => !serves(one));
  if (others.length === 0 && failing.length === 0) return ok(...lines);
  if (others.length === 0)
    return warning("requests failed at all servers, which still get requests", lines, LOOK);
  const fixes = others.map(({ upstream, url, state }) =>
    state === "drained"
      ? `portico upstreams undrain ${upstream} ${url}`
      : `start the program that should listen on ${url}`,
  );
  const fix = fixes.join("; ");
  const names = [...new Set(others.map(({ upstream }) => upstream))];
  const dead = names.filter((name) => !servers.some((one) => one.upstream === name && serves(one)));
  return dead.length > 0
    ? failure(`no server of ${dead.join(", ")} gets requests`, lines, fix)
    : warning("some servers get no requests; the others get all requests", lines, fix);
}
