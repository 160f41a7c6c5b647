import { alternate, type Rounds } from "../lib/bench.js";
import { curl } from "../lib/loads.js";
import { type Bar, quickBar, type Work } from "../lib/work.js";

/** 1 GiB through one connection, down through `/synchttp`, up through `/syncdav`; neither buffers requests. */

interface Variant {
  readonly suffix: "plain" | "tls" | "http2" | "tls-both" | "http2-both";
  readonly over: string;
  readonly rounds: Pick<Rounds, "mode" | "ability" | "setup">;
  readonly args: readonly string[];
}

const PLAIN: Variant = {
  suffix: "plain",
  over: "plain",
  rounds: { mode: "plain", ability: "http1" },
  args: [],
};
const TLS: Variant = {
  suffix: "tls",
  over: "TLS, HTTP/1.1",
  rounds: { mode: "tls", ability: "tls" },
  args: ["--http1.1"],
};
const HTTP2: Variant = {
  suffix: "http2",
  over: "TLS, HTTP/2",
  rounds: { mode: "tls", ability: "http2" },
  args: ["--http2"],
};

/** TLS to the upstream as well. */
const BOTH = { mode: "tls", ability: "upstreamTls", setup: { upstreamTls: true } } as const;
const TLS_BOTH: Variant = { ...TLS, suffix: "tls-both", over: "TLS on both sides, HTTP/1.1", rounds: BOTH };
const HTTP2_BOTH: Variant = {
  ...HTTP2,
  suffix: "http2-both",
  over: "TLS on both sides, HTTP/2",
  rounds: BOTH,
};

export const downloads: readonly Work[] = [
  download(PLAIN, [quickBar(0.5, 0.81)]),
  download(TLS, [quickBar(0.6, 0.87)]),
  download(HTTP2, []),
  download(TLS_BOTH, [quickBar(1, 2.3)]),
  download(HTTP2_BOTH, []),
];

export const uploads: readonly Work[] = [
  upload(PLAIN, [quickBar(0.7, 1.43)]),
  upload(TLS, [quickBar(0.8, 1.29)]),
  upload(HTTP2, []),
  upload(TLS_BOTH, [quickBar(1, 1.2)]),
  upload(HTTP2_BOTH, []),
];

function download({ suffix, over, rounds, args }: Variant, bars: readonly Bar[]): Work {
  return {
    name: `download-${suffix}`,
    what: `bulk download of 1 GiB, ${over}`,
    unit: "s/GiB",
    rate: "MB/s",
    by: "cpu",
    bars,
    quick: bars.length > 0,
    run: (bench) =>
      alternate(bench, rounds, (proxy) =>
        curl(bench, proxy, `/synchttp/${bench.bulk.name}`, { args, bytes: bench.bulk.bytes }),
      ),
  };
}

function upload({ suffix, over, rounds, args }: Variant, bars: readonly Bar[]): Work {
  return {
    name: `upload-${suffix}`,
    what: `bulk upload of 1 GiB, ${over}`,
    unit: "s/GiB",
    rate: "MB/s",
    by: "cpu",
    bars,
    quick: bars.length > 0,
    run: (bench) =>
      alternate(bench, rounds, (proxy) =>
        curl(bench, proxy, "/syncdav/file", { args, bytes: bench.bulk.bytes, upload: bench.bulk.upload }),
      ),
  };
}
