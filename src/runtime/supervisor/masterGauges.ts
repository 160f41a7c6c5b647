import { hasSeveral, type ProxyConfig, urlsOf, type UpstreamConfig } from "../../model/serving.js";
import { VERSION } from "../../model/version.js";
import { type Counts, type Series, totalOf } from "../counting/counts.js";
import type { ListedCertificate } from "./certificateList.js";
import type { ListedUpstream } from "./listedUpstreams.js";

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
