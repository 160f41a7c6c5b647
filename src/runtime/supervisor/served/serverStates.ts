import {
  hasSeveral,
  type ProxyConfig,
  serversOf,
  type UpstreamConfig,
  urlsOf,
} from "../../../model/serving.js";
import type { Counts } from "../../counting/counts.js";
import type { OverviewServer } from "../../status/overview.js";
import { type ListedServer, type ListedUpstream, stateOf } from "../control/listedUpstreams.js";

/**
 * The state of each server of each upstream, from three sources: the orders and checks of the master, the workers, which
 * leave out one of several servers, and the outcome of the last request. The status page, `portico status` and the
 * metrics show this one state.
 */

/** The outcome of the last attempts to get a response from a server, by the counts of the workers. */
export class Outcomes {
  /** The error token of each server's last failure, by the names of the upstream and of the server. */
  private readonly last = new Map<string, { readonly failure?: string }>();

  /** @param counts of one worker for a moment: a response outweighs a failure, which may be one that was repeated */
  add({ upstreamFailures = [], upstreamResponses = [] }: Counts): void {
    for (const { labels, values } of upstreamFailures)
      if (values[0]! > 0) this.last.set(key(labels), { failure: labels[2]! });
    for (const { labels, values } of upstreamResponses) if (values[0]! > 0) this.last.set(key(labels), {});
  }

  /** Undefined for a server that no request was sent to. */
  of(upstream: string, url: string): { readonly failure?: string } | undefined {
    return this.last.get(key([upstream, url]));
  }
}

const key = ([upstream, server]: readonly string[]): string => `${upstream} ${server}`;

export type ServerState = Omit<OverviewServer, "failures">;

/** Only outcomes of requests judge a server without checks that is the only one. */
export function statesOf(
  upstream: UpstreamConfig,
  listed: ListedUpstream | undefined,
  outcomes: Outcomes,
): readonly ServerState[] {
  const outcomeOf = (url: string): ReturnType<Outcomes["of"]> => outcomes.of(upstream.name, url);
  if (listed === undefined || !hasSeveral(upstream))
    return serversOf(upstream).map(({ url, backup }) => ({
      url,
      backup,
      ...onlyState(listed?.servers[0], outcomeOf(url)),
    }));
  // Requests to the addresses of a name are counted under the name.
  const nameWasAsked = upstream.spread && urlsOf(upstream).some(({ url }) => outcomeOf(url) !== undefined);
  return listed.servers.map((server) => {
    const { url, backup, inProgress, why } = server;
    const state = stateOf(server);
    const wasAsked = server.checked || nameWasAsked || outcomeOf(url) !== undefined;
    return {
      url,
      backup,
      state: state === "up" && !wasAsked ? "unasked" : state,
      inProgress,
      why,
    };
  });
}

function onlyState(
  checks: ListedServer | undefined,
  outcome: ReturnType<Outcomes["of"]>,
): Pick<ServerState, "state" | "inProgress" | "why"> {
  const inProgress = checks && { inProgress: checks.inProgress };
  if (checks?.down === true) return { ...inProgress, state: "down", why: checks.why };
  if (outcome?.failure !== undefined) return { ...inProgress, state: "failing", why: outcome.failure };
  return { ...inProgress, state: outcome === undefined && checks?.checked !== true ? "unasked" : "up" };
}

/** The states of a config's upstreams, by name. */
export const upstreamStates = (
  { upstreams }: ProxyConfig,
  listed: readonly ListedUpstream[],
  outcomes: Outcomes,
): readonly { readonly upstream: UpstreamConfig; readonly servers: readonly ServerState[] }[] =>
  upstreams.map((upstream) => ({
    upstream,
    servers: statesOf(
      upstream,
      listed.find(({ name }) => name === upstream.name),
      outcomes,
    ),
  }));
