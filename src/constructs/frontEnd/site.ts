import { Construct } from "constructs";
import { ofSite } from "../../applications/index.js";
import { OWN_SITE, type Problem, problem } from "../../model/index.js";
import { Action } from "../action.js";
import { freeId } from "../constructIds.js";
import type { Mode } from "../mode.js";
import { refuse } from "../props/checks.js";
import { isKnown } from "../props/tokens.js";
import { ReverseProxy } from "../reverseProxy.js";
import type { ReverseProxyBase } from "../reverseProxyBase.js";
import type { Route, RouteProps } from "../route.js";
import type { TlsMaterial } from "../tlsMaterial.js";
import type { Upstream } from "../upstream.js";
import type { VirtualServer } from "../virtualServer.js";
import type { ActivatedApplication } from "./activation.js";
import type { FrontEndListeners } from "./parts.js";
import { addSiteParts, type RouteFields, type UpstreamChanges } from "./servers.js";
import { type SiteProps, refuseSite } from "./siteProps.js";

/** @internal What a site is added to: a front end on a host, or in containers. */
export interface SiteScope extends Construct {
  readonly mode: Mode;
  readonly proxy: ReverseProxyBase;
  readonly listeners: FrontEndListeners;
  readonly sites: readonly Site[];
}

/** Server names, and the application that they lead to. */
export class Site<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends Construct {
  /** Names of the site, the main one first. */
  readonly serverNames: readonly [string, ...string[]];
  /** Where users find the application. */
  readonly url: string;
  /** The application's upstreams. */
  readonly upstreams: Upstreams;
  /** Routes of the application's virtual server. */
  readonly routes: Routes;
  /** The application's virtual server: on the HTTP port in plain mode, on the HTTPS port in TLS mode. */
  readonly virtualServer: VirtualServer;
  /** Redirects from HTTP to HTTPS; undefined in plain mode, and with `httpPort: false`. */
  readonly redirect?: VirtualServer;
  private readonly ownSettings?: Settings;
  /** @internal For the activation of the front end. */
  readonly activated: ActivatedApplication;
  /** @internal Where the default server's page leads; undefined if nowhere. */
  readonly linked?: string;
  /** @internal Upstreams whose URL is the application's default. */
  readonly defaultUrls: readonly Upstream[];

  /**
   * @internal Made by a front end.
   * @param page what responds to `/` of the site with the host's names; a further site has none
   */
  constructor(scope: SiteScope, id: string, props: SiteProps<Upstreams, Routes, Settings>, page?: Action) {
    super(scope, freeId(scope, id));
    const { mode, proxy, listeners, sites } = scope;
    const onHost = proxy instanceof ReverseProxy ? proxy : undefined;
    const isFurther = page === undefined;
    if (isFurther) refuseSite(this, props, onHost === undefined);
    this.serverNames = props.serverNames as [string, ...string[]];
    const { serverNames } = this;
    const { definition, secretPlaces = [], hasGivenUrls, addSettings } = props.application.forSite();
    const application = isFurther ? ofSite(id, definition) : definition;
    const upstreams = props.upstreams as UpstreamChanges | undefined;
    if (isFurther) refuseTaken(this, sites, serverNames);
    const made = addSiteParts(proxy, {
      ...props,
      ...{ application, listeners, mode, serverNames, upstreams },
      name: isFurther ? id : undefined,
      routeResponseHeaders: props.routeResponseHeaders as RouteFields | undefined,
      tls: props.tls ?? (isFurther ? ownCertificate(scope, serverNames) : undefined),
      page: page ?? Action.respond(404),
      logDirectory: onHost?.paths.logDirectory,
      logs: onHost?.mainLogs,
    });
    this.url = made.url;
    this.upstreams = made.upstreams as Upstreams;
    this.routes = made.routes as Routes;
    this.virtualServer = made.application;
    this.redirect = made.redirect;
    this.linked = made.linked;
    const isGiven = (name: string): boolean =>
      hasGivenUrls === true ||
      upstreams?.[name]?.url !== undefined ||
      upstreams?.[name]?.servers !== undefined;
    this.defaultUrls = Object.entries(made.upstreams).flatMap(([name, upstream]) =>
      isGiven(name) ? [] : [upstream],
    );
    const { place } = made;
    if (onHost !== undefined) {
      const { settingsDirectory, unitDirectory } = onHost.paths;
      this.ownSettings = addSettings({
        ...{ scope: this, host: onHost.host, mode, serverNames, place, unitDirectory },
        upstreams: made.upstreams,
        directory: isFurther ? `${settingsDirectory}/${id}` : settingsDirectory,
      });
    }
    if (isFurther) sites.find(({ activated: { site } }) => site === undefined)?.nameServers();
    this.activated = {
      site: isFurther ? id : undefined,
      application,
      settings: application.settings?.(place),
    };
    onHost?.privateFiles.push(...secretPlaces, ...(this.activated.settings ?? []).map(({ path }) => path));
    refuseShared(this, sites);
  }

