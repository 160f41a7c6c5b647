import { parseConfig, type ProxyConfigInput, type RouteInput } from "../../src/model/index.js";
import type { Random } from "../../testkit/random.js";

/** Configs and requests at random, in which much is alike, so that routes, rules and requests meet. */

export interface Asked {
  readonly number: number;
  readonly protocol: "http" | "https" | "h2";
  readonly method: string;
  readonly host: string;
  /** Ends with a query that has the number. */
  readonly target: string;
  readonly body: string;
}

/** What a config is made of: names of upstreams with their URLs, and directories. */
export interface Parts {
  readonly upstreams: readonly { readonly name: string; readonly url: string }[];
  readonly directories: readonly string[];
}

const COMMON = ["a", "b", "files", "x.txt"] as const;
const RARE = ["%61", "a%20b", "", ".", "..", "\xe4", "%2F", "%zz"] as const;
const ROUTE_PATHS = ["/", "/a", "/a/", "/a/b", "/files", "/files/a", "/b", "/x"] as const;
const METHODS = ["GET", "HEAD", "PUT", "POST", "DELETE", "PROPFIND"] as const;
const HOSTS = [
  "a.example",
  "A.Example.",
  "b.example",
  "b.example:8443",
  "c.b.example",
  "other.example",
] as const;

/** Fields of a config that the parser takes. */
export function configAt(random: Random, parts: Parts): Partial<ProxyConfigInput> {
  for (;;) {
    const servers = [["a.example"], ["b.example"], ["*.b.example", "_"]].map((serverNames, i) => ({
      name: `v${i}`,
      serverNames,
      default: i === 2,
      listeners: ["http", "https"],
      routes: routesAt(random, parts),
    }));
    const fields = { upstreams: parts.upstreams, virtualServers: servers };
    const files = { certificate: "/unused.pem", key: "/unused.pem" };
    const listeners = [
      { name: "http", address: "127.0.0.1", port: 80, protocol: "http" },
      { name: "https", address: "127.0.0.1", port: 443, protocol: "https", tls: files },
    ] as const;
    if (parseConfig({ version: 1, listeners, ...fields }).ok) return fields;
  }
}

function routesAt(random: Random, parts: Parts): readonly RouteInput[] {
  const paths = new Set(Array.from({ length: 1 + random.pick(7) }, () => random.of(...ROUTE_PATHS)));
  return [...paths].map((path, i) => ({
    name: `r${random.pick(3)}-${i}`,
    path,
    match: random.of("prefix", "segment", "exact"),
    requestBodyBytesMax: random.of(0, 0, 10),
    action: actionAt(random, parts),
  }));
}

function actionAt(random: Random, { upstreams, directories }: Parts): RouteInput["action"] {
  switch (random.pick(6)) {
    case 0:
      return { type: "respond", status: random.of(200, 410), body: `fixed ${random.pick(2)}` };
    case 1:
      return { type: "redirect", status: random.of(301, 308), host: "moved.example" };
    case 2:
      return { type: "redirect", host: "moved.example", path: random.of("/to/", "/to?x=1") };
    case 3:
      return { type: "staticFiles", directory: random.of(...directories) };
    default: {
      const upstream = random.of(...upstreams).name;
      if (random.is(0.3)) return { type: "proxy", upstream, rewrite: "/in/" };
      return { type: "proxy", upstream, strip: random.of("none", "raw", "nginx") };
    }
  }
}

export function requestAt(random: Random, number: number): Asked {
  const segments = Array.from({ length: 1 + random.pick(4) }, () =>
    random.is(0.8) ? random.of(...COMMON) : random.of(...RARE),
  );
  const method = random.is(0.5) ? "GET" : random.is(0.02) ? "TRACE" : random.of(...METHODS);
  const protocol = random.of("http", "https", "h2");
  const path = `/${segments.join("/")}?${random.of("", "q=/../&")}n=${number}`;
  const host = random.of(...HOSTS);
  const absolute = protocol !== "h2" && random.is(0.05);
  return {
    number,
    protocol,
    // Their heads are refused over HTTP/2 for other reasons.
    method: protocol === "h2" && method === "TRACE" ? "GET" : method,
    host,
    target: absolute ? `http://a.example${path}` : path,
    body: method === "PUT" || method === "POST" ? random.bytes(random.pick(10)).toString("hex") : "",
  };
}
