import type { AccessLogConfig, ProxyConfigInput, VirtualServerInput } from "../model/index.js";
import type { TextRule } from "../model/text/textRule.js";
import type { LogInConfig } from "../model/config/guardChecks.js";

/** The filter and the jails for fail2ban(1): which lines of which access logs are failed log-ins, and what follows. */

type LogInInput = NonNullable<VirtualServerInput["logIns"]>[number];
type AccessLogInput = Exclude<AccessLogConfig, "off"> extends infer Log ? Partial<Log> : never;

/** The failed log-ins of one virtual server, as far as access logs show them. */
export interface WatchedServer {
  /** Name of the virtual server. */
  readonly name: string;
  /** Access logs in files that its requests are logged to. */
  readonly logs: readonly WatchedLog[];
  readonly rules: readonly WatchedLogIn[];
  /** Log-ins whose failures no access log shows: only the target of a redirect tells. */
  readonly unseen: readonly LogInInput[];
}

/** A file that requests are logged to. */
export interface WatchedLog {
  readonly path: string;
  readonly format: "combined" | "json";
}

/** A failed log-in in terms of an access log. */
export interface WatchedLogIn extends Pick<LogInConfig, "path" | "secret"> {
  readonly match: "exact" | "segment";
  readonly method?: string;
  /** Statuses that only a failure has. */
  readonly failed: readonly number[];
}

/** How long and how often an address may fail, and what fail2ban then does. */
export interface BanRules {
  readonly maxRetry: number;
  readonly findTimeMs: number;
  readonly banTimeMs: number;
  readonly banAction: string;
  /** Addresses and ranges that are never banned. */
  readonly ignoreIp: readonly string[];
  /** TCP ports that a banned address cannot reach. */
  readonly ports: readonly number[];
}

/** Access logs in files, each once. */
export function accessLogsOf(config: ProxyConfigInput, servers: readonly VirtualServerInput[]): WatchedLog[] {
  const main = config.logs?.access;
  const all = servers.flatMap(({ routes = [] }) => routes.map(({ accessLog = main }) => accessLog));
  const logs = all.flatMap((log) => {
    const { path, format = "combined" } = (typeof log === "object" ? log : {}) as AccessLogInput & {
      path?: string;
    };
    return path === undefined ? [] : [{ path, format }];
  });
  return logs.filter(({ path }, i) => logs.findIndex((one) => one.path === path) === i);
}

/** Paths that mean the same to fail2ban and CrowdSec: both read patterns of file names, and fail2ban words after a blank. */
export const BAN_LOG_PATH: TextRule & { readonly allowed: string } = {
  pattern: "^/[A-Za-z0-9/._@:+,=-]+$",
  allowed: "a path of letters, digits and ./_-+@:,=",
};

/**
 * Whether requests to another virtual server may look like failed log-ins of this one: their upstreams have other log-ins, and
 * the lines of a log that both have name no server.
 */
export function sharesALog({ name, logs, rules }: WatchedServer, config: ProxyConfigInput): boolean {
  if (rules.length === 0) return false;
  const own = logs.filter(({ format }) => format === "combined").map(({ path }) => path);
  const server = config.virtualServers.find((one) => one.name === name);
  return config.virtualServers.some((other) => {
    if (JSON.stringify(other.logIns) === JSON.stringify(server?.logIns)) return false;
    const proxied = (other.routes ?? []).filter(({ action }) => action.type === "proxy");
    return accessLogsOf(config, [{ ...other, routes: proxied }]).some(({ path }) => own.includes(path));
  });
}

/** The virtual servers with log-ins. */
export function watchedServers(config: ProxyConfigInput): WatchedServer[] {
  return config.virtualServers.flatMap((server) => {
    const { name, logIns = [] } = server;
    if (logIns.length === 0) return [];
    const all = logIns.map((logIn) => ({ logIn, failed: shownFailures(logIn) }));
    return {
      name,
      logs: accessLogsOf(config, [server]),
      rules: all.flatMap(({ logIn: { path, match = "exact", method, secret }, failed }) =>
        failed.length === 0 ? [] : [{ path, match, method, secret, failed }],
      ),
      unseen: all.filter(({ failed }) => failed.length === 0).map(({ logIn }) => logIn),
    };
  });
}