  /** Settings of the application that depend on its URL, as texts on the host. Throws in containers. */
  get settings(): Settings {
    if (this.ownSettings === undefined) {
      const fix = "Set the public URL in the application: docs/applications.md describes its settings.";
      const more = { allowed: "a site of a `FrontEnd`", fix };
      const path = `${this.node.path}.settings`;
      refuse([problem("config.unknown-reference", path, "does not exist in containers", more)]);
    }
    return this.ownSettings!;
  }

  /** @internal Beside others, the servers of the site with the host's names have a site, too. */
  private nameServers(): void {
    for (const server of [this.virtualServer, this.redirect])
      if (server !== undefined) server.site ??= OWN_SITE;
  }

  /** Adds a route to the application's virtual server. */
  addRoute(id: string, props: RouteProps): Route {
    return this.virtualServer.addRoute(id, props);
  }
}

/** The first site has the certificate of the listeners, and so do all where the mode names files. */
function ownCertificate(
  { sites, listeners }: SiteScope,
  serverNames: readonly string[],
): TlsMaterial | undefined {
  return sites.length === 0 ? undefined : listeners.https?.tls?.material.another(serverNames);
}

/** Names that another site has. */
function refuseTaken(site: Construct, sites: readonly Site[], names: readonly string[]): void {
  refuse(
    names.flatMap((received, i) => {
      const other = sites.find(({ serverNames }) => serverNames.includes(received));
      const isTwice = names.indexOf(received) < i;
      if (!isKnown(received) || (other === undefined && !isTwice)) return [];
      const message = other === undefined ? "is repeated" : `is already a name of ${other.node.path}`;
      const more = {
        received,
        allowed: "server names that no other site has, each once",
        fix: "Use another name, or remove one of the two.",
      };
      return [problem("config.duplicate-server-name", `${site.node.path}.serverNames[${i}]`, message, more)];
    }),
  );
}

/** What only one application on a host can have: the address of a server, a settings file, a unit. */
function refuseShared(site: Site, sites: readonly Site[]): void {
  refuse(
    sites.flatMap((other) => [
      ...sameAddress(site, other),
      ...sameFile(site, other),
      ...sameUnit(site, other),
    ]),
  );
}

/** Two URLs that somebody chose may be the same; one that an application has by default is another server's by accident. */
function sameAddress(site: Site, other: Site): Problem[] {
  const upstreamsOf = ({ upstreams }: Site): [string, Upstream][] => Object.entries(upstreams);
  return upstreamsOf(site).flatMap(([name, upstream]) => {
    const [rivalName, rival] =
      upstreamsOf(other).find(([, { url }]) => isKnown(url) && url === upstream.url) ?? [];
    if (rival === undefined) return [];
    if (!site.defaultUrls.includes(upstream) && !other.defaultUrls.includes(rival)) return [];
    const more = {
      received: upstream.url,
      allowed: "an address that no other site's application listens at",
      fix: `Give one of the two applications another port, and set it: \`upstreams: { ${name}: { url: "http://127.0.0.1:PORT" } }\`.`,
    };
    const message = `is also the address of \`${rivalName}\` of ${other.node.path}`;
    return [problem("config.duplicate-name", `${site.node.path}.upstreams.${name}.url`, message, more)];
  });
}

const settingsOf = ({ activated }: Site): readonly string[] =>
  (activated.settings ?? []).map(({ path }) => path);
const unitsOf = ({ activated }: Site): readonly string[] =>
  (activated.application.daemons ?? []).map(({ unit }) => unit);

const sameFile = (site: Site, other: Site): Problem[] =>
  same(
    site,
    other,
    settingsOf,
    "edits a settings file that %s edits as well",
    "Give each application its own directory.",
  );
const sameUnit = (site: Site, other: Site): Problem[] =>
  same(
    site,
    other,
    unitsOf,
    "restarts a unit that %s restarts as well",
    "Give each application its own units.",
  );

function same(
  site: Site,
  other: Site,
  of: (one: Site) => readonly string[],
  message: string,
  fix: string,
): Problem[] {
  return of(site)
    .filter((one) => isKnown(one) && of(other).includes(one))
    .map((received) =>
      problem(
        "config.duplicate-name",
        `${site.node.path}.application`,
        message.replace("%s", other.node.path),
        {
          received,
          allowed: "what no other site has",
          fix,
        },
      ),
    );
}

/** @internal Virtual servers with a name of the site, which would get its requests. */
export function takenNameProblems(
  { virtualServer: application, serverNames }: Site,
  proxy: ReverseProxyBase,
): Problem[] {
  const rivals = proxy.virtualServers.filter(
    (server) =>
      server !== application &&
      server.listeners.some(({ name }) => application.listeners.some((own) => own.name === name)),
  );
  return rivals.flatMap((server) =>
    server.serverNames.flatMap((name, i) => {
      if (!isKnown(name) || !serverNames.includes(name)) return [];
      const message = `is a name of the application: requests for it would no longer reach ${application.node.path}`;
      const fix = "Add the routes to the application's virtual server, or use another server name.";
      const more = { received: name, allowed: "server names that the application does not have", fix };
      return [
        problem("config.duplicate-server-name", `${server.node.path}.serverNames[${i}]`, message, more),
      ];
    }),
  );
}
