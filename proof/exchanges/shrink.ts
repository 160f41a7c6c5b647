import type { BodyScript, Case, ClientScript, ExchangeScript } from "./case.js";

/** Runs of a case that fails; a failure by chance does not show in each. */
const RUNS_MAX = 150;

/**
 * The least case found that fails in the same way: fewer clients, requests and splits, smaller bodies.
 * @param fails whether a case fails as the first one did
 */
export async function least(played: Case, fails: (played: Case) => Promise<boolean>): Promise<Case> {
  let best = played;
  let runs = 0;
  for (let improved = true; improved;) {
    improved = false;
    for (const simpler of simplerCases(best)) {
      if (++runs > RUNS_MAX) return best;
      if (!(await fails(simpler))) continue;
      best = simpler;
      improved = true;
      break;
    }
  }
  return best;
}

/** Cases that are simpler by one step, the largest steps first. */
export function* simplerCases(played: Case): Generator<Case> {
  const { clients } = played;
  if (clients.length > 1)
    for (let c = 0; c < clients.length; c++) yield { ...played, clients: clients.toSpliced(c, 1) };
  if (played.together) yield { ...played, together: false };
  for (const [c, client] of clients.entries())
    for (const simpler of simplerClients(client)) yield { ...played, clients: clients.with(c, simpler) };
}

function* simplerClients(client: ClientScript): Generator<ClientScript> {
  const { exchanges, splits, abort } = client;
  if (exchanges.length > 1)
    for (let e = 0; e < exchanges.length; e++) yield { ...client, exchanges: exchanges.toSpliced(e, 1) };
  if (abort !== undefined) yield { ...client, abort: undefined };
  if (splits.kind !== "joined") yield { ...client, splits: { kind: "joined" } };
  if (splits.kind === "some" && splits.at.length > 1)
    for (let i = 0; i < splits.at.length; i++)
      yield { ...client, splits: { kind: "some", at: splits.at.toSpliced(i, 1) } };
  if (client.windowBytes !== 65_535) yield { ...client, windowBytes: 65_535 };
  if (client.pipelined) yield { ...client, pipelined: false };
  for (const [e, exchange] of exchanges.entries())
    for (const simpler of simplerExchanges(exchange))
      yield { ...client, exchanges: exchanges.with(e, simpler) };
}

function* simplerExchanges(exchange: ExchangeScript): Generator<ExchangeScript> {
  const { answer, body, tunnel } = exchange;
  if (body !== undefined) yield { ...exchange, body: undefined, expect: "none" };
  if (exchange.upgrade && answer.status !== 101) yield { ...exchange, upgrade: false };
  if (exchange.to !== "plain") yield { ...exchange, to: "plain" };
  if (exchange.expect !== "none") yield { ...exchange, expect: "none" };
  const plain = {
    ...answer,
    when: "complete",
    informational: [],
    flaw: "none",
    then: "keep",
    apart: false,
    held: "no",
  } as const;
  if (answer.held !== "no") yield { ...exchange, answer: { ...answer, held: "no" } };
  if (answer.flaw !== "none") yield { ...exchange, answer: { ...answer, flaw: "none" } };
  if (answer.then !== "keep") yield { ...exchange, answer: { ...answer, then: "keep" } };
  if (answer.when !== "complete") yield { ...exchange, answer: { ...answer, when: "complete" } };
  if (answer.informational.length > 0 || answer.apart)
    yield { ...exchange, answer: { ...plain, flaw: answer.flaw, then: answer.then, when: answer.when } };
  if (answer.framing !== "length" && !answer.flaw.startsWith("chunk"))
    yield { ...exchange, answer: { ...answer, framing: "length" } };
  if (answer.bytes > 4)
    yield { ...exchange, answer: { ...answer, bytes: answer.bytes >> 1, piece: answer.bytes } };
  if (exchange.upgrade && (tunnel.up > 1 || tunnel.down > 1))
    yield { ...exchange, tunnel: { ...tunnel, up: tunnel.up >> 1, down: tunnel.down >> 1 } };
  if (body === undefined) return;
  for (const simpler of simplerBodies(body)) yield { ...exchange, body: simpler };
}

function* simplerBodies(body: BodyScript): Generator<BodyScript> {
  const { bytes, off, piece } = body;
  if (off !== 0) yield { ...body, off: 0 };
  if (body.flaw !== "none") yield { ...body, flaw: "none" };
  if (body.padding > 0) yield { ...body, padding: 0 };
  if (body.end !== "last") yield { ...body, end: "last" };
  if (piece < bytes && bytes <= 16_000) yield { ...body, piece: bytes };
  if (bytes > 1)
    yield { ...body, bytes: bytes >> 1, off: Math.max(off, -(bytes >> 1)), piece: Math.max(1, piece >> 1) };
  if (bytes > 1) yield { ...body, bytes: bytes - 1, off: Math.max(off, 1 - bytes) };
  if (off > 1) yield { ...body, off: off >> 1 };
}
