import { Construct } from "constructs";
import { ANY_PLACE, APPLICATION_PATH, ofSite } from "../../applications/index.js";
import { type Problem, problem } from "../../model/index.js";
import { accepting } from "../../model/text/textRule.js";
import type { Application } from "../application/application.js";
import { freeId } from "../props/constructIds.js";
import { APPLICATION } from "../props/instances.js";
import { type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";
import { ReverseProxy } from "../proxy/reverseProxy.js";
import type { VirtualServer } from "../proxy/virtualServer.js";
import {
  type PlacedApplication,
  placeApplication,
  type PlacedScope,
  refuseSettings,
} from "./placedApplication.js";
import { addPathParts, type RouteFields, type UpstreamChanges } from "./servers.js";
import { SITE_OPTIONS, type SiteOptions, siteProblems, withMembers } from "./siteProps.js";

/** A path of a site, and the application below it. */
export interface PathApplicationProps<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends Pick<
  SiteOptions<Upstreams, Routes>,
  "upstreams" | "routeResponseHeaders" | "requestBodyTimeoutMs"
> {
  /** The path at which the application begins: `/wiki`, without a slash at the end. Known at synthesis. */
  readonly path: string;
  /**
   * The application: `server`, `staticFiles`, `redirect`, or `custom` with `belowPath: true`. A server gets the whole path,
   * unless `strip` or `rewrite` of its options says otherwise. Other applications need a site of their own.
   */
  readonly application: Application<Upstreams, Routes, Settings>;
}

/** @internal The site that has the path. */
export interface PathScope extends Construct {
  readonly frontEnd: PlacedScope;
  /** Undefined for the site with the host's names. */
  readonly siteName?: string;
  readonly serverNames: readonly [string, ...string[]];
  readonly virtualServer: VirtualServer;
  readonly redirect?: VirtualServer;
}

const { upstreams, routeResponseHeaders, requestBodyTimeoutMs } = SITE_OPTIONS;

const PATH_APPLICATION_PROPS: PropTable<PathApplicationProps> = {
  path: required(text),
  application: required(APPLICATION),
  ...{ upstreams, routeResponseHeaders, requestBodyTimeoutMs },
};

/** An application below a path of a site. */
export class PathApplication<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends Construct {
  /** The path at which the application begins. */
  readonly path: string;
  /** The path as a URL, with the main name of the site and a slash at the end. */
  readonly url: string;
  /** The application's upstreams. */
  readonly upstreams: Upstreams;
  /** The application's routes, which the virtual server of the site has. */
  readonly routes: Routes;
  private readonly ownSettings?: Settings;
  /** @internal */
  readonly placed: PlacedApplication;

  /** @internal Made by a site. */
  constructor(site: PathScope, id: string, props: PathApplicationProps<Upstreams, Routes, Settings>) {
    super(site, freeId(site, id));
    const { frontEnd, siteName, serverNames, virtualServer, redirect } = site;
    const { mode, proxy } = frontEnd;
    const at = (prop: string): string => `${this.node.path}.${prop}`;
    refuseProps(this, props, withMembers(props, PATH_APPLICATION_PROPS), (fit) => [
      ...siteProblems(fit, at, !(proxy instanceof ReverseProxy)),
      ...pathProblems(fit, at),
    ]);
    const own = props.application.forSite();
    const name = siteName === undefined ? id : `${siteName}-${id}`;
    const application = ofSite(name, own.definition);
    const changes = props.upstreams as UpstreamChanges | undefined;
    const made = addPathParts(
      proxy,
      { application: virtualServer, redirect },
      {
        ...{ id, name, application, mode, serverNames, upstreams: changes, path: props.path },
        routeResponseHeaders: props.routeResponseHeaders as RouteFields | undefined,
        requestBodyTimeoutMs: props.requestBodyTimeoutMs,
      },
    );
    this.path = props.path;
    this.url = made.url;
    this.upstreams = made.upstreams as Upstreams;
    this.routes = made.routes as Routes;
    const input = {
      own,
      application,
      upstreams: changes,
      serverNames,
      made,
      site: siteName,
      directory: name,
    };
    const { settings, placed } = placeApplication(this, frontEnd, input);
    this.ownSettings = settings;
    this.placed = placed;
  }

  /** Texts for settings that depend on the path or the names of the site. Throws in containers. */
  get settings(): Settings {
    return this.ownSettings ?? refuseSettings(this);
  }
}

function pathProblems(
  { path, application }: Partial<PathApplicationProps>,
  at: (prop: string) => string,
): Problem[] {
  if (path !== undefined && !isKnown(path)) {
    const more = { allowed: APPLICATION_PATH.allowed, fix: "Use a literal: routes are made from the path." };
    return [problem("config.bad-route-path", at("path"), "is not known at synthesis", more)];
  }
  if (path !== undefined && !accepting(APPLICATION_PATH)(path)) {
    const bare = path.replace(/\/+$/, "");
    const fix = bare !== path && accepting(APPLICATION_PATH)(bare) ? { fix: `Use \`${bare}\`.` } : {};
    const more = { received: path, allowed: APPLICATION_PATH.allowed, ...fix };
    return [problem("config.bad-route-path", at("path"), "is not a path below `/`", more)];
  }
  if (application === undefined || path === undefined) return [];
  const { name, title, belowPath, routes } = application.definition;
  if (belowPath !== true) {
    const fix = "Add a site with a name of its own: `addSite` of the front end.";
    const allowed = "`server`, `staticFiles`, `redirect`, or `custom` with `belowPath: true`";
    const more = { received: name, allowed, fix };
    return [problem("config.not-one-of", at("application"), `${title} cannot be below a path`, more)];
  }
  return Object.entries(routes({ ...ANY_PLACE, path })).flatMap(([route, one]) => {
    if (one === undefined || one.path === path || one.path.startsWith(`${path}/`)) return [];
    const more = {
      received: one.path,
      allowed: `${path}, and paths below`,
      fix: "Make the path of the route from the place: `routes: ({ path }) => …`.",
    };
    const message = "is not below the path of the application";
    return [problem("config.bad-route-path", at(`application.routes.${route}.path`), message, more)];
  });
}
