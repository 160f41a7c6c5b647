import { join, resolve } from "node:path";
import type { CertificateContents, TlsContents, UpstreamTlsContents } from "../tls/tlsContents.js";
import { loadAccessLists } from "./accessLists.js";
import { checkAuthorityFiles } from "./authorityFiles.js";
import { loadClientAuthorities } from "./clientAuthorities.js";
import type { ClientAuthorities } from "../tls/clientCertificates.js";
import { credentials } from "./credentials.js";
import { wantedCertificates } from "./wantedCertificates.js";
import { directoriesOf, withDirectories } from "../../model/actions/table.js";
import { fromJson, parseConfig } from "../../model/config/parse.js";
import {
  type AccessLists,
  type AccessUsers,
  type AccessLogConfig,
  type ErrorLogConfig,
  type Problem,
  ProblemError,
  type ProxyConfig,
  type ProxyConfigInput,
  type Result,
  type RouteConfig,
  type VirtualServerConfig,
  type WantedCertificate,
  withDnsFiles,
  withNotificationFiles,
} from "../../model/serving.js";
import { directoryProblem, logProblem, readParsed, recoverLogs, sha256 } from "./files.js";
import { loadErrorPages } from "./errorPageFiles.js";
import { loadFieldValues } from "./fieldValues.js";
import { checkNotificationFiles } from "./notificationFiles.js";
import { cookieKey, loadTicketSecret } from "./ticketSecret.js";
import { loadTlsFiles } from "./tlsFiles.js";
import { loadUpstreamTls } from "./upstreamTls.js";

/** The config to load, and options of the checks. */
export interface LoadOptions {
  /** Path of the config file. */
  readonly file: string;
  /**
   * Folder that all paths in the config start from; the path of the config file itself does not change.
   * @default - paths are used as they are
   */
  readonly root?: string;
  /**
   * Changes the config before its files are read; the paths already start from `root`. May throw a ProblemError.
   * @default - the config stays as it is
   */
  readonly adjust?: (config: ProxyConfig) => ProxyConfig;
  /**
   * Whether log lines go to standard error instead of log files; log files are then not checked.
   * @default false
   */
  readonly logToStderr?: boolean;
  /**
   * How an expired or not yet valid certificate is reported. A service start uses `warning`: a certificate may expire
   * between two boots, or the clock may be wrong, and port 80 should still work.
   * @default "problem"
   */
  readonly expiry?: "problem" | "warning";
  /**
   * How a log file that is not writable is reported. A service uses `warning`: the service runs without the file,
   * reports the file, and first moves files of other users away if permitted (`recoverLogs`).
   * @default "problem"
   */
  readonly logs?: "problem" | "warning";
  /** @internal The file's config, if it was parsed before: the file is not read again, and `givenLimits` stay unknown. */
  readonly parsed?: ProxyConfig;
  /** @internal Finds issued certificates of authorities; by default they are left out. */
  readonly issued?: FindIssued;
}

/** Finds the certificates that authorities have issued so far. */
export type FindIssued = (wanted: readonly WantedCertificate[]) => Promise<readonly CertificateContents[]>;

/** A config and all data to serve the config; plain JSON, which can be sent to workers. */
export interface LoadedConfig {
  /** The config, with resolved paths, and with the contents of error pages in place of their files. */
  readonly config: ProxyConfig;
  /**
   * Names of the limits in the config file.
   * @default - the file sets no limits
   */
  readonly givenLimits?: readonly string[];
  /**
   * Values of secret request header fields, by file.
   * @default - no route sets secret fields
   */
  readonly fieldValues?: Readonly<Record<string, string>>;
  /** TLS material, by listener name. */
  readonly tls: Readonly<Record<string, TlsContents>>;
  /**
   * TLS material of upstreams, by name.
   * @default - no upstream needs material
   */
  readonly upstreamTls?: Readonly<Record<string, UpstreamTlsContents>>;
  /**
   * Key of the cookies that bind clients to servers.
   * @default - no upstream uses such cookies
   */
  readonly cookieKey?: string | undefined;
  /**
   * Contents of the lists of access policies, by file.
   * @default - no policy names a file
   */
  readonly accessLists?: AccessLists;
  /**
   * Users of access policies with hashes of their passwords, by file.
   * @default - no policy names a file
   */
  readonly accessUsers?: AccessUsers;
  /**
   * Authorities of clients, and their revoked certificates, by `authorityKey`.
   * @default - no virtual server asks for certificates
   */
  readonly clientAuthorities?: ClientAuthorities;
  /** Findings that do not prevent serving. */
  readonly warnings: readonly Problem[];
}

