import {
  type ApplicationDefinition,
  type ComposeOptions,
  gitea,
  type GiteaOptions,
  immich,
  infiniteScale,
  nextcloud,
  type NextcloudOptions,
  type NextcloudPart,
  type NextcloudRoute,
  openCloud,
  ordinaryServer,
  radicale,
  redirected,
  seafile,
  SEAFILE_VERSIONS,
  type SeafileComponents,
  type SeafileOptions,
  type SeafilePart,
  type SeafileRoute,
  servedFiles,
  vaultwarden,
} from "../../applications/index.js";
import type { Construct } from "constructs";
import { FILE_SYNC_OPTIONS, type FileSyncOptions, fileSyncProblems, fileSyncSite } from "./fileSync.js";
import type { FileSyncRoutes, FileSyncUpstreams } from "./members.js";
import type { ApplicationSettings } from "./settings.js";
import { SettingsTexts } from "./settingsTexts.js";
import type { SiteApplication } from "./siteApplication.js";
import { type Problem, problem } from "../../model/index.js";
import { isFilePath } from "../../model/text/textRule.js";
import { refuse, upstreamProblems } from "../props/checks.js";
import { APPLICATION } from "../props/instances.js";
import {
  choice,
  either,
  fields,
  flag,
  type PropTable,
  refuseArgument,
  refuseNew,
  refuseOptions,
  required,
  text,
} from "../props/propTable.js";
import { type CustomApplication, CUSTOM_APPLICATION, referenceProblems } from "./customApplication.js";
import { isKnown } from "../props/tokens.js";
import type { Route } from "../proxy/route.js";
import { type Upstream, UPSTREAM_PROPS, type UpstreamProps } from "../proxy/upstream.js";
import {
  PROXY_OPTIONS,
  type ProxyOptions,
  REDIRECT_OPTIONS,
  type RedirectOptions,
  STATIC_FILES_OPTIONS,
  type StaticFilesOptions,
} from "../proxy/action.js";

/** Members by name: required members, and members that depend on options. */
export type ApplicationMembers<T, Always extends string, Maybe extends string = never> = {
  readonly [name in Always]: T;
} & {
  readonly [name in Maybe]?: T;
};

/** Upstreams of a front end of Seafile. */
export type SeafileUpstreams = ApplicationMembers<Upstream, "web", Exclude<SeafilePart, "web">>;
/** Routes of a front end of Seafile. */
export type SeafileRoutes = ApplicationMembers<Route, "web", Exclude<SeafileRoute, "web"> | "page">;
/** Upstreams of a front end of Nextcloud. */
export type NextcloudUpstreams = ApplicationMembers<Upstream, "web", Exclude<NextcloudPart, "web">>;
/** Routes of a front end of Nextcloud. */
export type NextcloudRoutes = ApplicationMembers<
  Route,
  "web" | "carddav" | "caldav",
  Exclude<NextcloudRoute, "web" | "carddav" | "caldav">
>;

/** An application of one server at `/`. */
export type OneServerApplication = Application<ApplicationMembers<Upstream, "web">, OneServerRoutes>;
/** The routes of such an application. */
export type OneServerRoutes = ApplicationMembers<Route, "web">;

/** Vaultwarden: its administration page has a route of its own, which only local networks may use. */
export type VaultwardenApplication = Application<
  ApplicationMembers<Upstream, "web">,
  ApplicationMembers<Route, "web" | "admin">
>;

/** The file-sync service. */
export type FileSyncApplication = Application<FileSyncUpstreams, FileSyncRoutes, ApplicationSettings>;

/** Files of a directory at `/`. */
export type StaticFilesApplication = Application<object, ApplicationMembers<Route, "files">>;
/** A redirect of everything. */
export type RedirectApplication = Application<object, ApplicationMembers<Route, "redirect">>;

/**
 * An application behind a front end: upstreams, routes, settings and expected responses. Each static method creates
 * one application. docs/applications.md has a page for each application.
 */
