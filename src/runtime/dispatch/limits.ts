import { respondFailure } from "./errorPages.js";
import type { Exchange } from "../exchange/exchange.js";
import type { RouteLimits } from "../rates/routeLimits.js";

/**
 * Counts a request of a client, before a byte of its body is read, and before `100 Continue`.
 *
 * @returns whether it refused the request, as one too many
 */
export function isOneTooMany(exchange: Exchange, limits: RouteLimits): boolean {
  const counted = limits.begin(exchange.client.address);
  if (typeof counted === "string") {
    exchange.countedAs = counted;
    return false;
  }
  const { limit, retrySeconds } = counted;
  exchange.exceeds = limit;
  exchange.route?.errorLog.write("warn", `limit="${limit}": the client asks for too much`, exchange);
  respondFailure(exchange, "http_request_denied", 429, { headers: ["Retry-After", String(retrySeconds)] });
  return true;
}
