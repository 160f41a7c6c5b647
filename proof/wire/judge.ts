import { isWhole } from "./scriptedResponse.js";
import {
  bytesOf,
  type Timeline,
  type ClientScript,
  type ExchangeScript,
  idOf,
  isBodiless,
  isComplete,
  opensTunnel,
  STRANGE_HOSTS,
  STREAM_RESETS_PER_SECOND_MAX,
} from "./timeline.js";
import type { Outcome } from "./responses.js";
import type { Client } from "./scriptedClient.js";
import {
  bodyBytesMaxOf,
  faultsOf,
  isBroken,
  isExposed,
  isOverLimit,
  isRefused,
  isRepeatable,
  isSpent,
  mayTimeOut,
  quits,
} from "./faults.js";
import type { Seen } from "./strictUpstream.js";

/** What the play of a case broke; empty if nothing. */
export function judge(played: Timeline, clients: readonly Client[], seen: readonly Seen[]): string[] {
  return played.clients.flatMap((script, c) => {
    const client = clients[c]!;
    let over = false;
    let mayLapse = false;
    const found = script.exchanges.flatMap((exchange, e) => {
      const id = idOf(played.index, c, e);
      const facts: Facts = {
        id,
        played,
        script,
        exchange,
        outcome: client.outcomes[e]!,
        sentWhole: client.whole.has(e),
        seen: seen.filter((one) => one.id === id),
        over,
        mayLapse,
        forsaken: client.forsaken,
        refused: client.refuses(e),
      };
      if (script.protocol !== "h2")
        over ||=
          facts.outcome.closes ||
          (script.abort === undefined && facts.outcome.end !== "complete") ||
          isBroken(script, exchange) ||
          (exchange.body?.off ?? 0) > 0;
      mayLapse ||= script.protocol !== "h2" && mayTimeOut(exchange) && exchange.response.when !== "complete";
      return [...judgeUpstream(facts), ...judgeClient(facts)].map((fault) => `${id}: ${fault}`);
    });
    const more = client.outcomes.slice(script.exchanges.length).flatMap((outcome) => extra(script, outcome));
    const reached = (e: number): boolean => seen.some(({ id }) => id === idOf(played.index, c, e));
    const whole = [...client.violations, ...judgeGivenUp(script, client, reached)];
    return [...whole.map((fault) => `${played.index}.${c}: ${fault}`), ...found, ...more];
  });
}

/** With six times as many resets as may come in a second a client is told to calm down, whatever it gave up, and nobody else. */
function judgeGivenUp(
  script: ClientScript,
  { calmed, stopped, outcomes, lastedMs }: Client,
  reached: (exchange: number) => boolean,
): string[] {
  const { exchanges, abort } = script;
  const most = 6 * STREAM_RESETS_PER_SECOND_MAX;
  const spent = exchanges.filter((exchange) => isSpent(script, exchange)).length;
  if (calmed) return spent > most ? [] : [`told to calm down, though only ${spent} requests are given up`];
  // Those that wait are reset at a quarter of the cost.
  const costs = exchanges.map(({ body }, e) =>
    stopped.has(e) ? 1 : script.protocol !== "h2" || body?.end !== "reset" ? 0 : reached(e) ? 1 : 1 / 4,
  );
  const cost = costs.reduce<number>((sum, one) => sum + one, 0);
  const completed = outcomes.filter((outcome, e) => outcome.complete && !stopped.has(e)).length;
  const forgiven = completed + STREAM_RESETS_PER_SECOND_MAX * (1 + lastedMs / 1_000);
  if (abort !== undefined || cost <= most + forgiven) return [];
  return [`not told to calm down after resets of ${cost} requests, ${stopped.size} of them by the proxy`];
}

interface Facts {
  readonly id: string;
  readonly played: Timeline;
  readonly script: ClientScript;
  readonly exchange: ExchangeScript;
  readonly outcome: Outcome;
  /** The client handed the last byte of the request to the kernel. */
  readonly sentWhole: boolean;
  readonly seen: readonly Seen[];
  /** Over HTTP/1.1: nothing that follows on the connection is read as a request any more. */
  readonly over: boolean;
  /**
   * Over HTTP/1.1: an earlier request may have got its response within its body, and then its rest may have been waited for
   * in vain on a busy machine; the connection closes without a response, for that request has its own.
   */
  readonly mayLapse: boolean;
  /** The client ended its side, and was not waited for. */
  readonly forsaken: boolean;
  /** It was told that the connection takes no such request any more. */
  readonly refused: boolean;
}

