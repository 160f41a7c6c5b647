import type { ProxyConfig } from "../../model/index.js";
import type { ErrorLog, Exchange } from "../exchange/exchange.js";
import type { WorkerCounts } from "../counting/workerCounts.js";
import type { Dispatcher } from "./dispatch.js";

/** The data that all connections of a worker share. */
export interface WorkerContext {
  readonly config: ProxyConfig;
  readonly dispatcher: Dispatcher;
  readonly counts: WorkerCounts;
  /** The log for messages that do not belong to a route. */
  readonly mainError: ErrorLog;
  readonly faults: Faults;
  /** Whether an access log shows the group of a connection's key exchange. */
  readonly showsTlsGroup: boolean;
  /** Whether an address is in `trustedProxies`. */
  readonly trusted: (address: string) => boolean;
}

/** The faults of a worker: exceptions in its own code, not errors of peers. */
export class Faults {
  /** How many there were since the worker began. */
  count = 0;

  constructor(private readonly mainError: ErrorLog) {}

  /** Logs an exception as an internal fault, with its stack. @param exchange that it happened in */
  report(error: unknown, exchange?: Exchange): void {
    this.count++;
    const stack = error instanceof Error ? error.stack : String(error);
    const log = exchange?.route?.errorLog ?? this.mainError;
    log.write("crit", `internal fault ${this.count} of this worker: ${stack}`, exchange);
  }

  /**
   * Reports an exception, and ends the exchange or connection that it happened in.
   *
   * @param end ends it properly
   * @param cut ends it if that throws as well
   */
  contain(error: unknown, exchange: Exchange | undefined, end: () => void, cut: () => void): void {
    this.report(error, exchange);
    try {
      end();
    } catch (second) {
      this.report(second, exchange);
      cut();
    }
  }
}