/** A line has the status of a redirect, but not its target, which alone tells a failure from a success. */
const shownFailures = ({ failed, failedLocation }: LogInInput): readonly number[] =>
  failedLocation === undefined ? failed : failed.filter((status) => status < 300 || status > 399);

/** Servers with jails: something of them is seen. */
const jailed = (servers: readonly WatchedServer[]): readonly WatchedServer[] =>
  servers.filter(({ rules, logs }) => rules.length > 0 && logs.length > 0);

/** The file of the filter, in `filter.d`. */
export function renderBanFilter(servers: readonly WatchedServer[]): string {
  const rules = jailed(servers).map(({ name, rules: own, logs }, i) => {
    const formats = [...new Set(logs.map(({ format }) => format))].sort();
    const lines = formats.flatMap((format) => own.map((rule) => LINES[format](rule, name)));
    const said = own.map((rule) => `#   ${spoken(rule)}\n`).join("");
    return `# Failed log-ins of ${name}:\n${said}failures-${i + 1} = ${lines.map(literal).join(INDENT)}\n`;
  });
  return `${MADE}
[Definition]
${rules.join("")}
failregex = <failures-<server>>
datepattern = ${Object.values(DATES).join(INDENT)}

[Init]
server = 1
`;
}

const spoken = ({ method = "any method", path, match, secret, failed }: WatchedLogIn): string =>
  `${method} ${path}${match === "segment" ? " and below" : ""}${secret === "authorization" ? ", with Basic credentials" : ""}: ` +
  failed.join(", ");

/**
 * The file of the jails, in `jail.d`. fail2ban would ask DNS for the host's own addresses (`ignoreself`), and would ban nobody
 * while DNS does not respond: `ignoreIp` has these addresses.
 */
export function renderJails(servers: readonly WatchedServer[], rules: BanRules): string {
  const { maxRetry, findTimeMs, banTimeMs, banAction, ignoreIp, ports } = rules;
  const jails = jailed(servers).map(({ name, logs }, i) => {
    const jail = jailOf(name);
    return `
[${jail}]
enabled = true
filter = ${BAN_FILTER}[server=${i + 1}]
logpath = ${logs.map(({ path }) => literal(path)).join(INDENT)}
backend = auto
usedns = no
maxretry = ${maxRetry}
findtime = ${seconds(findTimeMs)}
bantime = ${seconds(banTimeMs)}
ignoreself = false
ignoreip = ${ignoreIp.join(" ")}
action = ${banAction}[name=${jail}, port="${ports.join(",")}", protocol=tcp]
`;
  });
  return `${MADE}${jails.join("")}`;
}

/** The jail of a virtual server. */
export const jailOf = (server: string): string => `portico-${server}`;

/** The name of the filter, and of its file. */
export const BAN_FILTER = "portico";

/** @internal */
export const MADE = "# Made by Portico; changes here are overwritten.\n";
const INDENT = "\n    ";
const seconds = (milliseconds: number): number => Math.ceil(milliseconds / 1000);

/** fail2ban reads `%` as the start of a reference. */
const literal = (text: string): string => text.replaceAll("%", "%%");

/**
 * The one place of a line with the time, from its start, so that no text of a client can be taken for a time. fail2ban
 * removes the time from the line before it applies the patterns below.
 */
const DATES = {
  combined: String.raw`^\S+ - \S+ \[(%%d/%%b/%%Y:%%H:%%M:%%S %%z)\]`,
  json: String.raw`^\{"time":"(%%Y-%%m-%%dT%%H:%%M:%%S\.%%f%%z)"`,
};

/** Text of a client in a JSON line. */
const JSON_TEXT = String.raw`(?:[^"\\]|\\.)*`;

/**
 * The whole of a line that a client has no influence on, from its start: no value of a client can end its own field, because
 * the quotes in it are escaped.
 */
