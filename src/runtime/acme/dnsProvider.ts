import type { DnsProofsConfig } from "../../model/serving.js";
import type { Change, TxtRecord } from "./dnsMessage.js";

/** A name, and the value by which an authority knows that it is ours. */
export interface Proof {
  readonly name: string;
  readonly value: string;
}

export type NameServer = NonNullable<DnsProofsConfig["nameServers"]>[number];

/** Who writes records. */
export interface DnsProvider {
  /** Each of them has to show the records. */
  readonly nameServers: readonly NameServer[];
  /** Where the proofs have to be. */
  records(proofs: readonly Proof[]): Promise<TxtRecord[]>;
  /** To write what is there already, or to remove what is not, is no failure. */
  write(change: Change, records: readonly TxtRecord[], signal: AbortSignal): Promise<void>;
}
