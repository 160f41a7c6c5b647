import { faultsOf } from "../../model/faults.js";
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
  const base = { upstream, url, backup, state, why };
  if (state === "drained") return { ...base, message: `drained by command, with ${inProgress} in progress` };
  if (state === "down") return { ...base, message: `down by its checks${because(why)}` };
  const workers = (count: number): string => `${count} worker${count === 1 ? "" : "s"}`;
  if (state === "out") return { ...base, message: `left out by ${workers(outIn)}${because(why)}` };
  const failed = await tryServer(url, Math.min(timeoutMs, CONNECT_MS));
  if (failed !== undefined)
    return {
      ...base,
      state: "refused",
      why: failed.why,
      message: `a connection from here failed: ${failed.why}`,
    };
  if (state === "failing") {
    const message = `up in ${workers(ignoredIn)} only because requests failed at all servers${because(why)}`;
    return { ...base, message };
  }
  return { ...base, message: `up, with ${inProgress} in progress` };
}

const because = (why: string | undefined): string => (why === undefined ? "" : `: ${why}`);

/**
 * A row of `portico check --live`. A drained server is not a failure, nor is a server at which requests failed as at all
 * others: a client may have sent requests that no server responds to.
 */
export function checkedServer({ upstream, url, state, message }: SeenUpstreamServer): CheckedResponse {
  const pass = state === "up" || state === "failing" || state === "drained";
  const request = `server ${url}`;
  return { name: `upstream ${upstream}`, pass, request, expected: "it gets requests", seen: message };
}

const LOOK =
  "look at the application's own log; give the upstream `health`, so that checks decide which servers are up";

/** A row of `portico doctor`: the list of faults says which servers are bad, and only here are the commands to act. */
export function judgeUpstreamServers(servers: readonly SeenUpstreamServer[]): Verdict {
  const lines = servers.map(({ upstream, url, message }) => `${upstream}: ${url}: ${message}`);
  const names = [...new Set(servers.map(({ upstream }) => upstream))];
  const upstreams = names.map((name) => ({
    name,
    servers: servers.filter(({ upstream }) => upstream === name).map(factsOf),
  }));
  const [worst] = faultsOf({ upstreams }, ({ doctor }) => doctor === "upstreams");
  const fix = [...new Set(servers.flatMap(fixOf))].join("; ");
  if (worst?.level === "error") return failure(worst.text, lines, fix);
  if (worst !== undefined) return warning(worst.text, lines, fix);
  return fix === "" ? ok(...lines) : warning("a command has drained servers", lines, fix);
}

/** A server that refuses connections is down, although the proxy has not noticed. */
const factsOf = ({ url, state, why }: SeenUpstreamServer) => ({
  ...{ url, failures: 0, why },
  state: state === "refused" ? ("down" as const) : state,
});

function fixOf({ upstream, url, state }: SeenUpstreamServer): string[] {
  if (state === "up") return [];
  if (state === "failing") return [LOOK];
  if (state === "drained") return [`portico upstreams undrain ${upstream} ${url}`];
  return [`start the program that should listen on ${url}`];
}