const LINES: Record<WatchedLog["format"], (rule: WatchedLogIn, server: string) => string> = {
  combined: ({ secret, method = '[^ "]+', failed, ...path }) => {
    const user = secret === "authorization" ? String.raw`(?!- )\S+` : String.raw`\S+`;
    const request = `${method} ${target(path, '[^ ?#"]*', '[^ "]*')}(?: HTTP/[0-9.]+)?`;
    return String.raw`^<ADDR> - ${user} \[\] "${request}" (?:${failed.join("|")}) \d+ "`;
  },
  json: ({ secret, method = JSON_TEXT, failed, ...path }, server) => {
    const user = secret === "authorization" ? `"${JSON_TEXT}"` : `(?:null|"${JSON_TEXT}")`;
    const asked = target(path, String.raw`(?:[^?#"\\]|\\.)*`, JSON_TEXT);
    return (
      String.raw`^\{"time":"","remote_addr":"<ADDR>","remote_user":${user},"method":"${method}","target":"${asked}",` +
      String.raw`"http_version":"[^"]*","scheme":"[a-z]+","tls_group":(?:null|"[^"]*"),"host":"${JSON_TEXT}",` +
      String.raw`"status":(?:${failed.join("|")}),"body_bytes_sent":\d+,"request_time_ms":\d+,` +
      String.raw`"request_body_bytes":(?:null|\d+),"listener":"[^"]*","server":"${escaped(server)}",`
    );
  },
};

/**
 * Targets that a server may read as the path. It counts as well if the line does not tell: if a segment is `..`, which no
 * client of users sends, or if the path was cut.
 *
 * @param inPath text up to the end of the path
 * @param rest text up to the end of the target
 */
function target({ path, match }: Pick<WatchedLogIn, "path" | "match">, inPath: string, rest: string): string {
  const segments = path.split("/").filter((segment) => segment !== "");
  const spelled = segments
    .map((segment) => `${SLASHES}${[...segment].map(spellings).join("")}${IGNORED}`)
    .join("");
  const below = match === "segment" ? `(?:${SLASHES}${inPath})?` : `(?:${SLASHES})?`;
  const end = String.raw`(?:[?#]${rest}|(?=[ "]))`;
  const climbs = String.raw`(?=${inPath}${SLASH}${DOT}{2}(?:[ ?#";%\\/]))${rest}`;
  const cut = String.raw`${inPath}\\u2026`;
  return String.raw`(?i:(?:https?://[^/ ?#"\\]*)?(?:${spelled}${below}${end}|${climbs}|${cut}))`;
}

/** Servers differ in what they take for a path: `readings.ts` of the model. `%25` is a `%` for those that decode twice. */
const encoded = (hex: string): string => `%(?:25)*${hex}`;
const SLASH = String.raw`(?:/|\\x5c|\\\\|${encoded("(?:2f|5c)")})`;
const DOT = `(?:[.]|${encoded("2e")})`;
/** Parameters of a segment. They end where the segment does, so that a text has one reading only, and is read in one pass. */
const PARAMETERS = `(?:;|${encoded("3b")})(?:[^ /?#"\\\\%]|%(?!(?:25)*(?:2f|5c)))*`;
/** Slashes with empty segments between them. */
const SLASHES = `${SLASH}+(?:(?:${DOT}(?:${PARAMETERS})?|${PARAMETERS})${SLASH}+)*`;
/** Dots and blanks at the end of a segment, and its parameters. */
const IGNORED = String.raw`(?:[.]|${encoded("2[0e]")})*(?:${PARAMETERS})?`;

const spellings = (char: string): string => {
  const codes = [...new Set([char.toLowerCase(), char.toUpperCase()])].map((one) =>
    one.charCodeAt(0).toString(16),
  );
  return `(?:${escaped(char)}|${encoded(`(?:${codes.join("|")})`)})`;
};

/** A text in a pattern; `<` and `>` would be tags of fail2ban. */
const escaped = (text: string): string =>
  text.replaceAll(/[^A-Za-z0-9/_]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
