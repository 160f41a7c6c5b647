import { isWhole } from "./scriptedResponse.js";
import {
  type Timeline,
  type ClientScript,
  type ExchangeScript,
  INFORMATIONAL_MAX,
  isComplete,
  isUpgrade,
  type Target,
} from "./timeline.js";

/** Who is at fault in an exchange, by its script: nobody else may be blamed, and only then may it fail. */
export interface Faults {
  readonly client: boolean;
  readonly upstream: boolean;
  /** Others may have taken all connections to the upstream. */
  readonly busy: boolean;
}

const IDEMPOTENT = new Set(["GET", "HEAD", "OPTIONS", "PUT", "DELETE"]);

/** A whole request that must not be passed on: an extended CONNECT has no body (RFC 8441). */
export const isRefused = ({ protocol }: ClientScript, { upgrade, body }: ExchangeScript): boolean =>
  protocol === "h2" && upgrade && body !== undefined;

export const isOverLimit = ({ to, body }: ExchangeScript): boolean =>
  body !== undefined && body.bytes + Math.max(0, body.off) > bodyBytesMaxOf(to);

/** The longest body that a route takes. */
export const bodyBytesMaxOf = (to: Target): number => to.bodyBytesMax ?? Infinity;

/** A machine that is busy may let any client be silent for longer than the route allows. */
export const mayTimeOut = ({ to, body }: ExchangeScript): boolean =>
  to.bodyTimeoutMs !== undefined && body !== undefined;

/** Whether what the client sends for one exchange is not a request, or one that is refused. */
export function isBroken(client: ClientScript, exchange: ExchangeScript): boolean {
  const { body } = exchange;
  if (body === undefined) return false;
  const tooLong = body.off > 0 && client.protocol === "h2";
  return !isComplete(client, body) || tooLong || isRefused(client, exchange) || isOverLimit(exchange);
}

/** Whether its stream has to be reset, by either side: it does not end as it says. */
export const isSpent = (client: ClientScript, { body }: ExchangeScript): boolean =>
  body !== undefined && (!isComplete(client, body) || body.off > 0);

/** Whether an upstream closes a connection that may be in use again by then. */
export const quits = ({ response }: ExchangeScript): boolean =>
  response.flaw === "late" ||
  (response.flaw === "none" &&
    (response.then === "quit" || response.then === "soon" || response.then === "reset"));

/** Whether it may meet a connection that is being closed, and not be sent again. */
export function isExposed(
  { clients, together }: Timeline,
  client: ClientScript,
  exchange: ExchangeScript,
): boolean {
  const others = together ? clients : [client];
  const earlier = together ? [] : clients.slice(0, clients.indexOf(client));
  return (
    others.some(({ exchanges }) => exchanges.some((other) => other !== exchange && quits(other))) ||
    earlier.some(({ exchanges }) => exchanges.some(({ response }) => response.then === "soon"))
  );
}

export const isRepeatable = (client: ClientScript, exchange: ExchangeScript): boolean =>
  IDEMPOTENT.has(exchange.method) &&
  (exchange.body === undefined || (exchange.body.framing === "length" && exchange.body.bytes === 0)) &&
  !isUpgrade(client, exchange);

/** Whether others of the case may hold what it waits for. */
function isBusy({ clients, together }: Timeline, client: ClientScript, exchange: ExchangeScript): boolean {
  if (exchange.to.narrow !== true) return false;
  const others = together ? clients : [client];
  return others.some(({ exchanges }) => exchanges.some((one) => one !== exchange && one.to.narrow));
}

export function faultsOf(played: Timeline, client: ClientScript, exchange: ExchangeScript): Faults {
  return {
    client: isBroken(client, exchange) || client.abort !== undefined || mayTimeOut(exchange),
    upstream:
      exchange.to.responder === "none" ||
      exchange.response.held === "forever" ||
      exchange.response.informational.length > INFORMATIONAL_MAX ||
      !isWhole(exchange) ||
      quits(exchange) ||
      isExposed(played, client, exchange) ||
      isUnasked(client, exchange),
    busy: isBusy(played, client, exchange),
  };
}

/** A response of the wrong kind: 101 to who did not ask for it, or success to who asked for a tunnel over HTTP/2. */
export function isUnasked(client: ClientScript, exchange: ExchangeScript): boolean {
  const { status } = exchange.response;
  if (!isUpgrade(client, exchange)) return status === 101;
  return client.protocol === "h2" && status >= 200 && status < 300;
}

/** Whether an exchange ends without its response, however long that takes. */
export function isGivenUp(client: ClientScript, exchange: ExchangeScript): boolean {
  const { abort, pipelined, exchanges, protocol } = client;
  const { body, to, expect } = exchange;
  const waits = exchanges.some(({ expect, upgrade }) => expect === "waits" || upgrade);
  // Who only ends its side gets a response all the same, and nobody looks for an end behind a request that waits.
  const isSeen = exchanges.length === 1 || (pipelined && protocol === "h2");
  if (abort !== undefined) return "sent" in abort.after && abort.how !== "half" && isSeen && !waits;
  // Who waits for a 100 may be silent.
  const untimed = to.bodyTimeoutMs === undefined || expect !== "none";
  if (protocol === "h2" && body?.end === "never" && untimed) return false;
  // Nobody asks for a body of no bytes: who waits to be asked never sends what is too much.
  if (expect === "waits" && body?.bytes === 0) return false;
  // Behind a length over HTTP/1.1, what is too much is no part of the request.
  const isBehind = protocol !== "h2" && body?.framing === "length" && body.off > 0;
  return isBroken(client, exchange) && !exchange.upgrade && !isBehind;
}