export class Application<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = SettingsTexts,
> {
  declare protected readonly upstreams: Upstreams;
  declare protected readonly routes: Routes;

  private constructor(
    /** @internal */
    readonly definition: ApplicationDefinition,
    private readonly made?: () => Partial<SiteApplication<Settings>>,
  ) {
    refuseNew("Application", APPLICATION, definition === undefined);
  }

  /** @internal */
  forSite(): SiteApplication<Settings> {
    const { definition } = this;
    return {
      definition,
      addSettings: ({ scope, ...site }) =>
        new SettingsTexts(scope, "Settings", { ...site, application: definition }) as Construct as Settings,
      ...this.made?.(),
    };
  }

  /** The service of docs/service.md: a web application, a file server and a WebDAV daemon. */
  static fileSync(options: FileSyncOptions): FileSyncApplication {
    refuseOptions("Application.fileSync", options, FILE_SYNC_OPTIONS, fileSyncProblems);
    return new Application(fileSyncSite(options).definition, () =>
      fileSyncSite(options),
    ) as FileSyncApplication;
  }

  /** Seafile 11 to 14, on a host or in containers. */
  static seafile(options: SeafileOptions): Application<SeafileUpstreams, SeafileRoutes> {
    refuseOptions("Application.seafile", options, SEAFILE, seafileProblems);
    return new Application(seafile(options));
  }

  /** Nextcloud: All-in-One, or any other installation that serves HTTP. */
  static nextcloud(options: NextcloudOptions = {}): Application<NextcloudUpstreams, NextcloudRoutes> {
    refuseOptions("Application.nextcloud", options, { push: flag, office: OFFICE });
    return new Application(nextcloud(options));
  }

  /** Immich. */
  static immich(options: Readonly<Record<string, never>> = {}): OneServerApplication {
    refuseOptions("Application.immich", options, {});
    return new Application(immich());
  }

  /** ownCloud Infinite Scale, with `PROXY_TLS=false`. */
  static infiniteScale(options: ComposeOptions): OneServerApplication {
    return Application.composed("infiniteScale", infiniteScale, options);
  }

  /** OpenCloud, with `PROXY_TLS=false`. */
  static openCloud(options: ComposeOptions): OneServerApplication {
    return Application.composed("openCloud", openCloud, options);
  }

  /** Vaultwarden 1.29 or later. */
  static vaultwarden(options: ComposeOptions): VaultwardenApplication {
    return Application.composed("vaultwarden", vaultwarden, options);
  }

  /** Radicale 3.6.1 or later: calendars and address books. */
  static radicale(options: Readonly<Record<string, never>> = {}): OneServerApplication {
    refuseOptions("Application.radicale", options, {});
    return new Application(radicale());
  }

  /** Gitea 1.17 or later. */
  static gitea(options: GiteaOptions = {}): OneServerApplication {
    refuseOptions("Application.gitea", options, GITEA, giteaProblems);
    return new Application(gitea(options));
  }

  /**
   * An ordinary server, which gets all requests of the site's names with the client's `Host`, `X-Real-IP`, `X-Forwarded-For`
   * and `X-Forwarded-Proto`.
   *
   * @param upstream a URL, such as `http://127.0.0.1:3000`, or props of an `Upstream`
   * @param options how requests are passed on, as of `Action.proxy`
   */
  static server(upstream: string | UpstreamProps, options: ProxyOptions = {}): OneServerApplication {
    const given = { upstream: required(either(text, fields(UPSTREAM_PROPS))) };
    refuseArgument("Application.server", { upstream }, given, options, PROXY_OPTIONS);
    const { name: _, ...props } = typeof upstream === "string" ? { url: upstream, name: "" } : upstream;
    refuse(upstreamProblems("Application.server.upstream", { ...props, name: "web" }));
    return new Application(ordinaryServer(props, options), () => ({ hasGivenUrls: true }));
  }

  /**
   * The files of a directory, as `Action.staticFiles` sends them.
   *
   * @param directory absolute path on the host
   */
  static staticFiles(directory: string, options: StaticFilesOptions = {}): StaticFilesApplication {
    refuseArgument(
      "Application.staticFiles",
      { directory },
      { directory: required(text) },
      options,
      STATIC_FILES_OPTIONS,
    );
    return new Application(servedFiles(directory, options));
  }

  /** Redirects all requests, as `Action.redirect` does. */
  static redirect(options: RedirectOptions): RedirectApplication {
    refuseOptions("Application.redirect", options, REDIRECT_OPTIONS);
    return new Application(redirected(options));
  }

  private static composed<Routes extends object = OneServerRoutes>(
    name: string,
    define: (options: ComposeOptions) => ApplicationDefinition,
    options: ComposeOptions,
  ): Application<ApplicationMembers<Upstream, "web">, Routes> {
    const method = `Application.${name}`;
    refuseOptions(method, options, COMPOSE, (fit) => directoryProblems(method, fit));
    return new Application(define(options));
  }

  /**
   * An application of your own, defined like those of this package. The front end checks the routes, settings and
   * expected responses.
   */
  static custom<Part extends string, RouteName extends string>(
    definition: CustomApplication<Part, RouteName>,
  ): Application<ApplicationMembers<Upstream, Part>, ApplicationMembers<Route, RouteName, "page">> {
    const given = definition as CustomApplication;
    refuseOptions("Application.custom", given, CUSTOM_APPLICATION, referenceProblems);
    return new Application({ clients: NO_CLIENTS, ...definition }, () => ({ hasGivenUrls: true }));
  }
}

