import { alternate, type Rounds } from "../lib/bench.js";
import { curl, wrk } from "../lib/loads.js";
import { type Bar, cpuBar, quickBar, type Work } from "../lib/work.js";

/** Files of the media folder, which lies in memory. */

export const staticFiles: readonly Work[] = [
  small("static-10k", "plain", { mode: "plain", ability: "static" }, [quickBar(1.0, 1.45)], true),
  small("static-10k-tls", "TLS", { mode: "tls", ability: "static" }, [], false),
  // nginx's sendfile(2) copies nothing, so how fast memory is that day moves the ratio from 0.74 to 2.1 for the same code:
  // no verdict for CI. The same code reads files for TLS.
  large("static-1g", "plain", { mode: "plain", ability: "static" }, [cpuBar(1.0)], false),
  large("static-1g-tls", "TLS, HTTP/1.1", { mode: "tls", ability: "static" }, [quickBar(0.7, 0.97)], true),
];

function small(name: string, over: string, rounds: Rounds, bars: readonly Bar[], quick: boolean): Work {
  return {
    name,
    what: `static file of 10 KiB, ${over}, 32 connections`,
    unit: "µs/request",
    rate: "requests/s",
    by: "cpu",
    bars,
    quick,
    run: (bench) => alternate(bench, rounds, (proxy) => wrk(bench, proxy, "/syncmedia/10k.bin")),
  };
}

function large(name: string, over: string, rounds: Rounds, bars: readonly Bar[], quick: boolean): Work {
  return {
    name,
    what: `static file of 1 GiB, ${over}`,
    unit: "s/GiB",
    rate: "MB/s",
    by: "cpu",
    bars,
    quick,
    run: (bench) =>
      alternate(bench, rounds, (proxy) =>
        curl(bench, proxy, `/syncmedia/${bench.bulk.name}`, { args: ["--http1.1"], bytes: bench.bulk.bytes }),
      ),
  };
}
