import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findProgram } from "../lib/children.js";
import { applicationServers, bulkUpstreams, type ProxyKind, type Setup } from "../lib/proxy.js";

const binary = findProgram("haproxy");

/** The same routes, headers, limits and logs, as far as it has them; it serves no files. */
export const haproxy: ProxyKind = {
  name: "haproxy",
  family: "native",
  abilities: ["http1", "tls", "http2", "upstreamTls"],
  version: () =>
    binary && /version (\d[\d.]*)/i.exec(spawnSync(binary, ["-v"], { encoding: "utf8" }).stdout)?.[1],
  prepare(setup) {
    // It wants key and certificate in one file.
    const { certificate, key } = setup.site.tls;
    writeFileSync(
      path.join(setup.folder, "both.pem"),
      readFileSync(certificate, "utf8") + readFileSync(key, "utf8"),
    );
    writeFileSync(path.join(setup.folder, "haproxy.cfg"), config(setup));
    return { command: [binary!, "-db", "-f", "haproxy.cfg"] };
  },
};

function config(setup: Setup): string {
  const { folder, site } = setup;
  const tls =
    ` ssl crt ${folder}/both.pem alpn h2,http/1.1 ssl-min-ver TLSv1.2 ssl-max-ver TLSv1.2 curves secp384r1` +
    ` ciphers EECDH+AESGCM:EDH+AESGCM`;
  const backend = (name: string, ...servers: readonly string[]): string =>
    `backend ${name}\n  http-reuse safe\n` +
    servers.map((at, i) => `  server ${name}${i} ${at} pool-max-conn 512\n`).join("");
  const secure = setup.upstreamTls === true ? " ssl verify none" : "";
  const ports = bulkUpstreams(setup);
  const [files, dav] = [ports.files, ports.dav].map((port) => `127.0.0.1:${port}${secure}`) as [
    string,
    string,
  ];
  return `global
  nbthread ${setup.workers}
  # Where files are limited to 20,000 it would not start with twice its connections.
  no strict-limits
  maxconn 16384
  log stdout format raw local0
  tune.ssl.default-dh-param 2048
  ssl-dh-param-file ${site.tls.dhparam}
defaults
  mode http
  log global
  option httplog
  timeout connect 36000s
  timeout client 36000s
  timeout server 36000s
  timeout http-request 60s
  timeout http-keep-alive ${setup.keepAliveSeconds}s
frontend front
  bind 127.0.0.1:${setup.port}${setup.mode === "tls" ? tls : ""}
  http-request set-header X-Real-IP %[src]
  option forwardfor
  http-request set-header X-Forwarded-Host 127.0.0.1
  ${setup.mode === "tls" ? "http-request set-header X-Forwarded-Proto https" : ""}
  use_backend files if { path_beg /synchttp }
  use_backend dav if { path_beg /syncdav }
  default_backend web
${backend("web", ...applicationServers(setup))}${backend("files", files)}${backend("dav", dav)}`;
}
