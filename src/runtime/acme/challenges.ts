import { SECOND_MS } from "../../model/text/duration.js";
import { isIP } from "node:net";
import type { ChallengeType, DnsProofsConfig } from "../../model/serving.js";
import { Queue } from "../queue.js";
import { AcmeError } from "./acmeError.js";
import { type Clock, unlessAborted } from "./clock.js";
import type { Challenge } from "../dispatch/challenge.js";
import type { AcmeHost, OrderedCertificate } from "./acmeHost.js";
import { DnsProofs, proofOf } from "./dnsProofs.js";
import type { Proof } from "./dnsProvider.js";
import { addressBytes, tlsAlpnCertificate } from "./x509.js";

/** A challenge as a pending order keeps it: enough to respond to it again after a restart. */
export interface OpenChallenge {
  readonly type: ChallengeType;
  readonly name: string;
  readonly token: string;
  readonly keyAuthorization: string;
}

/** The challenges of all orders at once. */
export class OpenChallenges {
  private readonly byCertificate = new Map<string, readonly Challenge[]>();
  /** The challenges that DNS records prove, by certificate. */
  private readonly recorded = new Map<string, readonly Proof[]>();
  private readonly dns: DnsProofs;
  /** Removals of records that have not ended, by certificate. */
  private readonly removals = new Map<string, Promise<void>>();
  private readonly stopping = new AbortController();
  /** Keeps the reports to the host in order, so that the last one has the current challenges. */
  private readonly reports = new Queue();

  constructor(
    private readonly host: AcmeHost,
    private readonly clock: Clock,
  ) {
    this.dns = new DnsProofs(clock, (level, message) => host.log(level, message));
  }

  /** Calls `prove` with those that can be open at once, until all were. */
  eachRound<T>(
    { authority: { dns } }: OrderedCertificate,
    open: readonly T[],
    prove: (round: readonly T[]) => Promise<void>,
  ): Promise<void> {
    return this.dns.eachRound(dns, open, prove);
  }

  /** Resolves when the host responds to them. @throws AcmeError if they are not */
  async open(
    { id, authority: { dns } }: OrderedCertificate,
    challenges: readonly OpenChallenge[],
    signal: AbortSignal,
  ): Promise<void> {
    const proofs = challenges.filter(isRecorded).map((one) => proofOf(one.name, one.keyAuthorization));
    if (dns !== undefined && proofs.length > 0) {
      // A provider may read all records of a name, and write them back.
      await unlessAborted(this.removals.get(id), signal);
      this.recorded.set(id, proofs);
      await this.dns.present(dns, proofs, signal);
    }
    const served = challenges.filter((one): one is ServedChallenge => !isRecorded(one));
    if (served.length > 0) await this.serve(id, served, signal);
  }

  private async serve(
    id: string,
    challenges: readonly ServedChallenge[],
    signal: AbortSignal,
  ): Promise<void> {
    this.byCertificate.set(id, await Promise.all(challenges.map(ready)));
    const waiting = new AbortController();
    const stop = (): void => waiting.abort();
    signal.addEventListener("abort", stop);
    const late = this.clock.wait(READY_MS, waiting.signal).then(() => {
      if (!waiting.signal.aborted)
        throw new AcmeError("timeout", "the workers do not respond to the challenges yet");
    });
    try {
      await Promise.race([this.report(), late]);
    } finally {
      signal.removeEventListener("abort", stop);
      stop();
    }
  }

  /** Does not wait: a certificate is used although a DNS provider, or a worker, does not respond. */
  close({ id, authority: { dns } }: OrderedCertificate): void {
    const proofs = this.recorded.get(id);
    this.recorded.delete(id);
    if (dns !== undefined && proofs !== undefined) this.remove(id, dns, proofs);
    if (this.byCertificate.delete(id)) void this.report();
  }

  private remove(id: string, dns: DnsProofsConfig, proofs: readonly Proof[]): void {
    const before = this.removals.get(id) ?? Promise.resolve();
    const removal = before
      .then(() => this.dns.remove(dns, proofs, this.stopping.signal))
      .finally(() => {
        if (this.removals.get(id) === removal) this.removals.delete(id);
      });
    this.removals.set(id, removal);
  }

  /** Waits briefly for the removal of records: those that stay are harmless. */
  async stop(): Promise<void> {
    const timer = setTimeout(
      () => this.stopping.abort(new AcmeError("dnsUpdate", "portico stops")),
      REMOVAL_MS,
    );
    await Promise.all(this.removals.values());
    clearTimeout(timer);
  }

  private report(): Promise<void> {
    return this.reports.do(() => this.host.respondToChallenges([...this.byCertificate.values()].flat()));
  }
}

/** A challenge that the proxy's own listeners respond to. */
type ServedChallenge = OpenChallenge & { readonly type: Challenge["type"] };

const isRecorded = ({ type }: OpenChallenge): boolean => type === "dns-01";

const READY_MS = 30 * SECOND_MS;
/** A stop or an upgrade waits for the removal. */
const REMOVAL_MS = 2 * SECOND_MS;

async function ready({ type, name, token, keyAuthorization }: ServedChallenge): Promise<Challenge> {
  if (type === "http-01") return { type, token, keyAuthorization };
  return { type, name: serverNameOf(name), ...(await tlsAlpnCertificate(name, keyAuthorization)) };
}

/** The name in an authority's SNI: for an address, its reverse DNS name (RFC 8738, 6; RFC 1035, 3.5; RFC 3596, 2.5). */
export function serverNameOf(name: string): string {
  if (isIP(name) === 0) return name;
  const bytes = [...addressBytes(name)].reverse();
  if (isIP(name) === 4) return `${bytes.join(".")}.in-addr.arpa`;
  const nibbles = bytes.flatMap((byte) => [byte & 15, byte >> 4].map((nibble) => nibble.toString(16)));
  return `${nibbles.join(".")}.ip6.arpa`;
}
