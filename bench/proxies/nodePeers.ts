import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import type { ProxyKind } from "../lib/proxy.js";

const MODULES = path.resolve(__dirname, "../node_modules");

/** Libraries that people build proxies on Node with. None of them logs, which is to their advantage. */
export const nodePeers: readonly ProxyKind[] = [
  peer("node-http", undefined),
  { ...peer("node-http2", undefined), abilities: ["http2"] },
  peer("undici", "undici"),
  peer("fast-proxy", "fast-proxy"),
  peer("http-proxy", "http-proxy"),
  peer("httpxy", "httpxy"),
  peer("fastify-http-proxy", "@fastify/http-proxy"),
];

/**
 * @param dependency the package it needs; undefined for one of Node alone
 * @param node the binary that runs it
 */
export function peer(name: string, dependency: string | undefined, node = () => process.execPath): ProxyKind {
  return {
    name,
    family: "node",
    abilities: ["http1", "tls"],
    version: () => (dependency === undefined ? process.versions.node : installedVersion(dependency)),
    prepare: (setup) => {
      const { port, upstreams, mode, keepAliveSeconds } = setup;
      const settings = { port, upstreams, mode, keepAliveSeconds, tls: setup.site.tls };
      return {
        command: [node(), path.join(__dirname, "peers", `${name}.mjs`)],
        env: { BENCH_PEER: JSON.stringify(settings), NODE_ENV: "production" },
      };
    },
  };
}

function installedVersion(dependency: string): string | undefined {
  const manifest = path.join(MODULES, dependency, "package.json");
  return existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")).version : undefined;
}
