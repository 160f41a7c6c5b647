import { parseConfig } from "../../src/model/index.js";
import { loopback, oneServer } from "../../testkit/oneServer.js";

/** Codes and paths of the problems of a route with these fields. */
function problemsOf(route: object): readonly string[] {
  const parsed = parseConfig(
    oneServer({
      listeners: [loopback("http", 80)],
      upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
      routes: [{ name: "a", path: "/", action: { type: "proxy", upstream: "web" }, ...route } as never],
    }),
  );
  return parsed.ok
    ? []
    : parsed.problems.map(({ code, path }) => `${code} ${path.split(".").slice(2).join(".")}`);
}

const UPLOADS = "config.limit-stops-uploads rateLimit";
const files = { action: { type: "staticFiles", directory: "/srv/files" } };
const gone = { action: { type: "respond", status: 410 } };
const moved = { action: { type: "redirect", status: 301, host: "www.example.org" } };
const slow = { requests: 1, perMs: 86_400_000 };

test.each<readonly [string, object, readonly string[]]>([
  ["a slow login", { requestBodyBytesMax: 1_048_576, rateLimit: slow, concurrencyMax: 1 }, []],
  ["a slow route that takes chunks", { requestBodyBytesMax: 1_048_577, rateLimit: slow }, [UPLOADS]],
  ["slow uploads of any length", { rateLimit: slow }, [UPLOADS]],
  ["a route that only reads", { writes: "never", rateLimit: slow, concurrencyMax: 1 }, []],
  ["slow files", { ...files, rateLimit: slow, concurrencyMax: 1 }, []],
  ["the pace of uploads", { rateLimit: { requests: 10, burst: 100 }, concurrencyMax: 32 }, []],
  ["the same in a minute", { rateLimit: { requests: 600, perMs: 60_000 } }, []],
  ["a little slower", { rateLimit: { requests: 599, perMs: 60_000 } }, [UPLOADS]],
  ["a small burst", { rateLimit: { requests: 1000, burst: 99 } }, [UPLOADS]],
  ["few uploads at once", { concurrencyMax: 31 }, ["config.limit-stops-uploads concurrencyMax"]],
  ["a fixed response", { ...gone, rateLimit: slow }, ["config.useless-limit rateLimit"]],
  ["a redirect", { ...moved, concurrencyMax: 50 }, ["config.useless-limit concurrencyMax"]],
  [
    "a burst of none",
    { ...files, rateLimit: { ...slow, burst: 0 } },
    ["config.out-of-range rateLimit.burst"],
  ],
  ["no requests", { ...files, rateLimit: { requests: 0 } }, ["config.out-of-range rateLimit.requests"]],
  [
    "half of the addresses as one client",
    { ...files, rateLimit: { ...slow, ipv6Prefix: 31 } },
    ["config.out-of-range rateLimit.ipv6Prefix"],
  ],
  ["no rate", { ...files, rateLimit: { burst: 5 } }, ["config.missing-field rateLimit.requests"]],
])("%s", (_, route, problems) => expect(problemsOf(route)).toEqual(problems));
