import { Construct } from "constructs";
import { ofSite } from "../../applications/index.js";
import { OWN_SITE, type Problem, problem } from "../../model/index.js";
import { Action } from "../proxy/action.js";
import { freeId } from "../props/constructIds.js";
import type { Mode } from "../proxy/mode.js";
import { refuse } from "../props/checks.js";
import { isKnown } from "../props/tokens.js";
import { ReverseProxy } from "../proxy/reverseProxy.js";
import type { ReverseProxyBase } from "../proxy/reverseProxyBase.js";
import type { Route, RouteProps } from "../proxy/route.js";
import type { TlsMaterial } from "../proxy/tlsMaterial.js";
import type { VirtualServer } from "../proxy/virtualServer.js";
import type { FrontEndListeners } from "./parts.js";
import { PathApplication, type PathApplicationProps } from "./pathApplication.js";
import { type PlacedApplication, placeApplication, refuseSettings } from "./placedApplication.js";
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
  /** The URL at which users find the application. */
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
  /** @internal The front end that has the site. */
  readonly frontEnd: SiteScope;
  /** @internal Name of a further site; undefined for the site with the host's names. */
  readonly siteName?: string;
  /** @internal The site's application, and those below paths of the site. */
  readonly placed: PlacedApplication[];
  /** @internal The target of the link on the default server's page; undefined if there is no link. */
  readonly linked?: string;

  /**
   * @internal Made by a front end.
   * @param page what responds to `/` of the site with the host's names; a further site has none
   */
  constructor(scope: SiteScope, id: string, props: SiteProps<Upstreams, Routes, Settings>, page?: Action) {
    super(scope, freeId(scope, id));
    const { mode, proxy, listeners, sites } = scope;
    const isFurther = page === undefined;
    this.frontEnd = scope;
    this.siteName = isFurther ? id : undefined;
    if (isFurther) refuseSite(this, props, !(proxy instanceof ReverseProxy));
    this.serverNames = props.serverNames as [string, ...string[]];
    const { serverNames } = this;
    const own = props.application.forSite();
    const { definition } = own;
    const application = isFurther ? ofSite(id, definition) : definition;
    const upstreams = props.upstreams as UpstreamChanges | undefined;
    if (isFurther) refuseTaken(this, sites, serverNames);
    const made = addSiteParts(proxy, {
      ...props,
      ...{ application, listeners, mode, serverNames, upstreams },
      name: this.siteName,
      routeResponseHeaders: props.routeResponseHeaders as RouteFields | undefined,
      tls: props.tls ?? (isFurther ? ownCertificate(scope, serverNames) : undefined),
      page: page ?? Action.respond(404),
    });
    this.url = made.url;
    this.upstreams = made.upstreams as Upstreams;
    this.routes = made.routes as Routes;
    this.virtualServer = made.application;
    if (props.access !== undefined)
      this.virtualServer.access = { name: this.virtualServer.name, access: props.access };
    if (props.passwordGuard !== undefined)
      this.virtualServer.guard = { name: this.virtualServer.name, guard: props.passwordGuard };
    this.redirect = made.redirect;
    if (isFurther) this.virtualServer.namedBy = this.node.path;
    this.linked = made.linked;
    const { settings, placed } = placeApplication(this, scope, {
      ...{ own, application, upstreams, serverNames, made },
      ...{ site: this.siteName, directory: this.siteName },
    });
    this.ownSettings = settings;
    this.placed = [placed];
    if (isFurther) sites.find(({ siteName }) => siteName === undefined)?.nameServers();
  }

  /** Settings of the application that depend on its URL, as texts on the host. Throws in containers. */
  get settings(): Settings {
    return this.ownSettings ?? refuseSettings(this);
  }

  /**
   * Adds an application below a path of the site: one that can be told of the path, or needs no path. Its upstreams, log
   * files, expected responses, settings files and rows of `portico doctor` have the id in their names, behind that of a
   * further site.
   *
   * @param id name of the application; letters, digits, `.`, `_` and `-`
   */
  addApplication<U extends object, R extends object, S extends Construct>(
    id: string,
    props: PathApplicationProps<U, R, S>,
  ): PathApplication<U, R, S> {
    const made = new PathApplication(this, id, props);
    this.placed.push(made.placed);
    return made;
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
