import type { Construct } from "constructs";
import { MILLISECONDS_MAX } from "../../model/fields.js";
import { isFilePath } from "../../model/filePath.js";
import { isWildcard, type Problem, problem } from "../../model/index.js";
import { PUBLIC_NAME } from "../../model/serverName.js";
import { accepting } from "../../model/textRule.js";
import type { FileSyncPaths, SettingsFilePaths } from "../../applications/index.js";
import type { HostPaths } from "../../render/index.js";
import type { ApplicationUnits, FileSyncActivationProps, SettingsEditing } from "./activationProps.js";
import { APPLICATION_DAEMONS_PROPS, type ApplicationDaemonsProps, daemonPropProblems } from "./daemons.js";
import {
  APPLICATION_SETTINGS_PROPS,
  type ApplicationSettingsProps,
  settingsPropProblems,
} from "./settings.js";
import { DAILY_DOCTOR_PROPS } from "../dailyDoctor.js";
import { hostPathProblems, refuse, serverOptionProblems } from "../props/checks.js";
import type { FileSyncRouteFields, FileSyncUpstreamOverrides } from "./servers.js";
import { FIREWALL_PROPS } from "../firewall.js";
import { pathProblems, ROUTE_PATHS } from "./paths.js";
import { type FrontEndFirewallProps, givenPartProblems } from "../frontEndParts.js";
import { type Host, HOST_PROPS, type HostProps } from "../host.js";
import { HOST, MODE } from "../props/instances.js";
import type { Mode } from "../mode.js";
import { STATIC_NETWORK_PROPS, type StaticNetworkProps } from "../network.js";
import {
  any,
  choice,
  either,
  fields,
  flag,
  listOf,
  number,
  partial,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
  without,
} from "../props/propTable.js";
import { PROXY_SERVICE_PROPS, type ProxyServiceProps } from "../proxyService.js";
import { HOST_PATHS, REVERSE_PROXY_PROPS, type ReverseProxyProps } from "../reverseProxy.js";
import type { ResponseHeaders } from "../responseHeaders.js";
import { isKnown } from "../props/tokens.js";
import { UPSTREAM_PROPS, type UpstreamProps } from "../upstream.js";

