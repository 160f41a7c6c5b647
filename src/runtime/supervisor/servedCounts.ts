import { hasSeveral, type ProxyConfig, type UpstreamConfig, urlsOf } from "../../model/serving.js";
import { VERSION } from "../../model/version.js";
import { type Counts, type Series, totalOf, Totals } from "../counting/counts.js";
import type { LoadedConfig } from "../load/loadConfig.js";
import type { CertificateManager } from "./certificateManager.js";
import type { ServedUpstreams } from "./servedUpstreams.js";
import type { Supervision } from "./supervision.js";
import type { ListedCertificate } from "./certificateList.js";
import type { ListedUpstream } from "./listedUpstreams.js";

const none = (...labels: readonly string[]): Series => ({ labels, values: [0] });

/**
 * What happens seldom is there from the beginning: of a counter that comes with its first event, Prometheus sees no
 * increase.
 */
const NONE_YET: Counts = {
  reloads: [none("done"), none("refused")],
  upgrades: [none("done"), none("refused")],
  workerRestarts: [none()],
  logLinesLost: [none()],
};

/** What the counts of a master need from it. */
export interface CountsHost {
  readonly supervised: Pick<Supervision, "gauges">;
  readonly certificates: Pick<CertificateManager, "list">;
  readonly upstreams: Pick<ServedUpstreams, "listed">;
  /** What is in service now. */
  loaded(): LoadedConfig;
}

/**
 * Everything that was counted since the service began: by the workers that serve, and by those that were drained,
 * replaced or killed. A worker says four times a second what it counted since, so that a kill loses no more than that.
 *
 * In an upgrade two masters have workers, and each passes on to the main one what its own count: the new one to the old
 * one until it takes over, with which it gets the totals of all, and from then on the other way round. Counts that are on
 * their way meanwhile are sent back. So each is counted once, whenever it comes.
 */
export class ServedCounts {
  private totals = new Totals();
  private main: ((counts: Counts) => void) | undefined;

  constructor(private readonly host: CountsHost) {}

  add(counts: Counts): void {
    this.totals.add(counts);
    this.main?.(counts);
  }

  /** Counts one, under these labels. */
  count(family: keyof Counts, ...labels: readonly string[]): void {
    this.add({ [family]: [{ labels, values: [1] }] });
  }

  /** Another master is the main one: it gets what comes from now on. @returns all that was counted before */
  passOn(main: (counts: Counts) => void): Counts {
    this.main = main;
    return this.totals.counts;
  }

  /** The other one is not. */
  keep(): void {
    this.main = undefined;
  }

  /** This is the main master now. @param before all that was counted; undefined from a release that does not count */
  takeOver(before: Counts | undefined): void {
    this.main = undefined;
    if (before !== undefined) this.totals = new Totals(before);
  }

  /** All of it, asked of all workers; one that hangs keeps the response back for two seconds. */
  async now(): Promise<Counts> {
    const ofWorkers = new Totals(...(await this.host.supervised.gauges())).counts;
    const { certificates, upstreams } = this.host;
    const { config } = this.host.loaded();
    const own = masterGauges(
      certificates.list().certificates ?? [],
      await upstreams.listed(),
      config,
      ofWorkers,
    );
    return new Totals(NONE_YET, this.totals.counts, ofWorkers, own).counts;
  }
}

/** What a master knows of the moment. @param ofWorkers what all workers have together */
export function masterGauges(
  certificates: readonly ListedCertificate[],
  listed: readonly ListedUpstream[],
  { upstreams }: ProxyConfig,
  ofWorkers: Counts,
): Counts {
  return {
    certificateEnd: certificates.map(({ names: [name = ""], from, notAfter }) => ({
      labels: [name, from],
      values: [notAfter / 1_000],
    })),
    upstreamUp: upstreams.flatMap((upstream) =>
      serversUp(
        upstream,
        listed.find(({ name }) => name === upstream.name),
        ofWorkers,
      ),
    ),
    processes: [{ labels: ["master"], values: [1] }],
    memory: [{ labels: ["master"], values: [process.memoryUsage.rss()] }],
    build: [{ labels: [VERSION, process.versions.node], values: [1] }],
  };
}

function serversUp(
  upstream: UpstreamConfig,
  listed: ListedUpstream | undefined,
  ofWorkers: Counts,
): Series[] {
  const urls = urlsOf(upstream).map(({ url }) => url);
  const up = (url: string): boolean => {
    if (!hasSeveral(upstream) || listed === undefined)
      return totalOf(ofWorkers, "upstreamOut", { upstream: upstream.name, upstream_server: url }) === 0;
    const servers = listed.servers.filter((one) => upstream.spread || one.url === url);
    return servers.some(({ drained, down, outIn }) => !drained && down !== true && outIn === 0);
  };
  return urls.map((url) => ({ labels: [upstream.name, url], values: [Number(up(url))] }));
}
