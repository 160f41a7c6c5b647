import { type Problem, problem } from "../text/problem.js";
import { PRELOAD_MAX_AGE_MIN, reservedField, SET_BYTES_MAX } from "../schema/responseHeaders.js";
import { type ResponseField, responseFieldRules, setBytes } from "./responseFields.js";
import type { ProxyConfig, RouteConfig, VirtualServerConfig } from "./config.js";

/** Problems of the fields of responses, other than how they are written. */
export function responseFieldProblems(config: ProxyConfig): Problem[] {
  return config.virtualServers.flatMap((server, s) => {
    const at = `virtualServers[${s}]`;
    return [
      ...ownProblems(server.responseHeaders, `${at}.responseHeaders`),
      ...hstsProblems(config, server, at),
      ...setTooLong(server, undefined, `${at}.responseHeaders.set`),
      ...pauseProblems(server, `${at}.pauseResponse.headers`),
      ...server.routes.flatMap((route, r) => [
        ...ownProblems(route.responseHeaders, `${at}.routes[${r}].responseHeaders`),
        ...cacheControlTwice(route, `${at}.routes[${r}].responseHeaders.set`),
        ...setTooLong(server, route, `${at}.routes[${r}].responseHeaders.set`),
      ]),
    ];
  });
}

type ServerResponseHeaders = VirtualServerConfig["responseHeaders"];

/** A name, the place where it is written, and whether the field is set or removed. */
interface NamedField {
  readonly name: string;
  readonly path: string;
  readonly verb: "set" | "removed";
}

const namesSet = (set: ServerResponseHeaders["set"], at: string): NamedField[] =>
  Object.keys(set).map((name) => ({ name, path: `${at}.${name}`, verb: "set" }));

function ownProblems({ set, remove }: ServerResponseHeaders, at: string): Problem[] {
  return namedProblems([
    ...namesSet(set, `${at}.set`),
    ...remove.map((name, i) => ({ name, path: `${at}.remove[${i}]`, verb: "removed" as const })),
  ]);
}

/** Fields that a pause has in any case. */
const OF_PAUSES = ["retry-after", "cache-control"];

function pauseProblems(server: VirtualServerConfig, at: string): Problem[] {
  const headers = server.pauseResponse?.headers ?? {};
  const names = namesSet(headers, at);
  const own = Object.entries(headers).map(([name, value]): [string, ResponseField] => [
    name,
    { name, value },
  ]);
  return [
    ...namedProblems(names),
    ...names
      .filter(({ name }) => OF_PAUSES.includes(name.toLowerCase()))
      .map(({ name, path }) => twice(path, "is also set by the proxy, for each pause", name)),
    ...(names.length === 0
      ? []
      : tooLong(setBytes(new Map(own)) + setBytes(responseFieldRules(server, undefined, "https")), at)),
  ];
}

function namedProblems(names: readonly NamedField[]): Problem[] {
  return names.flatMap((named, i) => [
    ...reservedProblems(named),
    ...names
      .slice(0, i)
      .filter(({ name }) => name.toLowerCase() === named.name.toLowerCase())
      .slice(0, 1)
      .map((first) => twice(named.path, `is also at ${first.path}`, named.name)),
  ]);
}

function reservedProblems({ name, path, verb }: NamedField): Problem[] {
  const reserved = reservedField(name);
  if (reserved === undefined || (verb === "removed" && reserved.mayRemove)) return [];
  const { why, fix, mayRemove } = reserved;
  const allowed = mayRemove
    ? "the field may be removed, but not set"
    : "the field may be neither set nor removed";
  return [
    problem("config.reserved-response-field", path, `cannot be ${verb}: ${name} ${why}`, {
      received: name,
      allowed,
      fix,
    }),
  ];
}

const twice = (path: string, message: string, received: string): Problem =>
  problem("config.duplicate-response-field", path, message, {
    received,
    allowed: "each field name once, whatever its case",
  });

function cacheControlTwice({ action, responseHeaders }: RouteConfig, at: string): Problem[] {
  if (action.type !== "staticFiles" || action.cacheControl === undefined) return [];
  const name = Object.keys(responseHeaders.set).find((one) => one.toLowerCase() === "cache-control");
  return name === undefined
    ? []
    : [twice(`${at}.${name}`, "is also set by `cacheControl` of the action", name)];
}

function setTooLong(server: VirtualServerConfig, route: RouteConfig | undefined, path: string): Problem[] {
  // A fault that comes only from the virtual server is reported there.
  if (route !== undefined && Object.keys(route.responseHeaders.set).length === 0) return [];
  return tooLong(setBytes(responseFieldRules(server, route, "https")), path);
}

function tooLong(bytes: number, path: string): Problem[] {
  if (bytes <= SET_BYTES_MAX) return [];
  return [
    problem("config.out-of-range", path, `makes the head of every response ${bytes} bytes longer`, {
      received: bytes,
      allowed: `at most ${SET_BYTES_MAX} bytes, including the fields of the virtual server`,
      fix: "Set fewer or shorter fields: many clients accept no response head that is longer than 16 KiB.",
    }),
  ];
}

function hstsProblems(config: ProxyConfig, server: VirtualServerConfig, at: string): Problem[] {
  const { hsts } = server;
  if (hsts === undefined) return [];
  const problems: Problem[] = [];
  const secure = config.listeners.some(
    ({ name, protocol }) => protocol === "https" && server.listeners.includes(name),
  );
  if (!secure) {
    problems.push(
      problem(
        "config.hsts-without-tls",
        `${at}.hsts`,
        "is never sent: no listener of the virtual server is https",
        {
          received: server.listeners,
          allowed: "`hsts` on a virtual server with an https listener",
        },
      ),
    );
  }
  const removed = server.responseHeaders.remove.findIndex(
    (name) => name.toLowerCase() === "strict-transport-security",
  );
  if (removed !== -1)
    problems.push(
      twice(`${at}.hsts`, `is also at ${at}.responseHeaders.remove[${removed}]`, "Strict-Transport-Security"),
    );
  if (hsts.preload && (!hsts.includeSubDomains || hsts.maxAge < PRELOAD_MAX_AGE_MIN)) {
    problems.push(
      problem(
        "config.hsts-preload",
        `${at}.hsts.preload`,
        "does not meet the rules of the browsers' preload list",
        {
          received: hsts,
          allowed: `\`includeSubDomains: true\` and a \`maxAge\` of at least ${PRELOAD_MAX_AGE_MIN}`,
        },
      ),
    );
  }
  return problems;
}
