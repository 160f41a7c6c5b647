import type { Construct } from "constructs";
import { proxyOptions } from "../../model/actions/proxy.js";
import { route, virtualServerOptions } from "../../model/config/config.js";
import { deploymentSchema } from "../../model/deployment.js";
import type { AnyFrontEndProps } from "./frontEndProps.js";
import { MILLISECONDS_MAX } from "../../model/fields.js";
import { isWildcard, type Problem, problem } from "../../model/index.js";
import { FURTHER_NAME, nameRule } from "../../model/serverName.js";
import { accepting, isFilePath } from "../../model/textRule.js";
import type { SettingsFilePaths } from "../../applications/index.js";
import { PAUSE_RESPONSE } from "../errorPage.js";
import type { ApplicationUnits, FileSyncActivationProps, SettingsEditing } from "./activationProps.js";
import { APPLICATION_DAEMONS_PROPS, daemonPropProblems } from "./daemons.js";
import { APPLICATION_SETTINGS_PROPS, settingsPropProblems } from "./settings.js";
import { DAILY_DOCTOR_PROPS } from "../dailyDoctor.js";
import { hostPathProblems, refuse, serverOptionProblems } from "../props/checks.js";
import type { RouteFields } from "./servers.js";
import type { FileSyncRoutes, FileSyncUpstreams, RouteResponseFields, UpstreamOverrides } from "./members.js";
import { FIREWALL_PROPS } from "../firewall.js";
import { pathProblems, ROUTE_PATHS } from "./paths.js";
import { givenPartProblems } from "../frontEndParts.js";
import { type IHost, HOST_PROPS } from "../host.js";
import { APPLICATION, HOST, MODE } from "../props/instances.js";
import { applicationProblems, propsFor } from "./applicationProps.js";
import type { Mode } from "../mode.js";
import { STATIC_NETWORK_PROPS } from "../network.js";
import { fieldsOf, kindsOf } from "../props/fieldTable.js";
import {
  any,
  either,
  fields,
  flag,
  listOf,
  partial,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
  without,
} from "../props/propTable.js";
import { PROXY_SERVICE_PROPS } from "../proxyService.js";
import { HOST_PATHS, REVERSE_PROXY_PROPS } from "../reverseProxy.js";
import { isKnown } from "../props/tokens.js";
import { UPSTREAM_PROPS, type UpstreamProps } from "../upstream.js";

const UPSTREAM_CHANGES = fields<Partial<UpstreamProps>>(partial(UPSTREAM_PROPS));

/** @internal */
export const ROUTE_FIELDS = fields<RouteResponseFields<FileSyncRoutes>>({
  web: any,
  webdav: any,
  fileServer: any,
  media: any,
  avatars: any,
  page: any,
});

export const FRONT_END_PROPS: PropTable<AnyFrontEndProps> = {
  host: required(either(HOST, fields(HOST_PROPS))),
  mode: required(MODE),
  application: APPLICATION,
  installDirectory: text,
  mediaDirectory: text,
  avatarDirectory: text,
  pathPrefix: text,
  routePaths: ROUTE_PATHS,
  additionalServerNames: listOf(text),
  upstreams: fields<UpstreamOverrides<FileSyncUpstreams>>({
    web: UPSTREAM_CHANGES,
    webdav: UPSTREAM_CHANGES,
    fileServer: UPSTREAM_CHANGES,
  }),
  ...kindsOf(route, "requestBodyTimeoutMs"),
  webdavDestination: kindsOf(proxyOptions, "destination").destination,
  ...fieldsOf(virtualServerOptions, "responseHeaders"),
  pauseResponse: PAUSE_RESPONSE,
  errorPages: listOf(record),
  routeResponseHeaders: ROUTE_FIELDS,
  proxy: fields(without(REVERSE_PROXY_PROPS, "host", "paths")),
  service: fields(without(PROXY_SERVICE_PROPS, "proxy")),
  settings: fields<NonNullable<AnyFrontEndProps["settings"]>>({
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
      files: fields<SettingsFilePaths>({ networkDaemon: text, webApplication: text, fileServer: text }),
      apply: flag,
    }),
    fixMedia: flag,
    ...kindsOf(deploymentSchema, "database", "probe", "replay", "requireCertificate"),
    doctor: fields(DAILY_DOCTOR_PROPS),
  }),
  outputs: flag,
};