/** What a front end is made of. The host, the mode, and a directory of the application are required. */
export interface FileSyncFrontEndProps {
  /** The host, or props to make one. */
  readonly host: Host | HostProps;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /**
   * Directory on the host that the web application is installed in; its media are in `media` below it.
   * @default - none; then `mediaDirectory` is needed
   */
  readonly installDirectory?: string;
  /**
   * Directory of the static media: icons, avatars, scripts. The directory, those above it and everything in it
   * must be readable by others, or the proxy answers 403.
   * @default - `media` in the install directory
   */
  readonly mediaDirectory?: string;
  /**
   * Directory of avatars, if the application keeps them with its data and only links to them from the media
   * directory. Links that leave a directory are not followed, so avatars get a route of their own.
   * @default - avatars are in the media directory
   */
  readonly avatarDirectory?: string;
  /**
   * The word that paths begin with: `sync` gives `/sync`, `/synchttp`, `/syncmedia`, `/syncdav`. Sync clients may have paths
   * built in: those of Seafile ask for `/seafhttp`, which `seaf` gives, or `routePaths`.
   * @default "sync"
   */
  readonly pathPrefix?: string;
  /**
   * Paths that the word does not give, by route: `{ fileServer: "/seafhttp", webdav: "/seafdav" }`. Known at synthesis.
   * @default - none
   */
  readonly routePaths?: Partial<FileSyncPaths>;
  /**
   * Further names of the application, in lower case.
   * @default - none
   */
  readonly additionalServerNames?: readonly string[];
  /**
   * Changes to the daemons' addresses, timeouts and connection reuse, by daemon.
   * @default - 127.0.0.1 with the ports 8000, 8080, 8082, timeouts of 36000 s
   */
  readonly upstreams?: FileSyncUpstreamOverrides;
  /**
   * Idle time allowed between two reads of a request body on the proxied routes, in milliseconds; then 408.
   * @default 60000
   */
  readonly requestBodyTimeoutMs?: number;
  /**
   * How the WebDAV daemon gets a `Destination` that points at this front end: as a path, which RFC 4918 allows,
   * or `absolute`, as Apache's mod_dav needs it; `unchanged` leaves it alone.
   * @default "path"
   */
  readonly webdavDestination?: "path" | "absolute" | "unchanged";
  /**
   * Fields that are set or removed in every answer of the application's routes, error pages included;
   * `FILE_SYNC_RESPONSE_HEADERS` is a set that suits most.
   * @default - none
   */
  readonly responseHeaders?: ResponseHeaders;
  /**
   * Fields that are set or removed in the answers of single routes, by route: `web`, `webdav`, `fileServer`, `media`,
   * `avatars`, `page`. They take priority over `responseHeaders`.
   * @default - none
   */
  readonly routeResponseHeaders?: FileSyncRouteFields;
  /**
   * Settings of the proxy as a whole: workers, trusted proxies, main logs, limits, timeouts. If a main log is a stream,
   * the routes have no log files of their own.
   * @default - see ReverseProxy
   */
  readonly proxy?: Omit<ReverseProxyProps, "host" | "paths">;
  /**
   * How the proxy runs: Node, runtime, stop timeout, open files.
   * @default - see ProxyService
   */
  readonly service?: Omit<ProxyServiceProps, "proxy">;
  /**
   * The application's settings that do not follow from the rest: the start command of the web application, and
   * whether settings can be changed through the web.
   * @default - no start command; not through the web
   */
  readonly settings?: Pick<ApplicationSettingsProps, "enableSettingsViaWeb" | "startCommand" | "fileServer">;
  /**
   * Paths on the host that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
  /**
   * Whether `/` leads to the application, over http and https: a 302, so that browsers forget it when this is turned off.
   * The default server still answers for other names, and its page links to the application.
   * @default false - `/` of the application's names is a page over its own scheme, and 404 over http in TLS mode
   */
  readonly rootRedirect?: boolean;
  /**
   * HTML of the default server's page.
   * @default - a page that says no application is served at this address
   */
  readonly defaultPage?: string;
  /**
   * Write the host's static address for systemd-networkd: the interface, and what else the host's props do not say.
   * @default - the host's network is left as it is
   */
  readonly network?: Omit<StaticNetworkProps, "host">;
  /**
   * Filter what reaches the host: the exposed ports are open, all others are not; `{}` is enough.
   * @default - no filter
   */
  readonly firewall?: FrontEndFirewallProps;
  /**
   * Units for the application's daemons, by daemon.
   * @default - the application brings its own
   */
  readonly daemons?: Omit<ApplicationDaemonsProps, "host" | "unitDirectory">;
  /**
   * How the deployment takes effect: `portico activate` checks it, stops and starts what changed, probes the
   * expected responses, and restores the last good state if they are not as expected. `{}` is enough for a
   * local delivery.
   * @default - with a delivery over ssh, nothing is known of the application; with a local one, no activation
   */
  readonly activation?: FileSyncActivationProps;
  /**
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward, ports exposed and on loopback only.
   * @default false
   */
  readonly outputs?: boolean;
}

const UPSTREAM_OVERRIDES = fields<Partial<UpstreamProps>>(partial(UPSTREAM_PROPS));

/** @internal */
export const ROUTE_FIELDS = fields<FileSyncRouteFields>({
  web: any,
  webdav: any,
  fileServer: any,
  media: any,
  avatars: any,
  page: any,
});

