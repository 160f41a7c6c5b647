import type { Upstream, UpstreamProps } from "../proxy/upstream.js";
import type { ResponseHeaders } from "../proxy/responseHeaders.js";
import type { Route } from "../proxy/route.js";

/** Upstreams and routes of applications, by name. */

/** Upstreams of the application's daemons. */
export interface FileSyncUpstreams {
  /** Web application, port 8000. */
  readonly web: Upstream;
  /** WebDAV daemon, port 8080. */
  readonly webdav: Upstream;
  /** File server, port 8082. */
  readonly fileServer: Upstream;
}

/** Routes of the file-sync service. */
export interface FileSyncRoutes {
  /** Route to the web application: all paths below the prefix. */
  readonly web: Route;
  /** Route to the WebDAV daemon. */
  readonly webdav: Route;
  /** Route to the file server, for uploads and downloads; the route's path is removed. */
  readonly fileServer: Route;
  /** Files of the media directory. */
  readonly media: Route;
  /** Avatars; undefined without `avatarDirectory`. */
  readonly avatars?: Route;
  /**
   * The exact path `/`: the default server's page with 200 for every name, or a redirect to the application with
   * `rootRedirect`.
   */
  readonly page: Route;
}

/** Changes to the upstreams of an application, by name. */
export type UpstreamOverrides<Upstreams> = { readonly [name in keyof Upstreams]?: Partial<UpstreamProps> };

/** Response header fields of an application's routes, by route. */
export type RouteResponseFields<Routes> = { readonly [name in keyof Routes]?: ResponseHeaders };
