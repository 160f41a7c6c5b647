import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findProgram, start } from "./children.js";
import { startHelper } from "./helpers.js";
import { freePorts } from "../../testkit/ports.js";
import { accepting } from "./ports.js";
import type { Site } from "./site.js";

/** Ports of what the proxies forward to. */
export interface Upstreams {
  /** Responds to every request with {@link RESPONDED}. */
  readonly web: number;
  /** Serves the media folder; where it is asked for `/1g.bin` a gibibyte. */
  readonly files: number;
  /** Takes uploads. */
  readonly dav: number;
  /** The last two over TLS. */
  readonly filesOverTls: number;
  readonly davOverTls: number;
}

/** Addresses at which nginx responds as the application: as many servers as an item has at most. */
export const WEB_ADDRESSES = ["127.0.0.1", "127.0.0.2", "127.0.0.3"];

/** 90 bytes of text. */
const RESPONDED = "0123456789".repeat(9);

/**
 * One nginx for responses, as it costs least, and a sink for uploads, which nginx reads in pieces of 4 KiB. They live
 * on the load's core, and as long as the benchmark.
 */
export async function startUpstreams(site: Site, cores: string): Promise<Upstreams> {
  const nginx = findProgram("nginx");
  const origins =
    nginx === undefined ? await startOrigins(site, cores) : await startNginx(nginx, site, cores);
  const dav = await portOf("sink", [], cores);
  const davOverTls = await portOf("sink", [site.tls.certificate, site.tls.key], cores);
  return { ...origins, dav, davOverTls };
}

type Origins = Omit<Upstreams, "dav" | "davOverTls">;

async function startNginx(binary: string, site: Site, cores: string): Promise<Origins> {
  const [web, files, filesOverTls] = (await freePorts(3)) as [number, number, number];
  const prefix = path.join(site.folder, "upstream");
  mkdirSync(prefix, { recursive: true });
  writeFileSync(path.join(prefix, "nginx.conf"), config(site, { web, files, filesOverTls }));
  const child = start([binary, "-p", prefix, "-e", "error.log", "-c", "nginx.conf"], {
    cores,
    output: path.join(prefix, "output.log"),
  });
  if (!(await accepting(files, () => child.exitCode === null))) {
    throw new Error(
      `the upstream nginx does not start:\n${readFileSync(path.join(prefix, "error.log"), "utf8")}`,
    );
  }
  return { web, files, filesOverTls };
}

/** Without nginx there is nothing to be compared with, but there are figures. */
async function startOrigins(site: Site, cores: string): Promise<Origins> {
  return {
    web: await portOf("origin", ["web", RESPONDED], cores),
    files: await portOf("origin", ["files", site.media], cores),
    filesOverTls: await portOf("origin", ["files", site.media, site.tls.certificate, site.tls.key], cores),
  };
}

async function portOf(helper: string, args: readonly string[], cores: string): Promise<number> {
  return (await startHelper(helper, args, cores).next(15_000))["port"]!;
}

function config(site: Site, { web, files, filesOverTls }: Origins): string {
  return `daemon off;
worker_processes 1;
${process.getuid?.() === 0 ? "user root;" : ""}
pid nginx.pid;
worker_rlimit_nofile 20000;
events { worker_connections 16384; }
http {
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  access_log off;
  sendfile on;
  tcp_nopush on;
  keepalive_requests 1000000000;
  keepalive_timeout 1h;
  default_type text/plain;
  server {
    ${WEB_ADDRESSES.map((address) => `listen ${address}:${web} backlog=4096;`).join(" ")}
    location / { return 200 "${RESPONDED}"; }
  }
  server {
    listen 127.0.0.1:${files} backlog=4096;
    listen 127.0.0.1:${filesOverTls} ssl backlog=4096;
    ssl_certificate ${site.tls.certificate};
    ssl_certificate_key ${site.tls.key};
    ssl_protocols TLSv1.2 TLSv1.3;
    # Peers that do not strip the prefix ask for it whole.
    location ~ ^(?:/synchttp)?(/.*)$ { alias ${site.media}$1; }
  }
}
`;
}