function judgeUpstream({ played, script, exchange, seen, over, sentWhole }: Facts): string[] {
  if (seen.length > 0 && isRefused(script, exchange))
    return ["an extended CONNECT with a body was passed on"];
  if (seen.length > 0 && over) return ["passed on although the connection was over"];
  const exposed = isExposed(played, script, exchange) || quits(exchange);
  const twice = isRepeatable(script, exchange) && (exposed || !isWhole(exchange));
  if (seen.length > (twice ? 2 : 1)) return [`passed on ${seen.length} times`];
  const complete = seen.some((one) => one.complete);
  // Over HTTP/2 too much may come when the upstream has all that was announced; never more than that.
  const { body } = exchange;
  const allowed = body === undefined || isComplete(script, body);
  const announced = body?.framing === "length" && body.off >= 0;
  const limited = isOverLimit(exchange) && body!.bytes > bodyBytesMaxOf(exchange.to);
  if (complete && ((!allowed && !announced) || limited || !sentWhole))
    return ["passed on as complete, which it is not"];
  return [];
}

function judgeClient(facts: Facts): string[] {
  const { outcome, id } = facts;
  const others = outcome.informationalIds.find((one) => one !== undefined && one !== id);
  if (others !== undefined) return [`got an interim response of ${others}`];
  if (outcome.id === id) return judgeOwn(facts);
  if (outcome.id !== undefined) return [`got the response of ${outcome.id}`];
  const { own } = facts.exchange.to;
  if (own !== undefined && outcome.status === ownStatus(facts)) return judgeProxys(facts, own.body);
  if (outcome.status !== undefined) return judgeRefusal(facts);
  return judgeSilence(facts);
}

/** A response that says to be the upstream's. */
function judgeOwn(facts: Facts): string[] {
  const { id, exchange, script, outcome, over } = facts;
  const { response } = exchange;
  const tunnel = opensTunnel(script, exchange);
  const status = tunnel && script.protocol === "h2" ? 200 : response.status;
  if (over) return ["a response although the connection was over"];
  if (isTunnelUnopened(facts)) return ["a tunnel is granted that the upstream did not open"];
  if (response.held === "forever") return ["a response that the upstream did not send"];
  if (outcome.status !== status) return [`status ${outcome.status} in place of ${status}`];
  if (outcome.complete && !tunnel && !isWhole(exchange) && response.then !== "reset")
    return ["looks complete, though the upstream broke it off"];
  const bytes = tunnel ? exchange.tunnel.down : isBodiless(exchange) ? 0 : response.bytes;
  const mayBeCut = mayFail(facts);
  return judgeBody(outcome, bytesOf(tunnel ? "down" : "response", id, bytes), {
    short: (tunnel && mayBeCut) || isEndedByAnother(facts),
    cut: mayBeCut,
    closes: mayClose(facts),
  });
}

/**
 * Its head is right: the body is the one it has to be, whole, and the connection goes on, but for what may be.
 *
 * @param whole undefined where the body is not known
 */
function judgeBody(
  { body, complete, closes }: Outcome,
  whole: Buffer | undefined,
  may: { readonly short: boolean; readonly cut: boolean; readonly closes: boolean },
): string[] {
  const had = `${body.length} bytes of ${whole?.length ?? "any"}`;
  if (whole !== undefined && !whole.subarray(0, body.length).equals(body))
    return [`a body that is not its own, after ${had}`];
  if (whole !== undefined && complete && body.length < whole.length && !may.short)
    return [`looks complete with ${had}`];
  if (!complete && !may.cut) return [`cut after ${had}`];
  return closes && !may.closes ? ["closes the connection for no reason"] : [];
}

/**
 * The upstream ends a connection a moment after a response, and another response has begun on it by then. If that one ends
 * with its connection, nothing shows that it is not whole (RFC 9112, 8).
 */
const isEndedByAnother = ({ played, exchange }: Facts): boolean =>
  exchange.response.framing === "close" &&
  played.clients.some(({ exchanges }) => exchanges.some(({ response }) => response.then === "soon"));