export const FRONT_END_PROPS: PropTable<FileSyncFrontEndProps> = {
  host: required(either(HOST, fields(HOST_PROPS))),
  mode: required(MODE),
  installDirectory: text,
  mediaDirectory: text,
  avatarDirectory: text,
  pathPrefix: text,
  routePaths: ROUTE_PATHS,
  additionalServerNames: listOf(text),
  upstreams: fields<FileSyncUpstreamOverrides>({
    web: UPSTREAM_OVERRIDES,
    webdav: UPSTREAM_OVERRIDES,
    fileServer: UPSTREAM_OVERRIDES,
  }),
  requestBodyTimeoutMs: number,
  webdavDestination: choice("path", "absolute", "unchanged"),
  responseHeaders: any,
  routeResponseHeaders: ROUTE_FIELDS,
  proxy: fields(without(REVERSE_PROXY_PROPS, "host", "paths")),
  service: fields(without(PROXY_SERVICE_PROPS, "proxy")),
  settings: fields<NonNullable<FileSyncFrontEndProps["settings"]>>({
    enableSettingsViaWeb: APPLICATION_SETTINGS_PROPS.enableSettingsViaWeb,
    startCommand: APPLICATION_SETTINGS_PROPS.startCommand,
    fileServer: APPLICATION_SETTINGS_PROPS.fileServer,
  }),
  paths: fields(HOST_PATHS),
  rootRedirect: flag,
  defaultPage: text,
  network: fields(without(STATIC_NETWORK_PROPS, "host")),
  firewall: fields(
    without(FIREWALL_PROPS, "host", "ports", "loopbackPorts", "unitDirectory", "acceptLockOut"),
  ),
  daemons: fields(without(APPLICATION_DAEMONS_PROPS, "host", "unitDirectory")),
  activation: fields<FileSyncActivationProps>({
    units: fields<ApplicationUnits>({
      fileServer: text,
      webApplication: text,
      webdav: text,
    }),
    settings: fields<SettingsEditing>({
      files: required(
        fields<SettingsFilePaths>({
          networkDaemon: required(text),
          webApplication: required(text),
          fileServer: required(text),
        }),
      ),
      apply: flag,
    }),
    fixMedia: flag,
    requireCertificate: flag,
    database: record,
    probe: record,
    doctor: fields(DAILY_DOCTOR_PROPS),
  }),
  outputs: flag,
};

/** @internal Refuses props from which no part of a front end could be made. */
export function refuseFrontEnd(construct: Construct, props: FileSyncFrontEndProps): void {
  const at = (name: string): string => `${construct.node.path}.${name}`;
  refuseProps(construct, props, FRONT_END_PROPS, (fit) => [
    ...installProblems(fit, at),
    ...routeProblems(fit, at),
    ...hostPathProblems({ installDirectory: fit.installDirectory }, construct.node.path),
    ...namesProblems(at("additionalServerNames"), fit.additionalServerNames ?? []),
    ...hostPathProblems(fit.paths, at("paths")),
    ...hostPathProblems({ ...fit.activation?.settings?.files }, at("activation.settings.files")),
    ...givenPartProblems(construct, { ...fit, upstreams: { ...fit.upstreams } }),
    ...daemonPropProblems(`${construct.node.path}/Daemons`, fit.daemons ?? {}),
    // Names are checked with the host.
    ...settingsPropProblems(`${construct.node.path}/Settings`, {
      serverNames: ["localhost"],
      ...fit.settings,
    }),
  ]);
}

/** Props that the application's routes are made from, wherever the proxy runs. */
type RouteOptions = Pick<
  Partial<FileSyncFrontEndProps>,
  | "pathPrefix"
  | "routePaths"
  | "mediaDirectory"
  | "avatarDirectory"
  | "requestBodyTimeoutMs"
  | "responseHeaders"
  | "routeResponseHeaders"
>;

/** @internal */
export function routeProblems(props: RouteOptions, at: At): Problem[] {
  return [
    ...pathProblems(props, at),
    ...directoryProblems(props, at),
    ...timeoutProblems(props, at),
    ...serverOptionProblems(at("responseHeaders"), "responseHeaders", props.responseHeaders),
    ...routeFieldProblems(props, at),
  ];
}

