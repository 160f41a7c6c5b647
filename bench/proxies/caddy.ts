import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import { findProgram } from "../lib/children.js";
import { HOST } from "../lib/site.js";
import type { ProxyKind, Setup } from "../lib/proxy.js";

const binary = findProgram("caddy");

export const caddy: ProxyKind = {
  name: "caddy",
  family: "native",
  abilities: ["http1", "tls", "http2", "static"],
  version: () => binary && spawnSync(binary, ["version"], { encoding: "utf8" }).stdout.trim().split(" ")[0],
  prepare(setup) {
    writeFileSync(path.join(setup.folder, "Caddyfile"), config(setup));
    return {
      command: [binary!, "run", "--config", "Caddyfile", "--adapter", "caddyfile"],
      env: { GOMAXPROCS: String(setup.workers), XDG_DATA_HOME: setup.folder, XDG_CONFIG_HOME: setup.folder },
    };
  },
};

function config(setup: Setup): string {
  const { upstreams, site, folder } = setup;
  const scheme = setup.mode === "tls" ? "https" : "http";
  const tls = `tls ${site.tls.certificate} ${site.tls.key} {
    protocols tls1.2 tls1.2
    ciphers TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    curves secp384r1
  }`;
  const proxy = (port: number): string =>
    `reverse_proxy 127.0.0.1:${port} {
      header_up X-Real-IP {remote_host}
      transport http {
        keepalive_idle_conns_per_host 512
      }
    }`;
  return `{
  admin off
  auto_https off
  servers {
    timeouts {
      idle ${setup.keepAliveSeconds}s
    }
  }
}
${[HOST, ...(setup.furtherSites ?? [])].map((name) => `${scheme}://${name}:${setup.port}`).join(", ")} {
  bind 127.0.0.1
  ${setup.mode === "tls" ? tls : ""}
  log {
    output file ${folder}/logs/access.log {
      roll_disabled
    }
  }
  handle_path /synchttp/* {
    ${proxy(upstreams.files)}
  }
  handle /syncdav* {
    ${proxy(upstreams.dav)}
  }
  handle_path /syncmedia/* {
    root * ${site.media}
    file_server
  }
  handle {
    ${proxy(upstreams.web)}
  }
}
`;
}