/** A loaded config, with secrets that only the master may have: workers read data of clients. */
export interface LoadedForMaster extends LoadedConfig {
  /** The secret of shared ticket keys, in base64, if the config has one. */
  readonly ticketSecret?: string;
}

/** Reads and checks a config and all files in the config. Returns the loaded config, or all problems. */
export async function loadConfig(options: LoadOptions): Promise<Result<LoadedForMaster>> {
  const { parsed } = options;
  const read =
    parsed === undefined
      ? await readParsed(options.file, (text) => prepare(text, options))
      : adjusted(parsed, options);
  if (!read.ok) return read;
  const { config, ...more } = read.value;
  const tolerant = options.logs === "warning";
  const issued = (await options.issued?.(wantedCertificates(config))) ?? [];
  const { expiry = "problem" } = options;
  const find = await credentials();
  const [tls, upstreams, tickets, fields, pages, authorities, notified, access, clients, directories, logs] =
    await Promise.all([
      loadTlsFiles(config, expiry, issued),
      loadUpstreamTls(config, expiry, find),
      config.ticketKeys === undefined ? undefined : loadTicketSecret(config.ticketKeys, find),
      loadFieldValues(config, find),
      loadErrorPages(config),
      checkAuthorityFiles(config, find),
      checkNotificationFiles(config, find),
      loadAccessLists(config, find),
      loadClientAuthorities(config, expiry),
      directoryProblems(config),
      options.logToStderr === true ? [] : logProblems(config, tolerant),
    ]);
  const problems = [
    ...tls.problems,
    ...upstreams.problems,
    ...(tickets?.problems ?? []),
    ...fields.problems,
    ...pages.problems,
    ...authorities.problems,
    ...notified.problems,
    ...access.problems,
    ...clients.problems,
    ...directories,
    ...(tolerant ? [] : logs),
  ];
  if (problems.length > 0) return { ok: false, problems };
  const warnings = [
    ...tls.warnings,
    ...upstreams.warnings,
    ...(tickets?.warnings ?? []),
    ...fields.warnings,
    ...authorities.warnings,
    ...notified.warnings,
    ...access.warnings,
    ...clients.warnings,
    ...(tolerant ? logs : []),
  ];
  const secret = tickets?.secret === undefined ? {} : { ticketSecret: tickets.secret };
  return {
    ok: true,
    value: {
      ...more,
      ...{ config: pages.config, fieldValues: fields.values },
      ...{ tls: tls.files, upstreamTls: upstreams.contents },
      ...{ cookieKey: await cookieKey(config, tickets?.secret), warnings, ...secret },
      ...(access.lists === undefined ? {} : { accessLists: access.lists }),
      ...(access.users === undefined ? {} : { accessUsers: access.users }),
      ...(clients.authorities === undefined ? {} : { clientAuthorities: clients.authorities }),
    },
  };
}

type LimitsFromFile = Pick<LoadedConfig, "config" | "givenLimits">;

function prepare(text: string, options: LoadOptions): Result<LimitsFromFile> {
  return fromJson(text, (input) => {
    const parsed = parseConfig(input);
    if (!parsed.ok) return parsed;
    const ready = adjusted(parsed.value, options);
    const { limits = {} } = input as ProxyConfigInput;
    return ready.ok ? { ok: true, value: { ...ready.value, givenLimits: Object.keys(limits) } } : ready;
  });
}

