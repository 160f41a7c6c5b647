import { isDeepStrictEqual } from "node:util";
import {
  type BodyScript,
  type Timeline,
  type ClientScript,
  type ExchangeScript,
  HOST,
  type ResponsePlan,
  type TunnelScript,
} from "../wire/timeline.js";
import { TARGETS } from "./targets.js";

/** Cases that are a bit smaller than one that fails, the smallest first; every one leads to a plain GET in the end. */
export function* smaller(played: Timeline): Generator<Timeline> {
  const { clients } = played;
  for (const left of withoutOne(clients)) yield { ...played, clients: left };
  for (const change of towards(played, { together: false })) yield { ...played, ...change };
  for (const [c, client] of clients.entries())
    for (const less of smallerClients(client)) yield { ...played, clients: clients.with(c, responded(less)) };
}

function* smallerClients(client: ClientScript): Generator<ClientScript> {
  const { exchanges } = client;
  for (const left of withoutOne(exchanges)) yield { ...client, exchanges: left };
  // What may be broken, and where, is another thing over HTTP/2.
  const plain = client.protocol === "h2" ? PLAIN_CLIENT : { ...PLAIN_CLIENT, protocol: "http" as const };
  for (const change of towards<ClientScript>(client, plain)) yield { ...client, ...change };
  for (const [e, exchange] of exchanges.entries())
    for (const less of smallerExchanges(exchange)) yield { ...client, exchanges: exchanges.with(e, less) };
}

function* smallerExchanges(exchange: ExchangeScript): Generator<ExchangeScript> {
  const { body, response, tunnel } = exchange;
  if (body !== undefined) yield { ...exchange, body: undefined, expect: "none" };
  for (const change of towards<ExchangeScript>(exchange, PLAIN_EXCHANGE)) yield { ...exchange, ...change };
  // Without chunks there is no flaw of chunks.
  const framing = response.flaw === "none" ? "length" : response.framing;
  for (const change of towards<ResponsePlan>(response, { ...PLAIN_RESPONSE, framing }))
    yield { ...exchange, response: { ...response, ...change } };
  for (const change of towards<TunnelScript>(tunnel, PLAIN_TUNNEL))
    yield { ...exchange, tunnel: { ...tunnel, ...change } };
  if (body === undefined) return;
  for (const change of towards<BodyScript>(body, PLAIN_BODY))
    yield { ...exchange, body: { ...body, ...change } };
}

const PLAIN_CLIENT = {
  abort: undefined,
  pipelined: false,
  stays: false,
  splits: { kind: "joined" },
  windowBytes: 65_535,
} as const;
const PLAIN_EXCHANGE = {
  ...({ method: "GET", to: TARGETS.plain, upgrade: false, expect: "none" } as const),
  ...{ host: HOST, absolute: false },
};
const PLAIN_RESPONSE = {
  ...({ flaw: "none", held: "no", informational: [], status: 200, then: "keep", when: "complete" } as const),
  ...{ apart: false, bytes: 10, piece: 10 },
};
const PLAIN_TUNNEL = { up: 0, down: 0, early: false, endedBy: "client" } as const;
const PLAIN_BODY = { off: 0, flaw: "none", end: "last", padding: 0, joined: true, piece: 16_000 } as const;

const withoutOne = <T>(all: readonly T[]): T[][] =>
  all.length === 1 ? [] : all.map((_, i) => all.toSpliced(i, 1));

/** What makes a script plainer, a field at a time. */
function towards<S extends object>(script: S, plain: Partial<S>): Partial<S>[] {
  const names = Object.keys(plain) as (keyof S)[];
  const different = names.filter((name) => !isDeepStrictEqual(script[name], plain[name]));
  return different.map((name) => ({ [name]: plain[name] }) as Partial<S>);
}

/** What may never get a response is: the reason for it may be gone. */
const responded = (client: ClientScript): ClientScript => ({
  ...client,
  exchanges: client.exchanges.map((exchange) =>
    exchange.response.held === "forever"
      ? { ...exchange, response: { ...exchange.response, held: "no" } }
      : exchange,
  ),
});
