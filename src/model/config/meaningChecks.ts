import { type Problem, problem } from "../text/problem.js";
import type { ProxyConfig, RouteConfig, VirtualServerConfig } from "./config.js";
import { responseFieldRules } from "./responseFields.js";

/** Values that are well written, and that no client or no reader of a log could use. */
export function meaningProblems(config: ProxyConfig): Problem[] {
  return [
    ...cookiesOverHttp(config),
    ...logFormats(config),
    ...config.virtualServers.flatMap((server, s) => {
      const at = `virtualServers[${s}]`;
      return [
        ...driveProblems(server, at),
        ...cacheControls(server.responseHeaders.set, `${at}.responseHeaders.set`),
        ...sharedCredentials(server, undefined, at),
        ...server.routes.flatMap((route, r) => [
          ...cacheControls(route.responseHeaders.set, `${at}.routes[${r}].responseHeaders.set`),
          ...(route.action.type === "staticFiles" && route.action.cacheControl !== undefined
            ? cacheControl(route.action.cacheControl, `${at}.routes[${r}].action.cacheControl`)
            : []),
          ...sharedCredentials(server, route, `${at}.routes[${r}]`),
        ]),
      ];
    }),
  ];
}

/** Clients take cookies with these prefixes over https only (RFC 6265bis, 4.1.3). */
function cookiesOverHttp({ upstreams, virtualServers, listeners, trustedProxies }: ProxyConfig): Problem[] {
  // A trusted proxy may speak TLS with clients.
  if (trustedProxies.length > 0) return [];
  const plain = listeners.filter(({ protocol }) => protocol === "http").map(({ name }) => name);
  return upstreams.flatMap(({ name, sticky }, i) => {
    const received = sticky?.cookie;
    const [prefix] = /^__(?:host|secure)-/i.exec(received ?? "") ?? [];
    const server = virtualServers.find(
      (one) =>
        one.listeners.some((listener) => plain.includes(listener)) &&
        one.routes.some(({ action }) => action.type === "proxy" && action.upstream === name),
    );
    if (prefix === undefined || server === undefined) return [];
    const message = `begins with ${prefix}, and clients refuse such a cookie over http, by which ${server.name} serves`;
    const fix = "Leave out the prefix, or serve these routes over https only.";
    const more = { received, allowed: "a name without __Host- and __Secure-", fix };
    return [problem("config.bad-cookie", `upstreams[${i}].sticky.cookie`, message, more)];
  });
}

/** Each file is opened once, and a reader expects one format. */
function logFormats({ logs, virtualServers }: ProxyConfig): Problem[] {
  const written = [
    { at: "logs.access", log: logs.access },
    { at: "logs.error", log: logs.error },
    ...virtualServers.flatMap(({ routes }, s) =>
      routes.flatMap(({ accessLog, errorLog }, r) => [
        { at: `virtualServers[${s}].routes[${r}].accessLog`, log: accessLog },
        { at: `virtualServers[${s}].routes[${r}].errorLog`, log: errorLog },
      ]),
    ),
  ].flatMap(({ at, log }) =>
    typeof log === "object" && "path" in log
      ? [{ at, path: log.path, format: "format" in log ? log.format : "error log" }]
      : [],
  );
  return written.flatMap(({ at, path, format }, i) => {
    const first = written.slice(0, i).find((one) => one.path === path);
    if (first === undefined || first.format === format) return [];
    const message = `is also the file of ${first.at}, with the format ${first.format}`;
    return [
      problem("config.two-log-formats", `${at}.path`, message, {
        received: `${path}, ${format}`,
        allowed: `${path}, ${first.format}`,
      }),
    ];
  });
}

/** The virtual server would speak for a WebDAV server that it cannot have. Behind a route, one may be at any path. */
function driveProblems({ windowsDrives, routes }: VirtualServerConfig, at: string): Problem[] {
  const leads = routes.some(({ action }) => action.type === "proxy");
  if (!windowsDrives || leads || routes.length === 0) return [];
  const message = "has no effect: no route leads to an upstream, such as a WebDAV server";
  const more = { received: true, allowed: "a virtual server with a route to a WebDAV server" };
  return [problem("config.no-webdav-route", `${at}.windowsDrives`, message, more)];
}