/** Success opens a tunnel for who asks for one over HTTP/2 (RFC 8441, 5), whoever responds. */
function isTunnelUnopened({ exchange, script, outcome }: Facts): boolean {
  const success = outcome.status !== undefined && outcome.status >= 200 && outcome.status < 300;
  return success && script.protocol === "h2" && exchange.upgrade && !opensTunnel(script, exchange);
}

/** The status of a route to which the proxy responds without an upstream. */
function ownStatus({ exchange, script }: Facts): number {
  const { own, responder, ownHostsOnly } = exchange.to;
  const connects = script.protocol === "h2" && exchange.upgrade;
  const method = connects ? "CONNECT" : exchange.method;
  // A page elsewhere whose name leads to the proxy would read it (DNS rebinding).
  const isStrange = (STRANGE_HOSTS as readonly string[]).includes(exchange.host);
  if (ownHostsOnly && isStrange && script.protocol === "http") return 421;
  const isRead = method === "GET" || method === "HEAD";
  return (responder === "file" || ownHostsOnly) && !isRead ? 405 : own!.status;
}

/** The response of such a route. */
function judgeProxys(facts: Facts, expected: Buffer | undefined): string[] {
  const { outcome, exchange } = facts;
  if (facts.over) return ["a response although the connection was over"];
  if (isTunnelUnopened(facts)) return ["a tunnel is granted that nobody opens"];
  // A redirect keeps the path, which has the id.
  if (outcome.location !== undefined && !outcome.location.endsWith(`/${facts.id}`))
    return [`got the redirect of another request: ${outcome.location}`];
  const connects = facts.script.protocol === "h2" && exchange.upgrade;
  const whole = exchange.method === "HEAD" && !connects ? NONE : expected;
  return judgeBody(outcome, outcome.status === 200 ? whole : undefined, {
    short: false,
    cut: mayFail(facts) || facts.forsaken,
    closes: exchange.body !== undefined || mayClose(facts),
  });
}

const NONE = Buffer.alloc(0);

/** A response of the proxy's own. */
function judgeRefusal(facts: Facts): string[] {
  const { exchange, script, outcome } = facts;
  const { client, upstream, busy } = faultsOf(facts.played, script, exchange);
  const { responder } = exchange.to;
  const connects = script.protocol === "h2" && exchange.upgrade;
  const allowed = [
    ...(client ? [400, 408] : []),
    ...(isOverLimit(exchange) ? [413] : []),
    ...(isRefused(script, exchange) || (responder === "proxy" && connects) ? [501] : []),
    ...(exchange.upgrade && exchange.body !== undefined ? [400] : []),
    // 101 to a request that asked for nothing, too.
    ...(upstream && responder === "lane" ? [502] : []),
    ...(responder === "none" ? [504] : []),
    ...(busy ? [503] : []),
    ...(facts.over ? [400] : []),
  ];
  return allowed.includes(outcome.status!) ? [] : [`refused with ${outcome.status}`];
}

function judgeSilence(facts: Facts): string[] {
  const { exchange, script, over, mayLapse, forsaken, refused } = facts;
  const { client } = faultsOf(facts.played, script, exchange);
  return client || over || mayLapse || forsaken || refused ? [] : ["no response"];
}

/** Whether the response may be less than whole. */
function mayFail({ played, script, exchange, over }: Facts): boolean {
  const { client, upstream } = faultsOf(played, script, exchange);
  return client || upstream || over;
}

/** Whether a connection may close after a response: its request is not read to its end, or not one. */
function mayClose(facts: Facts): boolean {
  const { exchange, script } = facts;
  return (
    mayFail(facts) ||
    exchange.response.when !== "complete" ||
    exchange.upgrade ||
    exchange.expect !== "none" ||
    script.exchanges.some(({ body }) => body !== undefined && (body.off !== 0 || !isComplete(script, body)))
  );
}

/** What comes after the last response: a refusal of what follows it, or nothing. */
function extra(script: ClientScript, { status, id }: Outcome): string[] {
  const last = script.exchanges.at(-1)!;
  const garbage =
    (last.body?.off ?? 0) > 0 || (last.upgrade && last.tunnel.early) || last.body?.flaw !== "none";
  const refused = garbage && (status === 400 || status === 414) && id === undefined;
  return refused ? [] : [`a response behind the last one: ${status ?? "none"}, of ${id ?? "the proxy"}`];
}
