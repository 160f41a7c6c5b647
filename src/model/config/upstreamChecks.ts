import { upstreamScheme } from "../authority.js";
import { type Problem, problem } from "../problem.js";
import { KEPT } from "./upstream.js";
import { hasName, hasSeveral, serversOf, urlsOf } from "./upstreamServers.js";
import type { ProxyConfig, UpstreamConfig } from "./config.js";

/** Rules of upstreams: their servers, and TLS to them. */
export function upstreamProblems({ upstreams }: ProxyConfig): Problem[] {
  return upstreams.flatMap((upstream, i) => {
    const at = `upstreams[${i}]`;
    return [
      ...urlProblems(upstream, at),
      ...serverProblems(upstream, at),
      ...spreadProblems(upstream, at),
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
  const fix = "Remove `url`, and name its server in `servers`.";
  return [
    problem("config.bad-servers", `${at}.url`, "is given, and so is `servers`", {
      received: url,
      allowed,
      fix,
    }),
  ];
}

function serverProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { servers = [] } = upstream;
  const bad = (path: string, message: string, received: unknown, allowed: string): Problem =>
    problem("config.bad-servers", `${at}.${path}`, message, { received, allowed });
  const repeated = servers.flatMap(({ url }, i) => {
    const first = servers.findIndex((other) => other.url === url);
    const message = `is already that of servers[${first}]`;
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
          "one server that is no backup",
        ),
      ]
    : repeated;
}

function spreadProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const urls = urlsOf(upstream).map(({ url }) => url);
  if (!upstream.spread || urls.length === 0 || urls.some(hasName)) return [];
  const fix = "Remove `spread`, or give the host name whose addresses are the servers.";
  return [
    problem("config.bad-servers", `${at}.spread`, "is given, and no server has a host name", {
      received: urls[0],
      allowed: "http://NAME:PORT",
      fix,
    }),
  ];
}

function stickyProblems(upstream: UpstreamConfig, at: string): Problem[] {
  const { sticky } = upstream;
  if (sticky === undefined) return [];
  const given = Object.values(sticky).filter((cookie) => cookie !== undefined).length;
  const allowed = "`applicationCookie` or `cookie`";
  const fix = `Give ${allowed}, and not both.`;
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
    ...onlyForSeveral(upstream, `${at}.health`),
    ...(asked
      ? [
          problem(
            "config.bad-servers",
            `${at}.health.tcp`,
            "asks for nothing, and a path or a status is given",
            {
              received: true,
              fix: "Remove `tcp`, or `path` and `expect`.",
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
              `is given, and servers[${i}] is a socket without one`,
              {
                received: health.port,
                fix: "Remove `port`: the socket itself is asked then.",
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
      "is given, and connections with `proxyProtocol` are not kept",
      { received, allowed: "nothing" },
    ),
  );
}

/** A single server is never left out: its 502 is the truth. */
function onlyForSeveral(upstream: UpstreamConfig, path: string): Problem[] {
  if (hasSeveral(upstream)) return [];
  const fix =
    "Remove it, or give `servers` with two servers or more: a single one gets every request, whatever it answers.";
  return [
    problem("config.bad-servers", path, "is given, and there is one server", { allowed: "nothing", fix }),
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
      problem("config.tls-unexpected", `${at}.${where}`, "is without TLS, and there is `tls`", {
        received: plain[0],
        allowed: "https://HOST:PORT",
        fix: "Give an `https` URL, or remove `tls`.",
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
            allowed: "the path of a file: a client certificate is `certificateFile` and `privateKeyFile`",
          }),
        ]),
    ...(verify || caFile === undefined
      ? []
      : [
          problem("config.tls-unexpected", `${at}.tls.caFile`, "is not used with `verify: false`", {
            received: caFile,
            fix: "Remove `verify: false`: with `caFile` the upstream can prove who it is.",
          }),
        ]),
  ];
}
