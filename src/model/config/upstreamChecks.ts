import { isWildcard } from "../net/address.js";
import { upstreamAddress, upstreamScheme } from "../net/authority.js";
import { type Problem, problem } from "../text/problem.js";
import { KEPT, SHARED } from "./upstream.js";
import { hasName, hasSeveral, serversOf, urlsOf } from "./upstreamServers.js";
import type { ProxyConfig, UpstreamConfig } from "./config.js";

/** Rules of upstreams: their servers, and TLS to them. */
export function upstreamProblems({ upstreams }: ProxyConfig): Problem[] {
  return upstreams.flatMap((upstream, i) => {
    const at = `upstreams[${i}]`;
    return [
      ...urlProblems(upstream, at),
      ...addressProblems(upstream, at),
      ...serverProblems(upstream, at),
      ...spreadProblems(upstream, at),
      ...sharingProblems(upstream, at),
      ...stickyProblems(upstream, at),
      ...healthProblems(upstream, at),
      ...reuseProblems(upstream, at),
      ...tlsProblems(upstream, at),
    ];
  });
}

function urlProblems({ url, servers }: UpstreamConfig, at: string): Problem[] {
  const allowed = "`url` for one server, or `servers` for several";
  if (url === undefined && servers === undefined)
    return [problem("config.missing-field", `${at}.url`, "is missing", { allowed })];
  if (url === undefined || servers === undefined) return [];
  const fix = "Remove `url`, and list its server in `servers`.";
  return [
    problem("config.bad-servers", `${at}.url`, "is set together with `servers`", {
      received: url,
      allowed,
      fix,
    }),
  ];
}

/** Linux takes such an address for loopback, so rules about loopback would not see it. */
function addressProblems(upstream: UpstreamConfig, at: string): Problem[] {
  return urlsOf(upstream).flatMap(({ url, at: field }) => {
    const leads = upstreamAddress(url);
    if (!("host" in leads) || !isWildcard(leads.host)) return [];
    const message = "is an address to listen on, to which nothing can connect";
    const allowed = "an address or a name of the server";
    const fix =
      "Use `127.0.0.1` if the application runs on this host, and otherwise the address of its host.";
    return [problem("config.bad-url", `${at}.${field}`, message, { received: url, allowed, fix })];
  });
}

function serverProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { servers = [] } = upstream;
  const bad = (path: string, message: string, received: unknown, allowed: string): Problem =>
    problem("config.bad-servers", `${at}.${path}`, message, { received, allowed });
  const repeated = servers.flatMap(({ url }, i) => {
    const first = servers.findIndex((other) => other.url === url);
    const message = `is already the URL of servers[${first}]`;
    return first === i ? [] : [bad(`servers[${i}].url`, message, url, "each server once")];
  });
  const only = servers.length > 0 && servers.every(({ backup }) => backup);
  return only
    ? [
        ...repeated,
        bad(
          "servers",
          "are all backups",
          servers.map(({ url }) => url),
          "at least one server without `backup`",
        ),
      ]
    : repeated;
}

function spreadProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const urls = urlsOf(upstream).map(({ url }) => url);
  if (!upstream.spread || urls.length === 0 || urls.some(hasName)) return [];
  const fix = "Remove `spread`, or use a URL with the host name whose addresses are those of the servers.";
  return [
    problem("config.bad-servers", `${at}.spread`, "has no effect: no server has a host name", {
      received: urls[0],
      allowed: "http://NAME:PORT",
      fix,
    }),
  ];
}

/** How requests are shared out, where there is nothing to share; what holds for one server only, where there are several. */
function sharingProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { balance, slowStartMs, holdMs, servers = [] } = upstream;
  if (!hasSeveral(upstream))
    return [
      ...(balance === SHARED.balance ? [] : onlyForSeveral(upstream, `${at}.balance`, balance)),
      ...([SHARED.slowStartMs, 0].includes(slowStartMs)
        ? []
        : onlyForSeveral(upstream, `${at}.slowStartMs`, slowStartMs)),
      ...servers.flatMap(({ weight }) =>
        weight === 1 ? [] : onlyForSeveral(upstream, `${at}.servers[0].weight`, weight),
      ),
    ];
  if ([SHARED.holdMs, 0].includes(holdMs)) return [];
  return [
    problem("config.bad-servers", `${at}.holdMs`, "has no effect: the upstream has several servers", {
      received: holdMs,
      allowed: "an upstream with one server",
      fix: "Remove the field: with several servers, a request goes to the next one.",
    }),
  ];
}

function stickyProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { sticky } = upstream;
  if (sticky === undefined) return [];
  const given = Object.values(sticky).filter((cookie) => cookie !== undefined).length;
  const allowed = "either `applicationCookie` or `cookie`";
  const fix = `Set ${allowed}.`;
  return [
    ...(given === 1
      ? []
      : [
          problem(
            "config.bad-servers",
            `${at}.sticky`,
            `names ${given === 0 ? "no cookie" : "two cookies"}`,
            { allowed, fix },
          ),
        ]),
    ...onlyForSeveral(upstream, `${at}.sticky`),
  ];
}

function healthProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { health } = upstream;
  if (health === undefined) return [];
  const asked = health.tcp && (health.path !== "/" || health.expect.join() !== "200");
  return [
    ...(asked
      ? [
          problem(
            "config.bad-servers",
            `${at}.health.tcp`,
            "sends no request, but `path` or `expect` is set",
            {
              received: true,
              fix: "Remove `tcp`, or remove `path` and `expect`.",
            },
          ),
        ]
      : []),
    ...serversOf(upstream).flatMap(({ url }, i) =>
      health.port !== undefined && url.startsWith("unix:")
        ? [
            problem(
              "config.bad-servers",
              `${at}.health.port`,
              `is set, but servers[${i}] is a Unix socket, which has no port`,
              {
                received: health.port,
                fix: "Remove `port`: the check then connects to the socket.",
              },
            ),
          ]
        : [],
    ),
  ];
}

/** Other values than the defaults are meant to have an effect. */
function reuseProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { proxyProtocol, idleConnectionsMax, idleTimeoutMs } = upstream;
  if (proxyProtocol === undefined) return [];
  const given = Object.entries({
    ...([KEPT.idleConnectionsMax, 0].includes(idleConnectionsMax) ? {} : { idleConnectionsMax }),
    ...(idleTimeoutMs === KEPT.idleTimeoutMs ? {} : { idleTimeoutMs }),
  });
  return given.map(([field, received]) =>
    problem(
      "config.used-once",
      `${at}.${field}`,
      "has no effect: connections with `proxyProtocol` are not kept",
      { received, allowed: `no \`${field}\` together with \`proxyProtocol\`` },
    ),
  );
}

/** A single server is never left out: its 502 is the truth. */
function onlyForSeveral(upstream: UpstreamConfig, path: string, received?: unknown): Problem[] {
  if (hasSeveral(upstream)) return [];
  const fix =
    "Remove the field, or list two or more servers in `servers`: a single server gets every request.";
  const allowed = "an upstream with several `servers`";
  return [
    problem("config.bad-servers", path, "has no effect: the upstream has only one server", {
      received,
      allowed,
      fix,
    }),
  ];
}

function tlsProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { tls } = upstream;
  const urls = urlsOf(upstream);
  if (tls === undefined || urls.length === 0) return [];
  const plain = urls.map((one) => one.url);
  if (!plain.some((url) => upstreamScheme(url) === "https")) {
    const [{ at: where }] = urls as [(typeof urls)[number]];
    return [
      problem("config.tls-unexpected", `${at}.${where}`, "is not an https URL, but `tls` is set", {
        received: plain[0],
        allowed: "https://HOST:PORT",
        fix: "Use an `https` URL, or remove `tls`.",
      }),
    ];
  }
  const { caFile, certificateFile, privateKeyFile, verify } = tls;
  const pair = { certificateFile, privateKeyFile };
  const lacking = Object.entries(pair).filter(([, file]) => file === undefined);
  return [
    ...(lacking.length !== 1
      ? []
      : [
          problem("config.missing-field", `${at}.tls.${lacking[0]![0]}`, "is missing", {
            allowed: "the path of a file: a client certificate needs `certificateFile` and `privateKeyFile`",
          }),
        ]),
    ...(verify || caFile === undefined
      ? []
      : [
          problem("config.tls-unexpected", `${at}.tls.caFile`, "has no effect with `verify: false`", {
            received: caFile,
            fix: "Remove `verify: false`: the proxy then verifies the upstream by `caFile`.",
          }),
        ]),
  ];
}
