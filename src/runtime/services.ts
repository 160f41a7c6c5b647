import type { ProxyConfig } from "../model/index.js";
import type { Dispatcher } from "./dispatch.js";
import type { Faults } from "./faults.js";
import type { LogFiles } from "./logs.js";

/** What every connection of a worker shares. */
export interface Services {
  readonly config: ProxyConfig;
  readonly dispatcher: Dispatcher;
  readonly logs: LogFiles;
  readonly faults: Faults;
  /** Whether an address is in `trustedProxies`. */
  readonly trusted: (address: string) => boolean;
}
