import type { DnsProofsConfig } from "../../model/serving.js";
import type { TxtChange, TxtRecord } from "./dnsMessage.js";

/** A name, and the value by which an authority knows that it is ours. */
export interface Proof {
  readonly name: string;
  readonly value: string;
}

export type NameServer = NonNullable<DnsProofsConfig["nameServers"]>[number];

/** Writes the DNS records of proofs. */
export interface DnsProvider {
  /** Each of them has to show the records. */
  readonly nameServers: readonly NameServer[];
  /** Milliseconds until an authority finds a record that was written, if no name server is asked for the record. */
  readonly publishMs?: number;
  /** Whether a name keeps one value, which a new one replaces. */
  readonly hasOneValue?: boolean;
  /** The records that the proofs need. */
  records(proofs: readonly Proof[]): Promise<TxtRecord[]>;
  /** Writing an existing record, or removing a missing one, is not a failure. */
  write(change: TxtChange, records: readonly TxtRecord[], signal: AbortSignal): Promise<void>;
}
