import { ALL_CORES, alternate, type Rounds } from "../lib/bench.js";
import { wrk } from "../lib/loads.js";
import { cpuBar, type Work } from "../lib/work.js";

/** What should not make a request dearer: more routes, more virtual servers, more workers. */

const SMALL: Rounds = { mode: "plain", ability: "http1", families: ["portico", "nginx"] };

export const routeScaling: Work = {
  name: "scale-routes",
  what: "small request, HTTP/1.1, with 1,000 more routes",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [{ ...cpuBar(1.1, "portico, few routes"), row: "portico, 1,000 more" }],
  run: (bench) =>
    alternate(
      bench,
      { ...SMALL, variants: { "few routes": {}, "1,000 more": { extraRoutes: 1_000 } } },
      (proxy) => wrk(bench, proxy, "/sync/small"),
    ),
};

export const serverScaling: Work = {
  name: "scale-servers",
  what: "small request, HTTP/1.1, with 1,000 more virtual servers",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [{ ...cpuBar(1.1, "portico, few servers"), row: "portico, 1,000 more" }],
  run: (bench) =>
    alternate(
      bench,
      { ...SMALL, variants: { "few servers": {}, "1,000 more": { extraServers: 1_000 } } },
      (proxy) => wrk(bench, proxy, "/sync/small"),
    ),
};

/** A proxy that cannot share requests out among servers would be measured with one. */
const BALANCERS = ["portico", "nginx", "haproxy"];

export const upstreamScaling: Work = {
  name: "several-servers",
  what: "small request, HTTP/1.1, to an application with one server and with three",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [{ ...cpuBar(1.1, "portico, one server"), row: "portico, three servers" }],
  run: (bench) => {
    const kinds = bench.kinds.filter(({ name }) => BALANCERS.includes(name));
    const variants = { "one server": {}, "three servers": { applicationServers: 3 } };
    return alternate({ ...bench, kinds }, { mode: "plain", ability: "http1", variants }, (proxy) =>
      wrk(bench, proxy, "/sync/small"),
    );
  },
};

/** With two cores there is none left for the load: both share both, and CPU a request is what can be compared. */
export const workerScaling: Work = {
  name: "two-workers",
  what: "small request, HTTP/1.1, one worker and two, proxy and load on all cores",
  unit: "µs/request",
  rate: "requests/s",
  by: "cpu",
  bars: [{ ...cpuBar(1.05, "nginx, 2 workers"), row: "portico, 2 workers" }],
  run: (bench) => {
    const shared = { ...bench, loadCores: ALL_CORES };
    const variants = {
      "1 worker": { workers: 1, cores: ALL_CORES },
      "2 workers": { workers: 2, cores: ALL_CORES },
    };
    return alternate(shared, { ...SMALL, variants }, (proxy) => wrk(shared, proxy, "/sync/small"));
  },
};
