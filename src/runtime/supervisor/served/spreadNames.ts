import { lookup } from "node:dns/promises";
import { type ProxyConfig, spreadUrls, upstreamAddress } from "../../../model/serving.js";

/** A name whose addresses are servers of an upstream. */
export interface SpreadName {
  readonly upstream: string;
  /** The URL of the config that has the name. */
  readonly url: string;
}

/** Receives the results of lookups. */
export interface NameUser {
  /** The name has these addresses, at least one, in a stable order. */
  found(name: SpreadName, addresses: readonly string[]): void;
  /** It could not be looked up, after it could, or for the first time. */
  failed(name: SpreadName, why: string): void;
}

/** Looks up the names of one config: once, or again and again until it is stopped. */
export class SpreadNames {
  private readonly names: readonly SpreadName[];
  private readonly failing = new Set<SpreadName>();
  private readonly timers = new Map<SpreadName, NodeJS.Timeout>();
  private stopped = false;

  constructor(
    { upstreams }: ProxyConfig,
    private readonly user: NameUser,
  ) {
    this.names = upstreams.flatMap((one) => spreadUrls(one).map((url) => ({ upstream: one.name, url })));
  }

  /** Resolves when every name was looked up, or after a while: a resolver that hangs must not keep a start back. */
  async once(): Promise<void> {
    if (this.names.length === 0) return;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, FIRST_MS)));
    await Promise.race([Promise.all(this.names.map((name) => this.lookUp(name))), late]);
    clearTimeout(timer);
  }

  begin(): void {
    for (const name of this.names) this.later(name);
  }

  stop(): void {
    this.stopped = true;
    for (const timer of this.timers.values()) clearTimeout(timer);
  }

  private later(name: SpreadName): void {
    if (this.stopped) return;
    const timer = setTimeout(() => void this.lookUp(name).then(() => this.later(name)), LOOKUP_MS);
    this.timers.set(name, timer);
  }

  /** The system's own resolver, as for every connection: it knows /etc/hosts, and no time to live. */
  private async lookUp(name: SpreadName): Promise<void> {
    const address = upstreamAddress(name.url);
    if (!("host" in address)) return;
    try {
      const all = await lookup(address.host, { all: true });
      if (this.stopped) return;
      // A zone has no place in a URL, and means nothing on another host.
      const usable = new Set(all.map((one) => one.address).filter((one) => !one.includes("%")));
      if (usable.size === 0) return this.fail(name, "it has no address");
      this.failing.delete(name);
      this.user.found(name, [...usable].sort().slice(0, ADDRESSES_MAX));
    } catch (error) {
      if (!this.stopped) this.fail(name, (error as NodeJS.ErrnoException).code ?? String(error));
    }
  }

  private fail(name: SpreadName, why: string): void {
    if (this.failing.has(name)) return;
    this.failing.add(name);
    this.user.failed(name, why);
  }
}

const LOOKUP_MS = 5_000;
const FIRST_MS = 2_000;
/** Limited, because each address has its own connections. */
const ADDRESSES_MAX = 256;
