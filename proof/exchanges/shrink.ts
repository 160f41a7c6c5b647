import { isDeepStrictEqual } from "node:util";
import { type BodyScript, type Case, type ClientScript, type ExchangeScript, PLAIN } from "./case.js";

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
  const { exchanges, splits } = client;
  if (exchanges.length > 1)
    for (let e = 0; e < exchanges.length; e++) yield { ...client, exchanges: exchanges.toSpliced(e, 1) };
  yield* plainer(client, PLAIN.client);
  if (splits.kind === "some" && splits.at.length > 1)
    for (let i = 0; i < splits.at.length; i++)
      yield { ...client, splits: { kind: "some", at: splits.at.toSpliced(i, 1) } };
  for (const [e, exchange] of exchanges.entries())
    for (const simpler of simplerExchanges(exchange))
      yield { ...client, exchanges: exchanges.with(e, simpler) };
}

function* simplerExchanges(exchange: ExchangeScript): Generator<ExchangeScript> {
  const { answer, body, tunnel } = exchange;
  if (body !== undefined) yield { ...exchange, body: undefined, expect: "none" };
  // Whoever is sent a 101 has to have asked for it.
  for (const simpler of plainer(exchange, PLAIN.exchange))
    if (simpler.upgrade || answer.status !== 101) yield simpler;
  for (const simpler of plainer(answer, PLAIN.answer))
    if (simpler.framing === "chunked" || !simpler.flaw.startsWith("chunk"))
      yield { ...exchange, answer: simpler };
  if (answer.bytes > 4)
    yield { ...exchange, answer: { ...answer, bytes: answer.bytes >> 1, piece: answer.bytes } };
  if (exchange.upgrade && (tunnel.up > 1 || tunnel.down > 1))
    yield { ...exchange, tunnel: { ...tunnel, up: tunnel.up >> 1, down: tunnel.down >> 1 } };
  if (body === undefined) return;
  for (const simpler of simplerBodies(body)) yield { ...exchange, body: simpler };
}

function* simplerBodies(body: BodyScript): Generator<BodyScript> {
  const { bytes, off, piece } = body;
  yield* plainer(body, PLAIN.body);
  if (piece < bytes && bytes <= 16_000) yield { ...body, piece: bytes };
  if (bytes > 1)
    yield { ...body, bytes: bytes >> 1, off: Math.max(off, -(bytes >> 1)), piece: Math.max(1, piece >> 1) };
  if (bytes > 1) yield { ...body, bytes: bytes - 1, off: Math.max(off, 1 - bytes) };
  if (off > 1) yield { ...body, off: off >> 1 };
}

/** The same with one property as usual. */
function* plainer<T extends object>(value: T, plain: Partial<T>): Generator<T> {
  for (const name of Object.keys(plain) as (keyof T)[])
    if (!isDeepStrictEqual(value[name], plain[name])) yield { ...value, [name]: plain[name] };
}