function adjusted(parsed: ProxyConfig, { root, adjust }: LoadOptions): Result<LimitsFromFile> {
  // Parsed again, because odd characters in the root make paths that no field accepts.
  const rooted =
    root === undefined ? { ok: true as const, value: parsed } : parseConfig(underRoot(parsed, resolve(root)));
  if (!rooted.ok) return rooted;
  try {
    return { ok: true, value: { config: adjust === undefined ? rooted.value : adjust(rooted.value) } };
  } catch (error) {
    if (error instanceof ProblemError) return { ok: false, problems: error.problems };
    throw error;
  }
}

/** The same config with every path below the root. */
function underRoot(config: ProxyConfig, root: string): ProxyConfig {
  const below = <T extends AccessLogConfig | ErrorLogConfig>(log: T): T =>
    typeof log === "object" && "path" in log ? { ...log, path: join(root, log.path) } : log;
  const routeBelow = (route: RouteConfig): RouteConfig => ({
    ...route,
    ...(route.accessLog === undefined ? {} : { accessLog: below(route.accessLog) }),
    ...(route.errorLog === undefined ? {} : { errorLog: below(route.errorLog) }),
    action: actionBelow(root, route.action),
  });
  return {
    ...config,
    logs: { ...config.logs, access: below(config.logs.access), error: below(config.logs.error) },
    certificateAuthorities: config.certificateAuthorities.map((authority) => {
      const { externalAccountBinding: account, dns } = authority;
      return {
        ...pathsBelow(root, authority, "roots"),
        ...(account === undefined ? {} : { externalAccountBinding: pathsBelow(root, account, "keyFile") }),
        ...(dns === undefined ? {} : { dns: withDnsFiles(dns, (path) => join(root, path)) }),
      };
    }),
    ...(config.accessPolicies === undefined
      ? {}
      : {
          accessPolicies: Object.fromEntries(
            Object.entries(config.accessPolicies).map(([name, one]) => [
              name,
              {
                ...pathsBelow(root, one, "denyFile"),
                ...(one.basic === undefined ? {} : { basic: pathsBelow(root, one.basic, "usersFile") }),
              },
            ]),
          ),
        }),
    ...(config.notifications === undefined
      ? {}
      : {
          notifications: {
            ...config.notifications,
            targets: config.notifications.targets.map((one) =>
              withNotificationFiles(one, (path) => join(root, path)),
            ),
          },
        }),
    ...(config.metricsListener !== undefined && "path" in config.metricsListener
      ? { metricsListener: pathsBelow(root, config.metricsListener, "path") }
      : {}),
    ...(config.ticketKeys === undefined ? {} : { ticketKeys: pathsBelow(root, config.ticketKeys, "file") }),
    listeners: config.listeners.map(({ tls, ...listener }) =>
      tls === undefined
        ? listener
        : {
            ...listener,
            tls: {
              ...pathsBelow(root, tls, "certificate", "key", "dhparam"),
              certificates: tls.certificates.map((one) => pathsBelow(root, one, "certificate", "key")),
            },
          },
    ),
    upstreams: config.upstreams.map((upstream) =>
      upstream.tls === undefined
        ? upstream
        : { ...upstream, tls: pathsBelow(root, upstream.tls, "caFile", "certificateFile", "privateKeyFile") },
    ),
    virtualServers: config.virtualServers.map((server) => ({
      ...serverBelow(root, server),
      routes: server.routes.map(routeBelow),
    })),
  };
}

function serverBelow(root: string, server: VirtualServerConfig): VirtualServerConfig {
  const { clientCertificate: asked, errorPages } = server;
  return {
    ...server,
    ...(asked === undefined ? {} : { clientCertificate: pathsBelow(root, asked, "ca", "crl") }),
    errorPages: errorPages.map((page) => ("file" in page ? pathsBelow(root, page, "file") : page)),
  };
}