/** Browsers refuse such a response to a script (Fetch, 3.3.5), wherever each of the fields comes from. */
function sharedCredentials(
  server: VirtualServerConfig,
  route: RouteConfig | undefined,
  at: string,
): Problem[] {
  const rules = responseFieldRules(server, route, "https");
  const valueOf = (name: string): string | undefined => rules.get(name)?.value.trim().toLowerCase();
  if (valueOf(ORIGIN) !== "*" || valueOf(CREDENTIALS) !== "true") return [];
  const own = Object.keys((route ?? server).responseHeaders.set);
  const named = own.find((name) => [ORIGIN, CREDENTIALS].includes(name.toLowerCase()));
  // What comes from the virtual server alone is reported there.
  if (named === undefined) return [];
  const message = "allows credentials from every origin (`*`), which browsers refuse";
  const fix =
    "Name the origin in Access-Control-Allow-Origin, or remove Access-Control-Allow-Credentials; an application that knows its origins sets both itself.";
  const more = {
    received: rules.get(named.toLowerCase())!.value,
    allowed: "`*` without credentials, or one origin",
    fix,
  };
  return [problem("config.bad-header", `${at}.responseHeaders.set.${named}`, message, more)];
}

const ORIGIN = "access-control-allow-origin";
const CREDENTIALS = "access-control-allow-credentials";

function cacheControls(set: Readonly<Record<string, string>>, at: string): Problem[] {
  const name = Object.keys(set).find((one) => one.toLowerCase() === "cache-control");
  return name === undefined ? [] : cacheControl(set[name]!, `${at}.${name}`);
}

/** Caches ignore directives that they do not know, without a word. Others than these are extensions (RFC 9111, 5.2.3). */
function cacheControl(received: string, at: string): Problem[] {
  const wrong = directivesIn(received).flatMap((one) => faultOf(one) ?? []);
  const [first] = wrong;
  if (first === undefined) return [];
  const allowed = "directives of RFC 9111, such as `no-store` or `public, max-age=3600`";
  return [
    problem("config.bad-header", at, first, {
      received,
      allowed,
      fix: "Correct the directive: caches ignore it.",
    }),
  ];
}

/** The members of the list; a comma between quotes is part of a value (`private="a, b"`). */
function directivesIn(text: string): string[] {
  const found = [""];
  let quoted = false;
  for (const char of text) {
    if (char === '"') quoted = !quoted;
    if (char === "," && !quoted) found.push("");
    else found[found.length - 1] += char;
  }
  return found.map((one) => one.trim()).filter((one) => one !== "");
}

function faultOf(directive: string): string | undefined {
  const [name = "", ...values] = directive.split("=");
  const value = values.join("=");
  const shown = JSON.stringify(directive);
  if (!/^[!#$%&'*+.^_`|~\w-]+$/.test(name)) return `has ${shown}, which is no directive of \`Cache-Control\``;
  const lower = name.toLowerCase();
  if (SECONDS.includes(lower) && !/^\d+$/.test(unquoted(value)))
    return `has ${shown}: ${lower} needs a number of seconds`;
  if (SECONDS.includes(lower) || PLAIN.includes(lower)) return undefined;
  const bare = lower.replaceAll(/[-_]/g, "");
  const meant = [...SECONDS, ...PLAIN].find((one) => one.replaceAll("-", "") === bare);
  if (meant !== undefined) return `has ${shown}, which is no directive: \`${meant}\` is`;
  return /^\d/.test(lower) || WORDS.includes(lower)
    ? `has ${shown}, which is no directive of \`Cache-Control\``
    : undefined;
}

const unquoted = (value: string): string =>
  value.length > 1 && value.startsWith('"') && value.endsWith('"') ? value.slice(1, -1) : value;

const SECONDS = ["max-age", "s-maxage", "stale-while-revalidate", "stale-if-error"];
const PLAIN = [
  ...["no-cache", "no-store", "no-transform", "must-revalidate", "proxy-revalidate", "must-understand"],
  ...["private", "public", "immutable"],
];
/** Values of other settings that are written there. */
const WORDS = [
  "true",
  "false",
  "on",
  "off",
  "yes",
  "no",
  "cache",
  "always",
  "never",
  "none",
  "expires",
  "undefined",
  "null",
];
