import { Construct } from "constructs";
import { PAUSE_RESPONSE } from "../errorPage.js";
import type { InputOf } from "../../model/inferred.js";
import { proxyOptions } from "../../model/actions/proxy.js";
import { route, virtualServerOptions } from "../../model/config/config.js";
import { freeId } from "../constructIds.js";
import { formatProblem, isWildcard, type Problem, problem } from "../../model/index.js";
import { CONTAINER_PATHS, renderDefaultPage } from "../../render/index.js";
import { type ApplicationDefinition, fileSyncPaths, fileSyncService } from "../../applications/index.js";
import { type FrontEndListeners, givenPartProblems } from "../frontEndParts.js";
import { ContainerProxy, type ContainerProxyProps } from "../containerProxy.js";
import { APPLICATION, MODE } from "../props/instances.js";
import type { Application } from "./application.js";
import { foreignProblems, propsFor } from "./applicationProps.js";
import { fieldsOf, kindsOf } from "../props/fieldTable.js";
import {
  fields,
  flag,
  listOf,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
} from "../props/propTable.js";
import { PROXY_SETTINGS } from "../proxySettings.js";
import type { Listener } from "../listener.js";
import { TlsMaterial } from "../tlsMaterial.js";
import { UPSTREAM_PROPS, type UpstreamProps } from "../upstream.js";
import type { VirtualServer } from "../virtualServer.js";
import { takenNameProblems } from "./claims.js";
import type { Mode } from "../mode.js";
import { namesProblems, ROUTE_FIELDS, routeProblems } from "./props.js";
import { ROUTE_PATHS } from "./paths.js";
import type { FileSyncSiteProps } from "./frontEndProps.js";
import type { FileSyncRoutes, FileSyncSite, FileSyncUpstreams } from "./members.js";
import { addSite, defaultServerOf, httpsOf } from "./servers.js";

/**
 * The proxy of a file-sync web application for containers: the virtual servers and routes of `FileSyncFrontEnd`, with
 * daemons on the network and media on a volume.
 */
export class FileSyncProxy<
  Upstreams extends object = FileSyncUpstreams,
  Routes extends object = FileSyncRoutes,
>
  extends Construct
  implements FileSyncSite<Upstreams, Routes>
{
  /** The proxy, to which you can add more. */
  readonly proxy: ContainerProxy;
  /** The listeners: on ports above 1023, published on the ports of the mode. */
  readonly listeners: FrontEndListeners;
  readonly upstreams: Upstreams;
  private readonly ownDefault?: VirtualServer;
  readonly application: VirtualServer;
  readonly redirect?: VirtualServer;
  readonly routes: Routes;

  constructor(scope: Construct, id: string, props: FileSyncProxyProps<Upstreams, Routes>) {
    super(scope, freeId(scope, id));
    const at = (name: string): string => `${this.node.path}.${name}`;
    refuseProps(this, props, propsFor(props, FILE_SYNC_PROXY_PROPS, UPSTREAM), (fit) => [
      ...(fit.application === undefined ? mediaProblems(fit, at) : foreignProblems(fit, at)),
      ...routeProblems(fit, at),
      ...namesProblems(at("serverNames"), fit.serverNames ?? [], true),
      ...(fit.serverNames?.length === 0 ? [noName(at("serverNames"))] : []),
      ...lostAddress(at("mode"), fit.mode),
      ...givenPartProblems(this, { proxy: fit.proxy, upstreams: { ...fit.upstreams } }),
    ]);
    const { mode, serverNames } = props;
    this.proxy = new ContainerProxy(this, "Proxy", props.proxy);
    this.listeners = addContainerListeners(this.proxy, mode, serverNames);
    const definition = props.application?.definition ?? definitionOf(props);
    const { listeners } = this;
    const { defaultPageDirectory: pageDirectory } = CONTAINER_PATHS;
    const parts = { application: definition, listeners, mode, pageDirectory };
    const site = addSite(this.proxy, {
      ...props,
      ...parts,
      serverNames: serverNames as [string, ...string[]],
    });
    this.proxy.addFile(`${pageDirectory}/index.html`, props.defaultPage ?? renderDefaultPage(site.linked));
    this.upstreams = site.upstreams as Upstreams;
    this.routes = site.routes as Routes;
    this.ownDefault = site.defaultServer;
    this.redirect = site.redirect;
    this.application = site.application;
    const { application, proxy } = this;
    const taken = () => takenNameProblems({ application, proxy, serverNames });
    this.node.addValidation({ validate: () => taken().map(formatProblem) });
  }

  get defaultServer(): VirtualServer {
    return defaultServerOf(this, this.ownDefault);
  }

  get httpsListener(): Listener {
    return httpsOf(this);
  }
}

