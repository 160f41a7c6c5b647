import type { ProxyConfig } from "../../model/index.js";
import type { ErrorLog } from "./exchange.js";
import type { Dispatcher } from "./dispatch.js";
import type { Faults } from "./faults.js";

/** What every connection of a worker shares. */
export interface WorkerContext {
  readonly config: ProxyConfig;
  readonly dispatcher: Dispatcher;
  /** For messages that do not belong to a route. */
  readonly mainError: ErrorLog;
  readonly faults: Faults;
  /** Whether an access log shows the group of a connection's key exchange. */
  readonly showsTlsGroup: boolean;
  /** Whether an address is in `trustedProxies`. */
  readonly trusted: (address: string) => boolean;
}
