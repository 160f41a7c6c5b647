import type { RouteConfig, VirtualServerConfig } from "../model/index.js";
import type { Exchange } from "./exchange.js";
import type { AccessLog, ErrorLog } from "./logs.js";

/** What answers the exchanges of one route. */
export interface Action {
  handle(exchange: Exchange): void;
}

/** A route made ready to serve: its action compiled and its logs opened. */
export interface RouteRuntime {
  readonly config: RouteConfig;
  readonly server: VirtualServerConfig;
  readonly action: Action;
  readonly accessLog: AccessLog;
  readonly errorLog: ErrorLog;
}