function actionBelow(root: string, given: RouteConfig["action"]): RouteConfig["action"] {
  const action = withDirectories(given, (path) => join(root, path));
  if (action.type !== "proxy") return action;
  const files = Object.entries(action.setHeadersFromCredential).map(([name, file]) => [
    name,
    join(root, file),
  ]);
  return { ...action, setHeadersFromCredential: Object.fromEntries(files) as Record<string, string> };
}

/** The same fields with the paths among them below the root; those that are not given stay out. */
function pathsBelow<T extends object>(root: string, fields: T, ...paths: readonly (keyof T)[]): T {
  const given = paths.filter((name) => fields[name] !== undefined);
  return {
    ...fields,
    ...Object.fromEntries(given.map((name) => [name, join(root, fields[name] as string)])),
  };
}

/** Each path once: routes share directories and logs. */
async function eachOnce(
  paths: readonly { readonly path: string; readonly field: string }[],
  check: (path: string, label: string) => Promise<Problem | undefined>,
): Promise<Problem[]> {
  const first = new Map<string, string>();
  for (const { path, field } of paths) if (!first.has(path)) first.set(path, field);
  const found = await Promise.all([...first].map(([path, field]) => check(path, `${field} (${path})`)));
  return found.filter((p) => p !== undefined);
}

function routesOf(config: ProxyConfig): { route: RouteConfig; at: string }[] {
  return config.virtualServers.flatMap((server, s) =>
    server.routes.map((route, r) => ({ route, at: `virtualServers[${s}].routes[${r}]` })),
  );
}

function directoryProblems(config: ProxyConfig): Promise<Problem[]> {
  const directories = routesOf(config).flatMap(({ route, at }) =>
    directoriesOf(route.action).map(({ field, value }) => ({ path: value, field: `${at}.action.${field}` })),
  );
  return eachOnce(directories, directoryProblem);
}

/** Paths of log files, each with the field that first names it. */
function logsOf(config: ProxyConfig): { path: string; field: string }[] {
  const logs = [
    { log: config.logs.access, field: "logs.access.path" },
    { log: config.logs.error, field: "logs.error.path" },
    ...routesOf(config).flatMap(({ route, at }) => [
      { log: route.accessLog, field: `${at}.accessLog.path` },
      { log: route.errorLog, field: `${at}.errorLog.path` },
    ]),
  ];
  return logs.flatMap(({ log, field }) =>
    typeof log === "object" && "path" in log ? [{ path: log.path, field }] : [],
  );
}

/** Every log file of a config, once. */
export function logPaths(config: ProxyConfig): string[] {
  return [...new Set(logsOf(config).map(({ path }) => path))];
}

async function logProblems(config: ProxyConfig, recover: boolean): Promise<Problem[]> {
  if (recover) recoverLogs(logPaths(config));
  return eachOnce(logsOf(config), logProblem);
}

/** Hashes of the files that a running master has loaded, to be compared with the installed files. */
export interface LoadedState {
  /** The hash of the runtime's file when the master started. */
  readonly runtime: string;
  /** The hash of the parsed config, so that formatting makes no difference. */
  readonly config: string;
  /** The hash of certificates, of listeners and for upstreams, and of Diffie-Hellman parameters; keys are no part of it. */
  readonly tls: string;
}

/** The part of {@link LoadedState} that depends on a config file and the files it names. */
export function loadedStateOf({
  config,
  tls,
  upstreamTls = {},
}: LoadedConfig): Pick<LoadedState, "config" | "tls"> {
  const shown = Object.entries(tls).map(([listener, { certificates, dhparam }]) => [
    listener,
    // Certificates from authorities are not installed files.
    certificates.flatMap(({ source, cert }) => (source === "files" ? [cert] : [])),
    dhparam,
  ]);
  for (const [upstream, { roots, cert }] of Object.entries(upstreamTls)) shown.push([upstream, roots, cert]);
  return { config: sha256(JSON.stringify(config)), tls: sha256(JSON.stringify(shown)) };
}
