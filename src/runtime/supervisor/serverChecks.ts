import { type KnownServer, serverConfig, type UpstreamConfig } from "../../model/serving.js";
import type { LoadedConfig } from "../load/loadConfig.js";
import { type HealthConfig, ServerCheck } from "./serverCheck.js";

/** Gets what checks find. */
export interface CheckedServers {
  isDown(name: string, url: string): boolean;
  /** Enough checks in a row say the other thing now. */
  changed(name: string, url: string, down: boolean, why: string): void;
}

/** The checks of the servers of one config, until they are stopped. */
export class ServerChecks {
  /** Ends the checks of each server, by upstream and URL. */
  private readonly running = new Map<string, Map<string, AbortController>>();

  constructor(
    private readonly loaded: Pick<LoadedConfig, "upstreamTls">,
    private readonly servers: CheckedServers,
  ) {}

  /** From now on these are the servers of an upstream; checks of those that stay go on. */
  use(upstream: UpstreamConfig, servers: readonly KnownServer[]): void {
    const { name, health } = upstream;
    if (health === undefined) return;
    const before = this.running.get(name) ?? new Map<string, AbortController>();
    const now = new Map<string, AbortController>();
    this.running.set(name, now);
    for (const server of servers) {
      const { url } = server;
      now.set(url, before.get(url) ?? new AbortController());
      if (before.delete(url)) continue;
      const config = serverConfig(upstream, server);
      const check = new ServerCheck(config, health, this.loaded.upstreamTls?.[name]);
      this.begin(name, url, check, health);
    }
    for (const gone of before.values()) gone.abort();
  }

  stop(): void {
    for (const all of this.running.values()) for (const one of all.values()) one.abort();
  }

  /** All begin at different times, and stay apart by their jitter. */
  private begin(name: string, url: string, check: ServerCheck, health: HealthConfig): void {
    const { signal } = this.running.get(name)!.get(url)!;
    const { intervalMs, fall, rise } = health;
    /** Checks in a row that contradict the state. */
    let others = 0;
    const look = async (): Promise<void> => {
      const began = performance.now();
      const why = await check.run(Math.min(intervalMs, CHECK_MS), signal);
      if (signal.aborted) return;
      const wasDown = this.servers.isDown(name, url);
      others = (why !== undefined) === wasDown ? 0 : others + 1;
      if (others >= (wasDown ? rise : fall)) {
        others = 0;
        this.servers.changed(name, url, !wasDown, why ?? "it answered");
      }
      later(intervalMs * (1 + (Math.random() - 0.5) * JITTER) - (performance.now() - began));
    };
    let timer: NodeJS.Timeout;
    const later = (ms: number): void => void (timer = setTimeout(() => void look(), Math.max(ms, 0)));
    signal.addEventListener("abort", () => clearTimeout(timer));
    later(Math.random() * Math.min(intervalMs, SPREAD_MS));
  }
}

const CHECK_MS = 10_000;
/** A tenth, up or down. */
const JITTER = 0.2;
const SPREAD_MS = 1_000;
