import type { Upstream, UpstreamProps } from "../upstream.js";
import type { ResponseHeaders } from "../responseHeaders.js";
import type { Route } from "../route.js";

/** What a front end of the file-sync service has, by name. */

/** The application's daemons. */
export interface FileSyncUpstreams {
  /** Web application, port 8000. */
  readonly web: Upstream;
  /** WebDAV daemon, port 8080. */
  readonly webdav: Upstream;
  /** File server, port 8082. */
  readonly fileServer: Upstream;
}

/** Routes of the application's virtual server. */
export interface FileSyncRoutes {
  /** To the web application: everything below the path prefix. */
  readonly web: Route;
  /** To the WebDAV daemon. */
  readonly webdav: Route;
  /** To the file server, for upload and download; its route's path is cut off. */
  readonly fileServer: Route;
  /** Files of the media directory. */
  readonly media: Route;
  /** Avatars, where the application keeps them outside its media directory. */
  readonly avatars?: Route;
  /**
   * `/` and nothing below it: the default server's page, so that `/` is answered with 200 for every name; or a redirect
   * to the application, by `rootRedirect`.
   */
  readonly page: Route;
}

/** Changes to the upstreams of an application, by name. */
export type UpstreamOverrides<Upstreams> = { readonly [name in keyof Upstreams]?: Partial<UpstreamProps> };

/** Fields of the responses of an application's routes, by route. */
export type RouteResponseFields<Routes> = { readonly [name in keyof Routes]?: ResponseHeaders };
