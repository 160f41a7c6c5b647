import type { Exchange, ExchangeHolder } from "../exchange/exchange.js";
import type { Guarded } from "../sockets/guarded.js";
import type { WaitingRequest } from "./outage.js";
import type { UpstreamConnection } from "./upstreamConnection.js";

/** Wants a connection to an upstream, for an exchange that it holds for. */
export interface ConnectionTaker extends ExchangeHolder, Guarded, WaitingRequest {
  readonly exchange: Pick<Exchange, "client" | "hold" | "released">;
  /** Method of the request that will be sent. */
  readonly method: string;
  /** It has a connection, at once or when its turn has come, and again for a second attempt. */
  onConnection(connection: UpstreamConnection): void;
  /** There is no connection for it: it waits no longer. @param reason for the error log */
  onBusy(reason: string): void;
  /** The upstream refused connections for all the time that it could wait. @param reason for the error log */
  onRefused(reason: string): void;
}
