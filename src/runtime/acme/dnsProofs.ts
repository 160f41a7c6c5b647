import { SECOND_MS } from "../../model/text/duration.js";
import { createHash } from "node:crypto";
import { Resolver } from "node:dns/promises";
import { isIPv6 } from "node:net";
import type { DnsProofsConfig } from "../../model/serving.js";
import { AcmeDns } from "./acmeDns.js";
import { AcmeError } from "./acmeError.js";
import type { AcmeHost } from "./acmeHost.js";
import { type Clock } from "./clock.js";
import { DnsApi, DnsApiWrites } from "./dnsApi.js";
import type { TxtRecord } from "./dnsMessage.js";
import { DnsProgram } from "./dnsProgram.js";
import type { DnsProvider, NameServer, Proof } from "./dnsProvider.js";
import { DnsUpdates } from "./dnsUpdate.js";
import { Queue } from "../queue.js";

/** RFC 8555, 8.4. */
export const proofOf = (name: string, keyAuthorization: string): Proof => ({
  name,
  value: createHash("sha256").update(keyAuthorization).digest("base64url"),
});

/** Writes the records that prove names, and removes them. */
export class DnsProofs {
  private readonly writes: DnsApiWrites;
  private readonly oneValue = new Queue();

  constructor(
    private readonly clock: Clock,
    private readonly log: AcmeHost["log"],
  ) {
    this.writes = new DnsApiWrites(clock);
  }

  private provider(dns: DnsProofsConfig): DnsProvider {
    switch (dns.type) {
      case "rfc2136":
        return new DnsUpdates(dns);
      case "program":
        return new DnsProgram(dns, this.log);
      case "acme-dns":
        return new AcmeDns(dns);
      default:
        return new DnsApi(dns, this.writes);
    }
  }

  /**
   * Calls `prove` with all challenges. Where a name keeps one value, with one after the other instead, and while no other
   * order is proved.
   */
  async eachRound<T>(
    dns: DnsProofsConfig | undefined,
    open: readonly T[],
    prove: (round: readonly T[]) => Promise<void>,
  ): Promise<void> {
    if (dns === undefined || this.provider(dns).hasOneValue !== true) return prove(open);
    await this.oneValue.do(async () => {
      for (const one of open) await prove([one]);
    });
  }

  /** Resolves when every name server shows the records. @throws AcmeError if one does not, or they cannot be written */
  async present(dns: DnsProofsConfig, proofs: readonly Proof[], signal: AbortSignal): Promise<void> {
    const provider = this.provider(dns);
    const records = await provider.records(proofs);
    await provider.write("present", records, signal);
    const { nameServers, publishMs = 0, hasOneValue } = provider;
    await this.shown(nameServers, records, dns.waitMs, signal);
    // Resolvers may have the value before.
    if (publishMs === 0 || (nameServers.length > 0 && hasOneValue !== true)) return;
    await this.clock.wait(publishMs, signal);
    signal.throwIfAborted();
  }

  /** A record that stays is harmless, so this is only logged. */
  async remove(dns: DnsProofsConfig, proofs: readonly Proof[], signal: AbortSignal): Promise<void> {
    try {
      const provider = this.provider(dns);
      const records = await provider.records(proofs);
      await provider.write("cleanup", records, signal);
    } catch (error) {
      const why = error instanceof AcmeError ? error.detail : (error as Error).message;
      this.log("warn", `a DNS record was not removed after use: ${why}`);
    }
  }

  private async shown(
    servers: readonly NameServer[],
    records: readonly TxtRecord[],
    waitMs: number,
    signal: AbortSignal,
  ): Promise<void> {
    const end = this.clock.elapsed() + waitMs;
    let waiting = [...servers];
    for (;;) {
      const missing = await Promise.all(waiting.map((server) => missingAt(server, records, signal)));
      waiting = waiting.filter((_, i) => missing[i] !== undefined);
      signal.throwIfAborted();
      const [first] = missing.filter((one) => one !== undefined);
      if (first === undefined) return;
      if (this.clock.elapsed() + PAUSE_MS > end)
        throw new AcmeError("dnsRecord", `${first}, after ${waitMs / SECOND_MS} s`);
      await this.clock.wait(PAUSE_MS, signal);
    }
  }
}

const PAUSE_MS = SECOND_MS;
const RESPONSE_MS = 5 * SECOND_MS;

/** Describes the first record that a name server does not have yet; undefined if it has all. */
async function missingAt(
  { address, port }: NameServer,
  records: readonly TxtRecord[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const resolver = new Resolver({ timeout: RESPONSE_MS, tries: 1 });
  resolver.setServers([`${isIPv6(address) ? `[${address}]` : address}:${port}`]);
  const stop = (): void => resolver.cancel();
  signal.addEventListener("abort", stop);
  try {
    for (const { name, value } of records) {
      signal.throwIfAborted();
      const found = await resolver.resolveTxt(name).catch((error: NodeJS.ErrnoException) => error.code ?? "");
      if (typeof found === "string") return `${address} has no TXT record ${name} (${found})`;
      if (!found.some((pieces) => pieces.join("") === value))
        return `${address} has a TXT record ${name}, but not with ${value}`;
    }
    return undefined;
  } finally {
    signal.removeEventListener("abort", stop);
  }
}
