import { randomBytes } from "node:crypto";
import type { Exchange } from "./exchange.js";

/**
 * The id by which a person who saw an error page finds the request in the logs. Made when the first of them wants it: most
 * requests have none.
 */
export function requestIdOf(exchange: Exchange): string {
  return (exchange.requestId ??= randomBytes(8).toString("hex"));
}
