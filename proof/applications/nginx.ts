import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { findNginx } from "../nginx/nginxServer.js";
import { type RunningProcess, startProcess } from "../wire/processes.js";
import type { Place } from "./frontEnd.js";
import { FIELDS, type Location, type Sample } from "./samples.js";

/** A sample with the ports of its servers, and the port that it listens on. */
export interface Placed {
  readonly sample: Sample;
  readonly port: number;
  readonly servers: Readonly<Record<string, number>>;
}

/** One nginx for all samples, each on a port of its own. */
export function startNginx(place: Place, host: string, placed: readonly Placed[]): Promise<RunningProcess> {
  const binary = findNginx();
  if (binary === undefined) throw new Error("nginx is not installed");
  const prefix = join(place.folder, "nginx");
  mkdirSync(join(prefix, "html"), { recursive: true });
  const errorLog = join(prefix, "error.log");
  writeFileSync(join(prefix, "nginx.conf"), configOf(place, host, placed));
  return startProcess({
    command: [binary, "-p", prefix, "-e", errorLog, "-c", "nginx.conf"],
    ports: placed.map(({ port }) => port),
    explain: () => (existsSync(errorLog) ? readFileSync(errorLog, "utf8") : ""),
  });
}

const configOf = (place: Place, host: string, placed: readonly Placed[]): string => `daemon off;
worker_processes 1;
user root;
pid nginx.pid;
error_log error.log;
events { worker_connections 256; }
http {
  client_body_temp_path body;
  proxy_temp_path proxy;
  fastcgi_temp_path fastcgi;
  uwsgi_temp_path uwsgi;
  scgi_temp_path scgi;
  access_log off;
${placed.map((one) => serverOf(place, host, one)).join("\n")}
}
`;

function serverOf(
  { certificate, key, folder }: Place,
  host: string,
  { sample, port, servers }: Placed,
): string {
  const location = ({ at, pass, fields = "", lines = [] }: Location): string => {
    const set = [...fields].map((letter) => `proxy_set_header ${FIELDS[letter]};`);
    const passed =
      pass === undefined ? [] : [`proxy_pass http://127.0.0.1:${servers[pass[0]]}${pass[1] ?? ""};`];
    return `location ${at} { ${[...lines, ...set, ...passed].join(" ").replaceAll("{directory}", folder)} }`;
  };
  return `  server {
    listen 127.0.0.1:${port} ssl;
    server_name ${host};
    ssl_certificate ${certificate};
    ssl_certificate_key ${key};
    proxy_http_version 1.1;
    client_max_body_size 0;
    ${sample.locations.map(location).join("\n    ")}
  }`;
}
