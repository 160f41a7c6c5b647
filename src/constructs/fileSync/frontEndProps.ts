import type { InputOf } from "../../model/inferred.js";
import type { proxyOptions } from "../../model/actions/proxy.js";
import type { route, virtualServerOptions } from "../../model/config/config.js";
import type { FileSyncPaths } from "../../applications/index.js";
import type { HostPaths } from "../../render/index.js";
import type { FileSyncActivationProps } from "./activationProps.js";
import type { ApplicationDaemonsProps } from "./daemons.js";
import type { ApplicationSettingsProps } from "./settings.js";
import type { FileSyncRoutes, FileSyncUpstreams, RouteResponseFields, UpstreamOverrides } from "./members.js";
import type { FrontEndFirewallProps } from "../frontEndParts.js";
import type { IHost, HostProps } from "../host.js";
import type { Application } from "../application.js";
import type { Mode } from "../mode.js";
import type { StaticNetworkProps } from "../network.js";
import type { ProxyServiceProps } from "../proxyService.js";
import type { ReverseProxyProps } from "../reverseProxy.js";
import type { ErrorPage } from "../errorPage.js";
import type { ResponseHeaders } from "../responseHeaders.js";

/** What a front end is made of. The host, the mode, and a directory of the application are required. */
export interface FileSyncFrontEndProps<
  Upstreams extends object = FileSyncUpstreams,
  Routes extends object = FileSyncRoutes,
>
  extends
    Pick<InputOf<typeof virtualServerOptions>, "responseHeaders" | "errorPages">,
    Pick<InputOf<typeof route>, "requestBodyTimeoutMs"> {
  /** The host, or props to make one. */
  readonly host: IHost | HostProps;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /**
   * The application behind it: `Application.seafile({ version: "12" })`. It brings its paths, directories and settings, so
   * that props which say these of the default are refused beside it.
   * @default - the service of docs/service.md: a web application, a file server and a WebDAV daemon
   */
  readonly application?: Application<Upstreams, Routes>;
  /**
   * Directory on the host that the web application is installed in; its media are in `media` below it.
   * @default - none; then `mediaDirectory` is needed
   */
  readonly installDirectory?: string;
  /**
   * Directory of the static media: icons, avatars, scripts. The directory, those above it and everything in it
   * must be readable by others, or the proxy answers 403.
   * @default - `media` in the install directory
   */
  readonly mediaDirectory?: string;
  /**
   * Directory of avatars, if the application keeps them with its data and only links to them from the media
   * directory. Links that leave a directory are not followed, so avatars get a route of their own.
   * @default - avatars are in the media directory
   */
  readonly avatarDirectory?: string;
  /**
   * The word that paths begin with: `sync` gives `/sync`, `/synchttp`, `/syncmedia`, `/syncdav`. Sync clients may have paths
   * built in: those of Seafile ask for `/seafhttp`, which `seaf` gives, or `routePaths`.
   * @default "sync"
   */
  readonly pathPrefix?: string;
  /**
   * Paths that the word does not give, by route: `{ fileServer: "/seafhttp", webdav: "/seafdav" }`. Known at synthesis.
   * @default - none
   */
  readonly routePaths?: Partial<FileSyncPaths>;
  /**
   * Further names of the application, in lower case; `*.example.org` is every name with one label before `.example.org`,
   * whose certificate an authority gives for records in DNS only.
   * @default - none
   */
  readonly additionalServerNames?: readonly string[];
  /**
   * Changes to the daemons' addresses, timeouts and connection reuse, by daemon.
   * @default - 127.0.0.1 with the ports 8000, 8080, 8082, timeouts of 36000 s
   */
  readonly upstreams?: UpstreamOverrides<NoInfer<Upstreams>>;
  /** @remarks This applies to the proxied routes. */
  readonly requestBodyTimeoutMs?: number;
  /** @remarks This applies to the WebDAV daemon: a path is what RFC 4918 allows, `absolute` what Apache's mod_dav needs. */
  readonly webdavDestination?: InputOf<typeof proxyOptions>["destination"];
  /** @remarks This applies to the application's routes; `FILE_SYNC_RESPONSE_HEADERS` is a set that suits most. */
  readonly responseHeaders?: ResponseHeaders;
  /**
   * Fields that are set or removed in the responses of single routes, by route: `web`, `webdav`, `fileServer`, `media`,
   * `avatars`, `page`. They take priority over `responseHeaders`.
   * @default - none
   */
  readonly routeResponseHeaders?: RouteResponseFields<NoInfer<Routes>>;
  /** @remarks These belong to the application's virtual server. */
  readonly errorPages?: readonly ErrorPage[];
  /**
   * Settings of the proxy as a whole: workers, trusted proxies, main logs, limits, timeouts. If a main log is a stream,
   * the routes have no log files of their own.
   * @default - see ReverseProxy
   */
  readonly proxy?: Omit<ReverseProxyProps, "host" | "paths">;
  /**
   * How the proxy runs: Node, runtime, stop timeout, open files.
   * @default - see ProxyService
   */
  readonly service?: Omit<ProxyServiceProps, "proxy">;
  /**
   * The application's settings that do not follow from the rest: the start command of the web application, and
   * whether settings can be changed through the web.
   * @default - no start command; not through the web
   */
  readonly settings?: Pick<ApplicationSettingsProps, "enableSettingsViaWeb" | "startCommand" | "fileServer">;
  /**
   * Paths on the host that differ from the defaults.
   * @default DEFAULT_HOST_PATHS
   */
  readonly paths?: Partial<HostPaths>;
  /**
   * Whether `/` leads to the application, over http and https: a 302, so that browsers forget it when this is turned off.
   * The default server still answers for other names, and its page links to the application.
   * @default false - `/` of the application's names is a page over its own scheme, and 404 over http in TLS mode
   */
  readonly rootRedirect?: boolean;
  /**
   * HTML of the default server's page.
   * @default - a page that says no application is served at this address
   */
  readonly defaultPage?: string;
  /**
   * Write the host's static address for systemd-networkd: the interface, and what else the host's props do not say.
   * @default - the host's network is left as it is
   */
  readonly network?: Omit<StaticNetworkProps, "host">;
  /**
   * Filter what reaches the host: the exposed ports are open, all others are not; `{}` is enough.
   * @default - no filter
   */
  readonly firewall?: FrontEndFirewallProps;
  /**
   * Units for the application's daemons, by daemon.
   * @default - the application brings its own
   */
  readonly daemons?: Omit<ApplicationDaemonsProps, "host" | "unitDirectory">;
  /**
   * How the deployment takes effect: `portico activate` checks it, stops and starts what changed, probes the
   * expected responses, and restores the last good state if they are not as expected. `{}` is enough for a
   * local delivery.
   * @default - with a delivery over ssh, nothing is known of the application; with a local one, no activation
   */
  readonly activation?: FileSyncActivationProps;
  /**
   * Whether to add Terraform outputs: URL, DNS records to create, ports to forward, ports exposed and on loopback only.
   * @default false
   */
  readonly outputs?: boolean;
}

/** @internal Of whatever application. */
export type AnyFrontEndProps = FileSyncFrontEndProps<object, object>;