/** Options of the proxy of a file-sync web application. */
export interface FileSyncProxyProps<
  Upstreams extends object = FileSyncUpstreams,
  Routes extends object = FileSyncRoutes,
>
  extends Pick<InputOf<typeof virtualServerOptions>, "serverNames">, FileSyncSiteProps<Routes> {
  /**
   * Plain HTTP or TLS. The mode's ports are the public ports; the containers listen on other ports. The default
   * `material` is `TlsMaterial.fromSecret()`.
   */
  readonly mode: Mode;
  /**
   * The application behind the proxy, as in a `FileSyncFrontEnd`. The proxy does not set the public URL in the
   * application: docs/applications.md describes the settings.
   * @default - the service of docs/service.md
   */
  readonly application?: Application<Upstreams, Routes>;
  /** The application's upstreams: URLs that containers reach, such as `http://web.sync.svc:8000`. */
  readonly upstreams: { readonly [name in keyof NoInfer<Upstreams>]: UpstreamProps };
  /**
   * Directory of the static media in the containers. Required for the default application only.
   * @default - that of the application
   */
  readonly mediaDirectory?: string;
  /**
   * Workers, logs, limits and timeouts of the proxy.
   * @default - see ContainerProxy
   */
  readonly proxy?: ContainerProxyProps;
}

const UPSTREAM = required(fields<UpstreamProps>(UPSTREAM_PROPS));

type AnyProxyProps = FileSyncProxyProps<object, object>;

const FILE_SYNC_PROXY_PROPS: PropTable<AnyProxyProps> = {
  mode: required(MODE),
  serverNames: required(listOf(text)),
  upstreams: required(
    fields<FileSyncProxyProps["upstreams"]>({ web: UPSTREAM, webdav: UPSTREAM, fileServer: UPSTREAM }),
  ),
  mediaDirectory: text,
  application: APPLICATION,
  avatarDirectory: text,
  pathPrefix: text,
  routePaths: ROUTE_PATHS,
  ...kindsOf(route, "requestBodyTimeoutMs"),
  webdavDestination: kindsOf(proxyOptions, "destination").destination,
  ...fieldsOf(virtualServerOptions, "responseHeaders"),
  pauseResponse: PAUSE_RESPONSE,
  errorPages: listOf(record),
  routeResponseHeaders: ROUTE_FIELDS,
  rootRedirect: flag,
  defaultPage: text,
  proxy: fields(PROXY_SETTINGS),
};

/** Containers run without privileges, so a port below 1024 becomes one above: 80 is 8080, 443 is 8443. */
const unprivileged = (port: number): number => (port < 1024 ? port + 8000 : port);

function addContainerListeners(
  proxy: ContainerProxy,
  mode: Mode,
  serverNames: readonly string[],
): FrontEndListeners {
  const { address, httpPort, publicPort, proxyProtocol } = mode;
  const listen = (port: number, publishedPort: number | undefined) => ({
    address,
    port: unprivileged(port),
    publishedPort,
    proxyProtocol,
  });
  const publishedPort = mode.https === undefined ? publicPort : httpPort;
  const http =
    httpPort === undefined ? undefined : proxy.addListener("http", listen(httpPort, publishedPort));
  if (mode.https === undefined) return { http };
  const { material = TlsMaterial.fromSecret(), policy, http2, httpsPort } = mode.https;
  const tls = { material, policy, serverNames };
  return { http, https: proxy.addListener("https", { ...listen(httpsPort, publicPort), http2, tls }) };
}

const noName = (path: string): Problem =>
  problem("config.missing-field", path, "contains no name", {
    received: [],
    allowed: "at least one name, the main name first",
    fix: 'Add the name that clients use: `serverNames: ["files.example.org"]`.',
  });

function lostAddress(path: string, mode: Mode | undefined): Problem[] {
  if (mode === undefined || isWildcard(mode.ipv6Address)) return [];
  const fix = "Remove `ipv6Address` from the mode.";
  const more = { received: mode.ipv6Address, allowed: "`::`, which is the default", fix };
  const message = "has an `ipv6Address`, but a container gets its addresses when it starts";
  return [problem("config.bad-address", path, message, more)];
}

/** The application that props describe one by one. */
const definitionOf = (props: AnyProxyProps): ApplicationDefinition =>
  fileSyncService({
    paths: fileSyncPaths(props.pathPrefix, props.routePaths),
    media: { directory: props.mediaDirectory!, avatarDirectory: props.avatarDirectory },
    destination: props.webdavDestination,
  });

function mediaProblems({ mediaDirectory }: Partial<AnyProxyProps>, at: (name: string) => string): Problem[] {
  if (mediaDirectory !== undefined) return [];
  const more = { allowed: "a string", fix: "Set the directory of the media inside the containers." };
  return [problem("config.missing-field", at("mediaDirectory"), "is missing", more)];
}