const NO_CLIENTS = { withCredentials: [], logIns: [] };

const OFFICE = choice("collabora", "onlyOffice");

const SEAFILE: PropTable<SeafileOptions> = {
  version: required(choice(...SEAFILE_VERSIONS)),
  layout: choice("host", "containers"),
  directory: text,
  prefix: text,
  components: fields<SeafileComponents>({
    webdav: flag,
    notification: flag,
    seadoc: flag,
    thumbnail: flag,
    office: OFFICE,
  }),
  fixMedia: flag,
};

const COMPOSE: PropTable<ComposeOptions> = { directory: required(text) };

const GITEA: PropTable<GiteaOptions> = { settingsFile: text };

const giteaProblems = ({ settingsFile }: Partial<GiteaOptions>): Problem[] =>
  pathProblems("Application.gitea.settingsFile", settingsFile);

const directoryProblems = (method: string, { directory }: Partial<ComposeOptions>): Problem[] =>
  pathProblems(`${method}.directory`, directory);

function pathProblems(at: string, path: string | undefined): Problem[] {
  if (path === undefined || (isKnown(path) && isFilePath(path))) return [];
  const allowed = "an absolute path";
  if (isKnown(path)) {
    const more = { received: path, allowed };
    return [problem("config.bad-file-path", at, "is not an absolute path", more)];
  }
  const fix = "Use a literal: settings files and routes are made from the path.";
  return [problem("config.bad-file-path", at, "is not known at synthesis", { allowed, fix })];
}

function seafileProblems(fit: Partial<SeafileOptions>): Problem[] {
  const { version, layout, prefix, components: { thumbnail } = {} } = fit;
  const problems = directoryProblems("Application.seafile", fit);
  if (prefix !== undefined && !(version === "11" && layout !== "containers")) {
    const fix = "Remove `prefix`: the web interface is at `/`.";
    const allowed = '`prefix` with `version: "11"`, and not with `layout: "containers"`';
    const message = "is not supported by this version and layout";
    const more = { received: prefix, allowed, fix };
    problems.push(problem("config.bad-route-path", "Application.seafile.prefix", message, more));
  } else if (prefix !== undefined && !/^\/[A-Za-z0-9][A-Za-z0-9_-]*$/.test(prefix)) {
    const allowed = "`/` and one segment of letters, digits, `-` and `_`, such as `/seafile`";
    const message = "is not a path of one segment";
    const more = { received: prefix, allowed };
    problems.push(problem("config.bad-route-path", "Application.seafile.prefix", message, more));
  }
  if (thumbnail === true && (version === "11" || version === "12")) {
    const fix = "Remove `thumbnail`: in this version the web interface makes the thumbnails.";
    const more = { received: true, allowed: '`thumbnail` with `version: "13"` or later', fix };
    const path = "Application.seafile.components.thumbnail";
    problems.push(problem("config.unknown-field", path, "is not available in this version", more));
  }
  return problems;
}