type At = (name: string) => string;

function routeFieldProblems({ avatarDirectory, routeResponseHeaders = {} }: RouteOptions, at: At) {
  const problems = Object.entries(routeResponseHeaders).flatMap(([route, given]) =>
    serverOptionProblems(at(`routeResponseHeaders.${route}`), "responseHeaders", given),
  );
  if (avatarDirectory !== undefined || routeResponseHeaders.avatars === undefined) return problems;
  const message = "is for a route that does not exist";
  const allowed = "web, webdav, fileServer, media, page";
  const fix = "Give `avatarDirectory`, or set the fields of `media`, which has the avatars.";
  return [
    ...problems,
    problem("config.unknown-field", at("routeResponseHeaders.avatars"), message, { allowed, fix }),
  ];
}

/** @internal */
export function namesProblems(path: string, names: readonly string[]): Problem[] {
  return names.flatMap((name, i) => {
    if (!isKnown(name) || isPublicName(name)) return [];
    const more = { received: name, allowed: PUBLIC_NAME.allowed };
    return [problem("config.bad-server-name", `${path}[${i}]`, "is not a server name", more)];
  });
}

/** @internal Refuses a further name that is one of the host's, or is repeated. */
export function refuseSameNames(
  { node, host }: Construct & { readonly host: Host },
  { additionalServerNames: names = [] }: FileSyncFrontEndProps,
): void {
  const same = names.map((name, i) => [...host.serverNames, ...names.slice(0, i)].includes(name));
  const at = (i: number): string => `${node.path}.additionalServerNames[${i}]`;
  const known = host.serverNames.filter(isKnown).join(", ");
  const allowed = `names other than ${known === "" ? "the host's" : known}, each once`;
  refuse(
    names.flatMap((received, i) =>
      same[i]
        ? [problem("config.duplicate-server-name", at(i), "already exists", { received, allowed })]
        : [],
    ),
  );
}

/** @internal Refuses an IPv6 address to listen on where nothing listens on IPv6. */
export function refuseLostAddress({
  node,
  host,
  mode,
}: Construct & { readonly host: Host; readonly mode: Mode }): void {
  const { ipv6Address } = mode;
  if (host.ipv6Address !== undefined || isWildcard(ipv6Address)) return;
  const message = "is to listen on an IPv6 address, and the host has none";
  const fix = "Give the host an `ipv6Address`, or leave the mode's `ipv6Address` out.";
  refuse([problem("config.bad-address", `${node.path}.mode`, message, { received: ipv6Address, fix })]);
}

const isPublicName = accepting(PUBLIC_NAME);

function timeoutProblems({ requestBodyTimeoutMs: time }: RouteOptions, at: At): Problem[] {
  if (time === undefined || !isKnown(time)) return [];
  if (Number.isInteger(time) && time >= 1 && time <= MILLISECONDS_MAX) return [];
  const more = { received: time, allowed: `1 to ${MILLISECONDS_MAX} milliseconds` };
  return [problem("config.out-of-range", at("requestBodyTimeoutMs"), "is out of range", more)];
}

function installProblems(props: Partial<FileSyncFrontEndProps>, at: At): Problem[] {
  if (props.installDirectory !== undefined || props.mediaDirectory !== undefined) return [];
  const fix = "Give the directory that the application is installed in, or that of its media.";
  const more = { allowed: "an absolute path on the host", fix };
  return [problem("config.missing-field", at("installDirectory"), "is missing", more)];
}

function directoryProblems(props: RouteOptions, at: At): Problem[] {
  return (["mediaDirectory", "avatarDirectory"] as const).flatMap((name) => {
    const directory = props[name];
    if (directory === undefined || !isKnown(directory) || isFilePath(directory)) return [];
    const more = {
      received: directory,
      allowed: "an absolute path on the host, without `//`, `.` or `..` segments",
    };
    return [problem("config.bad-file-path", at(name), "is not the path of a directory", more)];
  });
}
