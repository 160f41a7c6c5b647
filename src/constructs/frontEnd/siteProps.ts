import type { Construct } from "constructs";
import { ANY_PLACE, type PauseResponse } from "../../applications/index.js";
import { route, virtualServerOptions } from "../../model/config/config.js";
import { MILLISECONDS_MAX } from "../../model/schema/fields.js";
import { type Problem, problem } from "../../model/index.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { FURTHER_NAME, nameRule } from "../../model/net/serverName.js";
import { accepting } from "../../model/text/textRule.js";
import type { Application } from "../application/application.js";
import type { RouteResponseFields, UpstreamOverrides } from "../application/members.js";
import {
  guardOptionProblems,
  guardWithoutLogIns,
  PASSWORD_GUARD,
  type PasswordGuardOption,
} from "../proxy/passwordGuard.js";
import { ACCESS, type AccessOption, accessOptionProblems } from "../proxy/access.js";
import { type ErrorPage, PAUSE_RESPONSE } from "../proxy/errorPage.js";
import { serverOptionProblems } from "../props/checks.js";
import { fieldsOf, kindsOf } from "../props/fieldTable.js";
import { APPLICATION, TLS_MATERIAL } from "../props/instances.js";
import {
  type PathOf,
  any,
  fields,
  flag,
  listOf,
  partial,
  type PropKind,
  type PropTable,
  record,
  recordOf,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import type { ClientCertificate } from "../proxy/clientCertificate.js";
import type { ResponseHeaders } from "../proxy/responseHeaders.js";
import type { TlsMaterial } from "../proxy/tlsMaterial.js";
import { UPSTREAM_PROPS, type UpstreamProps } from "../proxy/upstream.js";
import type { UpstreamChanges } from "./servers.js";

/** Options of the application's upstreams, virtual server and routes, on a host and in containers. */
export interface SiteOptions<Upstreams extends object = object, Routes extends object = object>
  extends
    Pick<
      InputOf<typeof virtualServerOptions>,
      "responseHeaders" | "errorPages" | "pauseResponse" | "windowsDrives" | "clientCertificate"
    >,
    Pick<InputOf<typeof route>, "requestBodyTimeoutMs"> {
  /**
   * Changes to addresses, timeouts and connection reuse, by the application's server. In containers, each server needs
   * a `url` that containers reach, such as `http://web.sync.svc:8000`.
   * @default - those of the application
   */
  readonly upstreams?: UpstreamOverrides<NoInfer<Upstreams>>;
  /** @remarks This applies to the proxied routes. */
  readonly requestBodyTimeoutMs?: number;
  /** @remarks This applies to the application's routes; `FILE_SYNC_RESPONSE_HEADERS` is a set that suits most. */
  readonly responseHeaders?: ResponseHeaders;
  /**
   * Response header fields that single routes set or remove, by route, such as `web`. These fields take priority over
   * `responseHeaders`.
   * @default - none
   */
  readonly routeResponseHeaders?: RouteResponseFields<NoInfer<Routes>>;
  /** @remarks These belong to the application's virtual server. */
  readonly errorPages?: readonly ErrorPage[];
  /** @default - the application's; without one, a line of text */
  readonly pauseResponse?: PauseResponse;
  /** @remarks This applies to the whole site, with the applications below its paths; the redirect from http stays open. */
  readonly clientCertificate?: ClientCertificate;
  /** @remarks Without this option, the definition of the application has it: the file-sync service, for example. */
  readonly windowsDrives?: boolean;
  /**
   * Whether `/` redirects to the application, over http and https, with 302, so that browsers do not remember the
   * redirect. It has no effect where the application is at `/`.
   * @default false - `/` of the host's names is a page over its own scheme, and 404 over http in TLS mode; `/` of a
   * further site is 404
   */
  readonly rootRedirect?: boolean;
}

/** Who may come in at a front end. */
export interface FrontEndAccess {
  /**
   * Who may come in, by the client's address, to every site and to the page for other names. ACME challenges and the
   * redirect to https stay open. `access` of a site or a route takes its place.
   * @default - everyone
   */
  readonly access?: AccessOption;
  /**
   * Guards log-ins against guessing, at every site whose application says what a log-in is. `passwordGuard` of a site takes
   * its place. `{}` for one with the defaults.
   * @default - none
   */
  readonly passwordGuard?: PasswordGuardOption;
}

/** Options of the front end's own application, whose site has the host's names, or in containers `serverNames`. */
export interface OwnSiteOptions<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends SiteOptions<Upstreams, Routes> {
  /**
   * The application: `Application.fileSync({ installDirectory: "/srv/sync" })`. In containers, the front end does not set
   * the public URL in the application: docs/applications.md describes the settings.
   * @default - none: each application has a site with names of its own, and requests for other names get 404
   */
  readonly application?: Application<Upstreams, Routes, Settings>;
  /**
   * HTML of the default server's page.
   * @default - a page that says no application is served at this address
   */
  readonly defaultPage?: string;
}

/** Server names, the application that they lead to, and what belongs to it. */
export interface SiteProps<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends SiteOptions<Upstreams, Routes> {
  /**
   * Names of the site, in lower case, the main name first. `*.example.org` is every name with one label before
   * `.example.org`; a name that another site has goes to this other site.
   */
  readonly serverNames: readonly string[];
  /** The application: `Application.vaultwarden({ directory: "/srv/vaultwarden" })`. */
  readonly application: Application<Upstreams, Routes, Settings>;
  /**
   * The certificate of the site.
   * @default - as the mode says: one certificate for each site by ACME or self-signed, so that a name that cannot be
   * certified holds up no other site; the first site has that of the listeners. Files of the mode are for all sites.
   */
  readonly tls?: TlsMaterial;
  /**
   * Who may come in, by the client's address; `"open"` for everyone. It takes the place of `access` of the front end, as a
   * whole; the redirect to https stays open.
   * @default - those whom the front end lets in
   */
  readonly access?: AccessOption;
  /**
   * Guards the log-ins of the application against guessing; `"off"` for none. It takes the place of `passwordGuard` of the
   * front end, as a whole.
   * @default - that of the front end
   */
  readonly passwordGuard?: PasswordGuardOption;
}

const UPSTREAM_CHANGES = fields<Partial<UpstreamProps>>(partial(UPSTREAM_PROPS));

/** @internal */
export const SITE_OPTIONS: PropTable<SiteOptions> = {
  // Beside an application, by the names of its parts and routes.
  upstreams: recordOf(UPSTREAM_CHANGES),
  routeResponseHeaders: record,
  ...kindsOf(route, "requestBodyTimeoutMs"),
  ...fieldsOf(virtualServerOptions, "responseHeaders", "clientCertificate"),
  pauseResponse: PAUSE_RESPONSE,
  errorPages: listOf(record),
  windowsDrives: flag,
  rootRedirect: flag,
};

const SITE_PROPS: PropTable<SiteProps> = {
  serverNames: required(listOf(text)),
  application: required(APPLICATION),
  tls: TLS_MATERIAL,
  access: ACCESS,
  passwordGuard: PASSWORD_GUARD,
  ...SITE_OPTIONS,
};

/** @internal The table with the names of the application's upstreams and routes. */
export function withMembers<P extends { readonly application?: unknown }>(
  props: P | null | undefined,
  table: PropTable<P>,
): PropTable<P> {
  const application: unknown = props?.application;
  if (!APPLICATION.accepts(application)) return table;
  const { parts, routes: routesAt } = (application as Application).definition;
  const routes = Object.entries(routesAt(ANY_PLACE));
  const hasRoot = routes.some(([, route]) => route?.path === "/");
  const named = (names: readonly string[], kind: PropKind): PropKind =>
    fields<object>(Object.fromEntries(names.map((name) => [name, kind])));
  return {
    ...table,
    upstreams: named(Object.keys(parts), UPSTREAM_CHANGES),
    routeResponseHeaders: named([...routes.map(([name]) => name), ...(hasRoot ? [] : ["page"])], any),
  };
}

/** @internal Refuses props from which no further site could be made. */
export function refuseSite(site: Construct, props: SiteProps, inContainer: boolean): void {
  const at = (name: string): string => `${site.node.path}.${name}`;
  refuseProps(site, props, withMembers(props, SITE_PROPS), (fit) => [
    ...siteProblems(fit, at, inContainer),
    ...accessOptionProblems(at("access"), fit.access),
    ...guardOptionProblems(at("passwordGuard"), fit.passwordGuard),
    ...guardWithoutLogIns(at("passwordGuard"), fit.passwordGuard, fit.application?.definition.clients.logIns),
    ...namesProblems(at("serverNames"), fit.serverNames ?? [], true),
    ...(fit.serverNames?.length === 0 ? [noName(at("serverNames"))] : []),
  ]);
}

/** @internal Problems of options that every site has. */
export function siteProblems(
  fit: Partial<Omit<SiteProps, "serverNames" | "tls">>,
  at: PathOf,
  inContainer: boolean,
): Problem[] {
  return [
    ...timeoutProblems(fit, at),
    ...serverOptionProblems(at("responseHeaders"), "responseHeaders", fit.responseHeaders),
    ...serverOptionProblems(at("errorPages"), "errorPages", fit.errorPages),
    ...serverOptionProblems(at("pauseResponse"), "pauseResponse", fit.pauseResponse),
    ...serverOptionProblems(at("clientCertificate"), "clientCertificate", fit.clientCertificate),
    ...routeFieldProblems(fit, at),
    ...(inContainer ? unreachableProblems(fit, at) : []),
  ];
}

function timeoutProblems({ requestBodyTimeoutMs: time }: SiteOptions, at: PathOf): Problem[] {
  if (time === undefined || !isKnown(time)) return [];
  if (Number.isInteger(time) && time >= 1 && time <= MILLISECONDS_MAX) return [];
  const more = { received: time, allowed: `1 to ${MILLISECONDS_MAX} milliseconds` };
  return [problem("config.out-of-range", at("requestBodyTimeoutMs"), "is out of range", more)];
}

function routeFieldProblems({ routeResponseHeaders = {} }: SiteOptions, at: PathOf): Problem[] {
  return Object.entries(routeResponseHeaders).flatMap(([name, given]) =>
    serverOptionProblems(at(`routeResponseHeaders.${name}`), "responseHeaders", given as ResponseHeaders),
  );
}

/** Applications listen on loopback by default, where no other container reaches them. */
function unreachableProblems(
  { application, upstreams = {} }: Partial<Pick<SiteProps, "application" | "upstreams">>,
  at: PathOf,
): Problem[] {
  if (application === undefined) return [];
  return Object.entries(application.definition.parts).flatMap(([name, part]) => {
    const { url, servers } = (upstreams as UpstreamChanges)[name] ?? {};
    if (url !== undefined || servers !== undefined || !isLoopbackUrl(part?.url)) return [];
    const fix = `Set the URL by which containers reach the server: \`upstreams: { ${name}: { url: "http://${name}:8000" } }\`.`;
    const more = { received: part?.url, allowed: "a URL that containers reach", fix };
    return [problem("config.missing-field", at(`upstreams.${name}`), "is missing", more)];
  });
}

const isLoopbackUrl = (url: string | undefined): boolean =>
  url !== undefined && isKnown(url) && /^https?:\/\/(?:127\.|localhost\b|\[::1\])/.test(url);

/** @internal */
export function namesProblems(path: string, names: readonly string[], main = false): Problem[] {
  return names.flatMap((name, i) => {
    const rule = main ? nameRule(i) : FURTHER_NAME;
    if (!isKnown(name) || accepting(rule)(name)) return [];
    const more = { received: name, allowed: rule.allowed };
    return [problem("config.bad-server-name", `${path}[${i}]`, "is not a server name", more)];
  });
}

/** @internal */
export const noName = (path: string): Problem =>
  problem("config.missing-field", path, "contains no name", {
    received: [],
    allowed: "at least one name, the main name first",
    fix: 'Add the name that clients use: `serverNames: ["files.example.org"]`.',
  });
