import { ACCESS, accessOptionProblems } from "../proxy/access.js";
import { guardOptionProblems, PASSWORD_GUARD } from "../proxy/passwordGuard.js";
import type { Construct } from "constructs";
import { isWildcard, type Problem, problem } from "../../model/index.js";
import { CONTAINER_PATHS } from "../../render/index.js";
import { freeId } from "../props/constructIds.js";
import { ContainerProxy, type ContainerProxyProps } from "../proxy/containerProxy.js";
import { OF_FRONT_END, sayWhere } from "../proxy/elsewhere.js";
import type { Mode } from "../proxy/mode.js";
import { APPLICATION, MODE } from "../props/instances.js";
import { fields, listOf, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { PROXY_SETTINGS } from "../proxy/proxySettings.js";
import { TlsMaterial } from "../proxy/tlsMaterial.js";
import { unusedProblems } from "./frontEndProps.js";
import { type FrontEndListeners, givenPartProblems } from "./parts.js";
import { SitesOfProxy } from "./sitesOfProxy.js";
import {
  namesProblems,
  noName,
  SITE_OPTIONS,
  type FrontEndAccess,
  type OwnSiteOptions,
  siteProblems,
  withMembers,
} from "./siteProps.js";

/**
 * The front end of applications for containers: the sites of a `FrontEnd`, with servers on the network and files on
 * volumes. The front end delivers no files; the tool that runs the containers uses `proxy`.
 */
export class ContainerFrontEnd<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
> extends SitesOfProxy<Upstreams, Routes, Settings> {
  /** The proxy, to which you can add more. */
  readonly proxy: ContainerProxy;
  /** Plain HTTP or TLS. */
  readonly mode: Mode;
  /** The listeners: on ports above 1023, published on the ports of the mode. */
  readonly listeners: FrontEndListeners;

  constructor(scope: Construct, id: string, props: ContainerFrontEndProps<Upstreams, Routes, Settings>) {
    super(scope, freeId(scope, id));
    const at = (name: string): string => `${this.node.path}.${name}`;
    refuseProps(this, props, withMembers(props, CONTAINER_FRONT_END_PROPS), (fit) => [
      ...unusedProblems(fit, at),
      ...siteProblems(fit, at, true),
      ...accessOptionProblems(at("access"), fit.access),
      ...guardOptionProblems(at("passwordGuard"), fit.passwordGuard),
      ...namesProblems(at("serverNames"), fit.serverNames ?? [], true),
      ...(fit.application !== undefined && (fit.serverNames ?? []).length === 0
        ? [noName(at("serverNames"))]
        : []),
      ...(fit.application === undefined && fit.serverNames !== undefined
        ? [namesOfNothing(at("serverNames"))]
        : []),
      ...lostAddress(at("mode"), fit.mode),
      ...givenPartProblems(this, { proxy: fit.proxy, upstreams: { ...fit.upstreams } }),
    ]);
    const { mode, serverNames = [] } = props;
    this.mode = mode;
    this.proxy = new ContainerProxy(this, "Proxy", props.proxy);
    this.listeners = addContainerListeners(this.proxy, mode, serverNames);
    const { defaultPageDirectory: directory } = CONTAINER_PATHS;
    const page = this.addOwnSite({ ...props, serverNames }, directory);
    if (page !== undefined) this.proxy.addFile(`${directory}/index.html`, page);
  }
}

sayWhere(ContainerFrontEnd, OF_FRONT_END);

/** Options of a front end in containers. */
export interface ContainerFrontEndProps<
  Upstreams extends object = object,
  Routes extends object = object,
  Settings extends Construct = Construct,
>
  extends OwnSiteOptions<Upstreams, Routes, Settings>, FrontEndAccess {
  /**
   * Plain HTTP or TLS. The mode's ports are the public ports; the containers listen on other ports. The default
   * `material` is `TlsMaterial.fromSecret()`.
   */
  readonly mode: Mode;
  /**
   * Names of the application, in lower case, the main name first.
   * @default - none; required beside `application`
   */
  readonly serverNames?: readonly string[];
  /**
   * Workers, logs, limits and timeouts of the proxy.
   * @default - see ContainerProxy
   */
  readonly proxy?: ContainerProxyProps;
}

const CONTAINER_FRONT_END_PROPS: PropTable<ContainerFrontEndProps> = {
  mode: required(MODE),
  application: APPLICATION,
  serverNames: listOf(text),
  ...SITE_OPTIONS,
  defaultPage: text,
  proxy: fields(PROXY_SETTINGS),
  access: ACCESS,
  passwordGuard: PASSWORD_GUARD,
};

const namesOfNothing = (path: string): Problem =>
  problem("config.unknown-field", path, "has no effect: the front end has no `application`", {
    allowed: "`serverNames` beside `application`",
    fix: "Set `application`, or set the names in `addSite`.",
  });

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

function lostAddress(path: string, mode: Mode | undefined): Problem[] {
  if (mode === undefined || isWildcard(mode.ipv6Address)) return [];
  const fix = "Remove `ipv6Address` from the mode.";
  const more = { received: mode.ipv6Address, allowed: "`::`, which is the default", fix };
  const message = "has an `ipv6Address`, but a container gets its addresses when it starts";
  return [problem("config.bad-address", path, message, more)];
}