/** @internal Refuses props from which no part of a front end could be made. */
export function refuseFrontEnd(construct: Construct, props: AnyFrontEndProps): void {
  const at = (name: string): string => `${construct.node.path}.${name}`;
  refuseProps(construct, props, propsFor(props, FRONT_END_PROPS, UPSTREAM_CHANGES), (fit) => [
    ...applicationProblems(fit, at),
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
  Partial<AnyFrontEndProps>,
  | "pathPrefix"
  | "routePaths"
  | "mediaDirectory"
  | "avatarDirectory"
  | "requestBodyTimeoutMs"
  | "responseHeaders"
  | "errorPages"
  | "pauseResponse"
  | "routeResponseHeaders"
>;

/** @internal */
export function routeProblems(props: RouteOptions, at: At): Problem[] {
  return [
    ...pathProblems(props, at),
    ...directoryProblems(props, at),
    ...timeoutProblems(props, at),
    ...serverOptionProblems(at("responseHeaders"), "responseHeaders", props.responseHeaders),
    ...serverOptionProblems(at("errorPages"), "errorPages", props.errorPages),
    ...serverOptionProblems(at("pauseResponse"), "pauseResponse", props.pauseResponse),
    ...routeFieldProblems(props, at),
  ];
}

type At = (name: string) => string;

function routeFieldProblems({ avatarDirectory, routeResponseHeaders = {} }: RouteOptions, at: At) {
  const problems = Object.entries(routeResponseHeaders).flatMap(([route, given]) =>
    serverOptionProblems(at(`routeResponseHeaders.${route}`), "responseHeaders", given),
  );
  if (avatarDirectory !== undefined || (routeResponseHeaders as RouteFields).avatars === undefined)
    return problems;
  const message = "is for a route that this front end does not have";
  const allowed = "web, webdav, fileServer, media, page";
  const fix = "Set `avatarDirectory`, or set the fields of `media`, the route that serves the avatars.";
  return [
    ...problems,
    problem("config.unknown-field", at("routeResponseHeaders.avatars"), message, { allowed, fix }),
  ];
}

/** @internal */
export function namesProblems(path: string, names: readonly string[], main = false): Problem[] {
  return names.flatMap((name, i) => {
    const rule = main ? nameRule(i) : FURTHER_NAME;
    if (!isKnown(name) || accepting(rule)(name)) return [];
    const more = { received: name, allowed: rule.allowed };
    return [problem("config.bad-server-name", `${path}[${i}]`, "is not a server name", more)];
  });
}

/** @internal Refuses a further name that is one of the host's, or is repeated. */
export function refuseSameNames(
  { node, host }: Construct & { readonly host: IHost },
  { additionalServerNames: names = [] }: AnyFrontEndProps,
): void {
  const same = names.map((name, i) => [...host.serverNames, ...names.slice(0, i)].includes(name));
  const at = (i: number): string => `${node.path}.additionalServerNames[${i}]`;
  const known = host.serverNames.filter(isKnown).join(", ");
  const allowed = `names other than ${known === "" ? "those of the host" : known}, each once`;
  const more = { allowed, fix: "Remove the name." };
  refuse(
    names.flatMap((received, i) =>
      same[i]
        ? [problem("config.duplicate-server-name", at(i), "is already a server name", { received, ...more })]
        : [],
    ),
  );
}

/** @internal Refuses an IPv6 address to listen on where nothing listens on IPv6. */
export function refuseLostAddress({
  node,
  host,
  mode,
}: Construct & { readonly host: IHost; readonly mode: Mode }): void {
  const { ipv6Address } = mode;
  if (host.ipv6Address !== undefined || isWildcard(ipv6Address)) return;
  const message = "has an `ipv6Address`, but the host has no IPv6 address";
  const fix = "Set the host's `ipv6Address`, or remove `ipv6Address` from the mode.";
  refuse([problem("config.bad-address", `${node.path}.mode`, message, { received: ipv6Address, fix })]);
}

function timeoutProblems({ requestBodyTimeoutMs: time }: RouteOptions, at: At): Problem[] {
  if (time === undefined || !isKnown(time)) return [];
  if (Number.isInteger(time) && time >= 1 && time <= MILLISECONDS_MAX) return [];
  const more = { received: time, allowed: `1 to ${MILLISECONDS_MAX} milliseconds` };
  return [problem("config.out-of-range", at("requestBodyTimeoutMs"), "is out of range", more)];
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
