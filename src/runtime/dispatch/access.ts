import { type AccessRefusal, type RouteGuard, refusalText } from "../../model/serving.js";
import { respondFailure } from "./errorPages.js";
import type { Exchange } from "../exchange/exchange.js";

/** A condition that a request has to meet, in the order of {@link STEPS}. */
type Step = (exchange: Exchange, guard: RouteGuard) => AccessRefusal | undefined;

const STEPS: readonly Step[] = [
  ({ client, request }, guard) => guard.refusal(client.address, request.target, request.path),
];

/**
 * Judges a request before a byte of its body is read, and before `100 Continue`.
 *
 * @returns whether it refused the request
 */
export function refusesAccess(exchange: Exchange, guard: RouteGuard): boolean {
  for (const step of STEPS) {
    const refusal = step(exchange, guard);
    if (refusal === undefined) continue;
    exchange.accessRefusal = refusal;
    refuse(exchange, refusal);
    return true;
  }
  return false;
}

function refuse(exchange: Exchange, refusal: AccessRefusal): void {
  const { refusal: response } = refusal;
  exchange.route?.errorLog.write(
    "error",
    `access="${refusalText(refusal)}": the client may not come in`,
    exchange,
  );
  if (response === "close") {
    exchange.errorToken = "http_request_denied";
    return exchange.abort();
  }
  // By `Proxy-Status`, a client could tell a closed path from one that does not exist.
  respondFailure(exchange, response === 404 ? "destination_not_found" : "http_request_denied", response);
}
