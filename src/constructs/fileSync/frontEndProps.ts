import type { InputOf } from "../../model/inferred.js";
import type { proxyOptions } from "../../model/actions/proxy.js";
import type { route, virtualServerOptions } from "../../model/config/config.js";
import type { FileSyncPathProps } from "./paths.js";
import type { FileSyncActivationProps } from "./activationProps.js";
import type { ApplicationDaemonsProps } from "./daemons.js";
import type { ApplicationSettingsProps } from "./settings.js";
import type { FileSyncRoutes, FileSyncUpstreams, RouteResponseFields, UpstreamOverrides } from "./members.js";
import type { FrontEndProps } from "../frontEndParts.js";
import type { Application } from "./application.js";
import type { StaticNetworkProps } from "../network.js";
import type { PauseResponse } from "../../applications/index.js";
import type { ErrorPage } from "../errorPage.js";
import type { ResponseHeaders } from "../responseHeaders.js";

/** Options of a front end on a host. The host, the mode, and a directory of the application are required. */
export interface FileSyncFrontEndProps<
  Upstreams extends object = FileSyncUpstreams,
  Routes extends object = FileSyncRoutes,
>
  extends FrontEndProps, FileSyncSiteProps<Routes> {
  /**
   * The application behind the front end: `Application.seafile({ version: "12" })`. The application defines its
   * paths, directories and settings; the front end refuses props that set these for the default application.
   * @default - the service of docs/service.md: a web application, a file server and a WebDAV daemon
   */
  readonly application?: Application<Upstreams, Routes>;
  /**
   * Directory on the host with the web application; `media` below this directory contains the media.
   * @default - none; then `mediaDirectory` is needed
   */
  readonly installDirectory?: string;
  /**
   * Directory of the static media: icons, avatars, scripts. The directory, the directories above, and all contents
   * must be readable by others; otherwise the response is 403.
   * @default - `media` in the install directory
   */
  readonly mediaDirectory?: string;
  /**
   * Changes to addresses, timeouts and connection reuse, by daemon.
   * @default - 127.0.0.1 with the ports 8000, 8080, 8082, timeouts of 36000 s
   */
  readonly upstreams?: UpstreamOverrides<NoInfer<Upstreams>>;
  /**
   * Further settings of the application: the start command of the web application, and whether settings can be
   * changed in the web interface.
   * @default - no start command; not through the web
   */
  readonly settings?: Pick<ApplicationSettingsProps, "enableSettingsViaWeb" | "startCommand" | "fileServer">;
  /**
   * Writes the host's static address for systemd-networkd: the interface, and options that are not in the host's
   * props.
   * @default - the host's network does not change
   */
  readonly network?: Omit<StaticNetworkProps, "host">;
  /**
   * Units for the application's daemons, by daemon.
   * @default - the application brings its own
   */
  readonly daemons?: Omit<ApplicationDaemonsProps, "host" | "unitDirectory">;
  /**
   * Options of the activation: `portico activate` checks the files, stops and starts changed units, probes the
   * expected responses, and returns to the last good state if a response is not as expected. `{}` is enough for a
   * local delivery.
   * @default - with a delivery over ssh, an activation that edits no settings; with a local delivery, no activation
   */
  readonly activation?: FileSyncActivationProps;
  /**
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward, exposed ports, and loopback
   * ports.
   * @default false
   */
  readonly outputs?: boolean;
}

/** Options of the application's virtual servers and routes, on a host and in containers. */
export interface FileSyncSiteProps<Routes extends object = FileSyncRoutes>
  extends
    FileSyncPathProps,
    Pick<InputOf<typeof virtualServerOptions>, "responseHeaders" | "errorPages" | "pauseResponse">,
    Pick<InputOf<typeof route>, "requestBodyTimeoutMs"> {
  /**
   * Directory of avatars, if the media directory contains only links to the avatars. The proxy does not follow links
   * that leave a directory, so avatars need a separate route.
   * @default - avatars are in the media directory
   */
  readonly avatarDirectory?: string;
  /** @remarks This applies to the proxied routes. */
  readonly requestBodyTimeoutMs?: number;
  /** @remarks This applies to the WebDAV daemon: RFC 4918 allows a path; Apache's mod_dav needs `absolute`. */
  readonly webdavDestination?: InputOf<typeof proxyOptions>["destination"];
  /** @remarks This applies to the application's routes; `FILE_SYNC_RESPONSE_HEADERS` is a set that suits most. */
  readonly responseHeaders?: ResponseHeaders;
  /**
   * Response header fields that single routes set or remove, by route: `web`, `webdav`, `fileServer`, `media`,
   * `avatars`, `page`. These fields take priority over `responseHeaders`.
   * @default - none
   */
  readonly routeResponseHeaders?: RouteResponseFields<NoInfer<Routes>>;
  /** @remarks These belong to the application's virtual server. */
  readonly errorPages?: readonly ErrorPage[];
  /** @default - the application's; without one, a line of text */
  readonly pauseResponse?: PauseResponse;
  /**
   * Whether `/` redirects to the application, over http and https, with 302, so that browsers do not remember the
   * redirect. The default server still responds for other names, and its page links to the application.
   * @default false - `/` of the application's names is a page over its own scheme, and 404 over http in TLS mode
   */
  readonly rootRedirect?: boolean;
  /**
   * HTML of the default server's page.
   * @default - a page that says no application is served at this address
   */
  readonly defaultPage?: string;
}

/** @internal Of whatever application. */
export type AnyFrontEndProps = FileSyncFrontEndProps<object, object>;
