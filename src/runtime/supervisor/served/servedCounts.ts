import { type ProxyConfig, urlsOf } from "../../../model/serving.js";
import { VERSION } from "../../../model/text/version.js";
import { type Counts, type Series, Totals } from "../../counting/counts.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import type { CertificateManager } from "./certificateManager.js";
import type { ServedUpstreams } from "./servedUpstreams.js";
import type { Supervision } from "../processes/supervision.js";
import type { ListedCertificate } from "../control/certificateList.js";
import type { ListedUpstream } from "../control/listedUpstreams.js";
import { Outcomes, upstreamStates } from "./serverStates.js";

const none = (...labels: readonly string[]): Series => ({ labels, values: [0] });

/**
 * Rare events have a counter from the beginning: Prometheus sees no increase in a counter that appears with its first
 * event.
 */
const NONE_YET: Counts = {
  reloads: [none("done"), none("refused")],
  upgrades: [none("done"), none("refused")],
  workerRestarts: [none()],
  logLinesLost: [none()],
};

/** The interface of a master for its counts. */
export interface CountsHost {
  readonly supervised: Pick<Supervision, "gauges">;
  readonly certificates: Pick<CertificateManager, "list">;
  readonly upstreams: Pick<ServedUpstreams, "listed">;
  /** The config in service, with its files. */
  loaded(): LoadedConfig;
}

/**
 * All counts since the service began: of the workers that serve, and of those that were drained, replaced or killed. A
 * worker sends its counts four times a second, so that a kill loses no more than that.
 *
 * In an upgrade two masters have workers, and the other master passes its workers' counts on to the main one: the new
 * master to the old one until it takes over, when it gets the totals, and from then on the other way round. Counts in
 * transit at that moment are sent back, so that each is counted once.
 */
export class ServedCounts {
  private totals = new Totals();
  /** The outcomes of the last requests to each server. */
  readonly outcomes = new Outcomes();
  private main: ((counts: Counts) => void) | undefined;

  constructor(private readonly host: CountsHost) {}

  add(counts: Counts): void {
    this.totals.add(counts);
    this.outcomes.add(counts);
    this.main?.(counts);
  }

  /** Counts one, under these labels. */
  count(family: keyof Counts, ...labels: readonly string[]): void {
    this.add({ [family]: [{ labels, values: [1] }] });
  }

  /** Another master becomes the main one and gets all later counts. @returns the totals so far */
  passOn(main: (counts: Counts) => void): Counts {
    this.main = main;
    return this.totals.counts;
  }

  /** The other master is not the main one after all. */
  keep(): void {
    this.main = undefined;
  }

  /** This is the main master now. @param before the totals; undefined if the other master did not pass any on */
  takeOver(before: Counts | undefined): void {
    this.main = undefined;
    if (before !== undefined) this.totals = new Totals(before);
  }

  /** All counts and gauges; a worker that hangs delays the result by two seconds. */
  async now(): Promise<Counts> {
    const ofWorkers = new Totals(...(await this.host.supervised.gauges())).counts;
    const { certificates, upstreams } = this.host;
    const { config } = this.host.loaded();
    const own = masterGauges(
      certificates.list().certificates ?? [],
      await upstreams.listed(),
      config,
      this.outcomes,
    );
    return new Totals(NONE_YET, this.totals.counts, ofWorkers, own).counts;
  }
}

/** The gauges of a master. */
export function masterGauges(
  certificates: readonly ListedCertificate[],
  listed: readonly ListedUpstream[],
  config: ProxyConfig,
  outcomes: Outcomes,
): Counts {
  return {
    certificateEnd: certificates.map(({ names: [name = ""], from, notAfter }) => ({
      labels: [name, from],
      values: [notAfter / 1_000],
    })),
    certificateBegin: certificates.map(({ names: [name = ""], from, notBefore }) => ({
      labels: [name, from],
      values: [notBefore / 1_000],
    })),
    certificateRenewal: certificates.flatMap(({ names: [name = ""], from, renewAt }) =>
      renewAt === undefined ? [] : [{ labels: [name, from], values: [renewAt / 1_000] }],
    ),
    upstreamUp: upstreamStates(config, listed, outcomes).flatMap(({ upstream, servers }) =>
      urlsOf(upstream).flatMap(({ url }): Series[] => {
        const asked = servers
          .filter((one) => upstream.spread || one.url === url)
          .filter(({ state }) => state !== "unasked");
        if (asked.length === 0) return [];
        return [
          { labels: [upstream.name, url], values: [Number(asked.some(({ state }) => state === "up"))] },
        ];
      }),
    ),
    processes: [{ labels: ["master"], values: [1] }],
    memory: [{ labels: ["master"], values: [process.memoryUsage.rss()] }],
    build: [{ labels: [VERSION, process.versions.node], values: [1] }],
  };
}
