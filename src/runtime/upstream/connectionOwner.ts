import type { LookupFunction } from "node:net";
import type { ErrorToken } from "../../model/serving.js";
import type { Faults } from "../dispatch/workerContext.js";
import type { ResponseReader } from "./responseReader.js";
import type { UpstreamTls } from "./upstreamTls.js";

/** What a connection is one of several of. */
export interface ConnectionOwner<C> {
  /** Its response is complete. @returns whether it will be used again */
  idle(connection: C): boolean;
  onStrayBytes(): void;
  /** How its host name is looked up; undefined for an address. */
  readonly lookup: LookupFunction | undefined;
  /** Undefined where it does not speak TLS. */
  readonly tls: UpstreamTls | undefined;
  /** One is established, TLS included. */
  opened(): void;
  closed(connection: C): void;
  /** A request on one failed. */
  failed(token: ErrorToken): void;
  readonly faults: Faults;
}

/** Wants a connection that is established before anything is sent. */
export interface ConnectionOpener extends ResponseReader {
  onOpen(): void;
}
