import { copyFileSync, existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import path from "node:path";
import { type RunningProcess, startProcess } from "../wire/processes.js";
import {
  HOST,
  MODIFIED,
  type Mode,
  type Ports,
  RESPONSE_HEADERS,
  type Site,
  WILDCARD,
} from "../wire/site.js";

/** Where nginx is installed; undefined if it is not. */
export function findNginx(): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(":"), "/usr/sbin", "/usr/local/sbin"];
  return folders.map((folder) => path.join(folder, "nginx")).find((file) => existsSync(file));
}

/** Starts a real nginx on the config of this service, in a folder of its own below the site's. */
export async function startNginx(
  binary: string,
  mode: Mode,
  site: Site,
  ports: Ports,
): Promise<RunningProcess> {
  const prefix = path.join(site.folder, `nginx-${mode}`);
  mkdirSync(path.join(prefix, "logs"), { recursive: true });
  // The package's own folder serves `/` where a server names no root; on a host it holds such a page, too.
  mkdirSync(path.join(prefix, "html"), { recursive: true });
  copyFileSync(path.join(site.defaultPage, "index.html"), path.join(prefix, "html/index.html"));
  utimesSync(path.join(prefix, "html/index.html"), MODIFIED, MODIFIED);
  writeFileSync(path.join(prefix, "nginx.conf"), nginxConfig(mode, site, ports));
  const errorLog = path.join(prefix, "logs/error.log");
  return startProcess({
    command: [binary, "-p", prefix, "-e", errorLog, "-c", "nginx.conf"],
    ports: mode === "tls" ? [ports.http, ports.https] : [ports.http],
    explain: () => (existsSync(errorLog) ? readFileSync(errorLog, "utf8") : ""),
  });
}

/**
 * The config of this service written out for nginx. Only what a test needs differs from a host: ports, paths, the user,
 * and one worker. The main part is that of the Debian package, with gzip off (service 3.4).
 */
export function nginxConfig(mode: Mode, site: Site, ports: Ports): string {
  return `daemon off;
worker_processes 1;
${site.user === undefined ? "" : `user ${site.user.names};`}
pid nginx.pid;
error_log logs/error.log;
events { worker_connections 768; }
http {
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  sendfile on;
  tcp_nopush on;
  types_hash_max_size 2048;
  include ${mimeTypes()};
  default_type application/octet-stream;
  access_log logs/access.log;
  gzip off;
${defaultServer(site, ports)}
${mode === "plain" ? plainServer(site, ports) : redirectServer(ports) + tlsServer(site, ports)}
}
`;
}

/**
 * The default virtual server with the catch-all name stays enabled (service 1.3); it shows its version (service 5.2).
 */
function defaultServer(site: Site, ports: Ports): string {
  return `
  server {
    listen 127.0.0.1:${ports.http} default_server;
    server_name _;
    root ${site.defaultPage};
    index index.html index.htm index.nginx-debian.html;
    location / { try_files $uri $uri/ =404; }
  }
  server {
    listen 127.0.0.1:${ports.http};
    server_name ${WILDCARD};
    server_tokens off;
    location / { return 204; }
  }`;
}

/** Plain mode (service 4.1). */
function plainServer(site: Site, ports: Ports): string {
  return `
  server {
    listen 127.0.0.1:${ports.http};
    server_name ${HOST};
    server_tokens off;
${locations(site, ports, "")}
  }`;
}

/** Port 80 in TLS mode (service 4.3). */
function redirectServer(ports: Ports): string {
  return `
  server {
    listen 127.0.0.1:${ports.http};
    server_name ${HOST};
    server_tokens off;
    location /sync { return 301 https://$host$request_uri; }
  }`;
}

/** Port 443 in TLS mode (service 4.3). */
function tlsServer(site: Site, ports: Ports): string {
  return `
  server {
    listen 127.0.0.1:${ports.https} ssl http2;
    server_name _;
    server_tokens off;
    ssl_protocols TLSv1.2;
    ssl_certificate ${site.tls.certificate};
    ssl_certificate_key ${site.tls.key};
    ssl_dhparam ${site.tls.dhparam};
    ssl_ecdh_curve secp384r1;
    ssl_ciphers EECDH+AESGCM:EDH+AESGCM:EECDH:EDH:!MD5:!RC4:!LOW:!MEDIUM:!CAMELLIA:!ECDSA:!DES:!DSS:!3DES:!NULL;
    ssl_prefer_server_ciphers on;
    ssl_session_timeout 10m;
${locations(site, ports, "proxy_set_header X-Forwarded-Proto https;")}
  }`;
}

/** Fields as nginx comes closest to what decisions 5.5 says. */
const RESPONSE_FIELDS = [
  ...Object.entries(RESPONSE_HEADERS.set).flatMap(([name, value]) => [
    `proxy_hide_header ${name};`,
    `add_header ${name} "${value}" always;`,
  ]),
  ...RESPONSE_HEADERS.remove.map((name) => `proxy_hide_header ${name};`),
].join("\n    ");

/** The four routes (service 4.1), with their limits (service 4.5). */
function locations(site: Site, ports: Ports, proto: string): string {
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
      ${proto}`;
  return `
    ${RESPONSE_FIELDS}
    location /sync {
      proxy_pass http://127.0.0.1:${ports.web};
      ${headers}
      ${limits}
      access_log logs/web.access.log;
      error_log logs/web.error.log;
    }
    location /synchttp {
      rewrite ^/synchttp(.*)$ $1 break;
      proxy_pass http://127.0.0.1:${ports.files};
      proxy_request_buffering off;
      ${limits}
    }
    location /syncmedia {
      rewrite ^/syncmedia(.*)$ /media$1 break;
      root ${site.install};
    }
    location /syncdav {
      proxy_pass http://127.0.0.1:${ports.dav};
      proxy_request_buffering off;
      ${headers}
      ${limits}
      access_log logs/dav.access.log;
      error_log logs/dav.error.log;
    }`;
}

/** The types that the package brings. */
function mimeTypes(): string {
  const known = [
    "/etc/nginx/mime.types",
    "/usr/local/etc/nginx/mime.types",
    "/opt/homebrew/etc/nginx/mime.types",
  ];
  const found = known.find((file) => existsSync(file));
  if (found === undefined) throw new Error(`nginx has no mime.types: tried ${known.join(", ")}`);
  return found;
}
