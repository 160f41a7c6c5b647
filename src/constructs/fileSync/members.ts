import type { Upstream, UpstreamProps } from "../upstream.js";
import type { ResponseHeaders } from "../responseHeaders.js";
import type { FrontEndServers } from "../frontEndParts.js";
import type { Listener } from "../listener.js";
import type { Route } from "../route.js";
import type { VirtualServer } from "../virtualServer.js";

/** The members of a front end of the file-sync service, by name. */

/** Upstreams of the application's daemons. */
export interface FileSyncUpstreams {
  /** Web application, port 8000. */
  readonly web: Upstream;
  /** WebDAV daemon, port 8080. */
  readonly webdav: Upstream;
  /** File server, port 8082. */
  readonly fileServer: Upstream;
}

/** The application's part of a proxy, on a host and in containers. */
export interface FileSyncSite<Upstreams, Routes> extends FrontEndServers {
  /** The application's upstreams. */
  readonly upstreams: Upstreams;
  /** Default server on the HTTP port, for names that are not the application's. Throws with `httpPort: false`. */
  readonly defaultServer: VirtualServer;
  /** Routes of the application's virtual server. */
  readonly routes: Routes;
  /** The HTTPS listener on IPv4, equal to `listeners.https`. Throws in plain mode. */
  readonly httpsListener: Listener;
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
