import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import path from "node:path";
import { findProgram } from "../lib/children.js";
import { HOST } from "../lib/site.js";
import { applicationServers, bulkUpstreams, type ProxyKind, type Setup } from "../lib/proxy.js";

const binary = findProgram("nginx");

/** What everything is compared with. */
export const nginx: ProxyKind = {
  name: "nginx",
  family: "nginx",
  abilities: ["http1", "tls", "http2", "static", "upstreamTls"],
  version: () => binary && /nginx\/(\S+)/.exec(spawnSync(binary, ["-v"], { encoding: "utf8" }).stderr)?.[1],
  prepare(setup) {
    writeFileSync(path.join(setup.folder, "nginx.conf"), config(setup));
    return { command: [binary!, "-p", setup.folder, "-e", "logs/error.log", "-c", "nginx.conf"] };
  },
};

/**
 * The config of this service written out for nginx, as the tests have it, with upstream connections kept alive, as many
 * as Portico keeps: nginx without it is a third slower. `worker_connections` is raised for the items with
 * 10,000 connections.
 */
function config(setup: Setup): string {
  const { files, dav } = bulkUpstreams(setup);
  const upstream = (name: string, ...servers: readonly string[]): string =>
    `upstream ${name} { ${servers.map((at) => `server ${at};`).join(" ")} keepalive 512; }`;
  return `daemon off;
worker_processes ${setup.workers};
${process.getuid?.() === 0 ? "user root;" : ""}
pid nginx.pid;
error_log logs/error.log;
worker_rlimit_nofile 20000;
events { worker_connections 32768; }
http {
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  sendfile on;
  tcp_nopush on;
  types_hash_max_size 2048;
  server_names_hash_max_size 8192;
  server_names_hash_bucket_size 128;
  ${existsSync(MIME_TYPES) ? `include ${MIME_TYPES};` : ""}
  default_type application/octet-stream;
  access_log logs/access.log;
  gzip off;
  proxy_ssl_protocols TLSv1.2 TLSv1.3;
  keepalive_timeout ${setup.keepAliveSeconds}s;
  keepalive_requests ${setup.requestsPerConnection};
  ${upstream("web", ...applicationServers(setup))}
  ${upstream("files", `127.0.0.1:${files}`)}
  ${upstream("dav", `127.0.0.1:${dav}`)}
${setup.mode === "plain" ? plainServers(setup) : tlsServers(setup)}
${extraServers(setup)}
}
`;
}

/** Service 1.3 and 4.1. */
function plainServers(setup: Setup): string {
  return `${defaultServer(setup, setup.port)}
  server {
    listen 127.0.0.1:${setup.port};
    server_name ${HOST};
    server_tokens off;
${locations(setup, "")}
  }`;
}

/** Service 4.3. */
function tlsServers(setup: Setup): string {
  return `${defaultServer(setup, setup.redirectPort)}
  server {
    listen 127.0.0.1:${setup.redirectPort};
    server_name ${HOST};
    server_tokens off;
    location /sync { return 301 https://$host$request_uri; }
  }
${["_", ...(setup.furtherSites ?? [])].map((name) => tlsServer(setup, name)).join("\n")}`;
}

function tlsServer(setup: Setup, name: string): string {
  const { tls } = setup.site;
  return `  server {
    listen 127.0.0.1:${setup.port} ssl http2${name === "_" ? " backlog=4096" : ""};
    server_name ${name};
    server_tokens off;
    ssl_protocols TLSv1.2;
    ssl_certificate ${tls.certificate};
    ssl_certificate_key ${tls.key};
    ssl_dhparam ${tls.dhparam};
    ssl_ecdh_curve secp384r1;
    ssl_ciphers EECDH+AESGCM:EDH+AESGCM:EECDH:EDH:!MD5:!RC4:!LOW:!MEDIUM:!CAMELLIA:!ECDSA:!DES:!DSS:!3DES:!NULL;
    ssl_prefer_server_ciphers on;
    ssl_session_timeout 10m;
${locations(setup, "proxy_set_header X-Forwarded-Proto https;")}
  }`;
}

function defaultServer(setup: Setup, port: number): string {
  return `  server {
    listen 127.0.0.1:${port} default_server backlog=4096;
    server_name _;
    root ${setup.site.defaultPage};
    index index.html index.htm index.nginx-debian.html;
    location / { try_files $uri $uri/ =404; }
  }`;
}

/** The four routes (service 4.1), with their limits (service 4.5). */
function locations(setup: Setup, proto: string): string {
  const limits = `client_max_body_size 0;
      proxy_http_version 1.1;
      proxy_connect_timeout 36000s;
      proxy_read_timeout 36000s;
      proxy_send_timeout 36000s;
      send_timeout 36000s;`;
  const headers = `proxy_set_header Host $host;
      proxy_set_header X-Real-IP $remote_addr;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Host $server_name;
      proxy_set_header Connection "";
      ${proto}`;
  const bulk = setup.upstreamTls === true ? "https" : "http";
  return `${extraRoutes(setup)}
    location /sync {
      proxy_pass http://web;
      ${headers}
      ${limits}
      access_log logs/web.access.log;
      error_log logs/web.error.log;
    }
    location /synchttp {
      rewrite ^/synchttp(.*)$ $1 break;
      proxy_pass ${bulk}://files;
      proxy_set_header Connection "";
      proxy_request_buffering off;
      ${limits}
    }
    location /syncmedia {
      rewrite ^/syncmedia(.*)$ /media$1 break;
      root ${setup.site.install};
    }
    location /syncdav {
      proxy_pass ${bulk}://dav;
      proxy_request_buffering off;
      ${headers}
      ${limits}
      access_log logs/dav.access.log;
      error_log logs/dav.error.log;
    }`;
}

function extraRoutes({ extraRoutes: count = 0 }: Setup): string {
  return Array.from({ length: count }, (_, i) => `    location /extra-${i} { proxy_pass http://web; }`).join(
    "\n",
  );
}

function extraServers({ extraServers: count = 0, port }: Setup): string {
  const server = (i: number): string =>
    `  server { listen 127.0.0.1:${port}; server_name extra-${i}.example; location / { proxy_pass http://web; } }`;
  return Array.from({ length: count }, (_, i) => server(i)).join("\n");
}

const MIME_TYPES = "/etc/nginx/mime.types";
