import { Construct } from "constructs";
import { renderOrigin } from "../model/index.js";
import { virtualServerOptions } from "../model/config/config.js";
import { deploymentSchema, type services } from "../model/deployment.js";
import type { InputOf } from "../model/inferred.js";
import { PAUSE_RESPONSE } from "./errorPage.js";
import { freeId } from "./constructIds.js";
import { MODE, HOST, UPSTREAM } from "./props/instances.js";
import { Action, PROXY_OPTIONS, type ProxyOptions } from "./action.js";
import { Activation, DAEMON_UNITS, DESCRIBED_SETTINGS } from "./activation.js";
import type {
  DaemonUnit,
  DescribedSettings,
  DoctorRow,
  ReplayGate,
  ResponseProbe,
  ServedTree,
} from "./activationOptions.js";
import { OF_FRONT_END, sayWhere } from "./elsewhere.js";
import { FIREWALL_PROPS, type Firewall } from "./firewall.js";
import {
  addFirewall,
  addListeners,
  type FrontEndListeners,
  type FrontEndProps,
  givenPartProblems,
  type IFrontEnd,
  listenersIn,
  networkOf,
} from "./frontEndParts.js";
import { HOST_PROPS, hostFrom, type IHost } from "./host.js";
import type { Mode } from "./mode.js";
import { fieldsOf, kindsOf } from "./props/fieldTable.js";
import {
  either,
  fields,
  flag,
  listOf,
  type PropTable,
  record,
  refuseProps,
  required,
  text,
  without,
} from "./props/propTable.js";
import { PROXY_SERVICE_PROPS, ProxyService } from "./proxyService.js";
import { HOST_PATHS, REVERSE_PROXY_PROPS, ReverseProxy } from "./reverseProxy.js";
import { DAILY_DOCTOR_PROPS, type DoctorProps } from "./dailyDoctor.js";
import { describeHost } from "./deploymentDocument.js";
import { type Route, ROUTE_CHANGES, type RouteProps } from "./route.js";
import { type IUpstream, UPSTREAM_PROPS, type UpstreamProps } from "./upstream.js";
import type { VirtualServer } from "./virtualServer.js";

/**
 * The front end of one ordinary web application: all paths of the host's names go to one upstream. In TLS mode port
 * 80 redirects to https, unless the mode's `httpPort` is `false`. The response for other names is 404. With an activation (always over ssh), the host checks
 * the responses after every apply and rolls back if a response is not as expected.
 *
 * Every part is a member. You can add routes to `application`, and virtual servers and upstreams to `proxy`.
 */
export class WebFrontEnd extends Construct implements IFrontEnd {
  readonly host: IHost;
  readonly mode: Mode;
  readonly proxy: ReverseProxy;
  readonly listeners: FrontEndListeners;
  /** The application. */
  readonly upstream: IUpstream;
  /** Responds with 404 for names that are not the application's. */
  readonly defaultServer: VirtualServer;
  readonly redirect?: VirtualServer;
  readonly application: VirtualServer;
  /** The route for all paths of the application. */
  readonly route: Route;
  readonly service: ProxyService;
  readonly firewall?: Firewall;
  readonly activation?: Activation;
  readonly serverNames: readonly [string, ...string[]];
  readonly url: string;

  constructor(scope: Construct, id: string, props: WebFrontEndProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, WEB_FRONT_END_PROPS, ({ upstream: application, ...fit }) =>
      givenPartProblems(this, {
        ...fit,
        upstreams: { application: Construct.isConstruct(application) ? undefined : propsOf(application) },
      }),
    );
    const { mode, upstream, firewall, activation } = props;
    const { responseHeaders, errorPages, pauseResponse, windowsDrives } = props;
    this.host = hostFrom(this, props.host);
    const { host } = this;
    this.mode = mode;
    this.serverNames = [...host.serverNames, ...(props.additionalServerNames ?? [])];
    const { serverNames } = this;
    this.url = `${renderOrigin({ scheme: mode.scheme, host: serverNames[0], port: mode.publicPort })}/`;
    this.proxy = new ReverseProxy(this, "Proxy", { ...props.proxy, host, paths: props.paths });
    this.listeners = addListeners(this.proxy, mode, serverNames);
    this.upstream = Construct.isConstruct(upstream)
      ? (upstream as IUpstream)
      : this.proxy.addUpstream("application", propsOf(upstream));
    const { http, http6, https, https6 } = this.listeners;
    const plain = listenersIn(http, http6);
    const secure = listenersIn(https, https6);
    this.defaultServer = this.proxy.addVirtualServer("default", {
      serverNames: ["_"],
      listeners: [...plain, ...secure],
      default: true,
    });
    // Clients that ask for no name of the application get nothing of it.
    this.defaultServer.addRoute("nothing", {
      path: "/",
      action: Action.respond(404),
      expect: { name: "other names", host: "unknown", status: 404 },
    });
    if (plain.length > 0 && secure.length > 0) {
      this.redirect = this.proxy.addVirtualServer("redirect", { serverNames, listeners: plain });
      const action = Action.redirect({ status: 301, scheme: "https", port: mode.publicPort });
      this.redirect.addRoute("https", { path: "/", action });
    }
    this.application = this.proxy.addVirtualServer("application", {
      serverNames,
      listeners: secure.length > 0 ? secure : plain,
      responseHeaders,
      errorPages,
      pauseResponse,
      windowsDrives,
      hsts: mode.https?.hsts,
    });
    const forwarded = { realIp: true, for: true, proto: true, ...props.proxyOptions?.forwarded };
    this.route = this.application.addRoute("application", {
      ...props.route,
      path: "/",
      action: Action.proxy(this.upstream, { hostHeader: "client", ...props.proxyOptions, forwarded }),
    });
    this.service = new ProxyService(this, "Service", { ...props.service, proxy: this.proxy });
    if (firewall !== undefined) this.firewall = addFirewall(this, firewall);
    const { daemons, doctor, ...described } = activation ?? {};
    const parts = {
      service: this.service,
      services: { daemons },
      describe: () => ({ network: networkOf(this), ...described }),
    };
    if (activation !== undefined || host.delivery.needsActivation) {
      this.activation = new Activation(this, "Activation", { ...parts, doctor });
    } else describeHost(this, parts);
  }
}

sayWhere(WebFrontEnd, OF_FRONT_END);

const propsOf = <P extends Partial<UpstreamProps> | undefined>(given: string | P): P | UpstreamProps =>
  typeof given === "string" ? { url: given } : given;

/** Options of a front end for one ordinary application. */
export interface WebFrontEndProps
  extends FrontEndProps, Pick<InputOf<typeof virtualServerOptions>, "windowsDrives"> {
  /**
   * The application: a URL, such as `http://127.0.0.1:3000`, props of an `Upstream`, or an existing upstream
   * (`IUpstream`).
   */
  // An `IUpstream` has what its props need, as with `host`.
  readonly upstream: string | UpstreamProps;
  /**
   * Options for requests to the upstream.
   * @default - with the client's `Host`, `X-Real-IP`, `X-Forwarded-For` and `X-Forwarded-Proto`
   */
  readonly proxyOptions?: ProxyOptions;
  /**
   * Limits, timeouts, logs and the expected response of the application's route. `{ expect: { path: "/health",
   * status: 200 } }` makes an apply fail unless the application is healthy.
   * @default - see Route
   */
  readonly route?: Omit<RouteProps, "path" | "match" | "action" | "name">;
  /**
   * Options of the activation; `{}` adds an activation to a local delivery.
   * @default - with a delivery over ssh, an activation that checks the expected responses for a minute; with a local
   * delivery, no activation
   */
  readonly activation?: WebActivationProps;
}

/** Options of a `WebFrontEnd`'s activation. */
export interface WebActivationProps
  extends
    DoctorProps,
    Pick<InputOf<typeof services>, "daemons">,
    Pick<
      InputOf<typeof deploymentSchema>,
      "settings" | "rows" | "trees" | "probe" | "replay" | "requireCertificate"
    > {
  readonly settings?: DescribedSettings;
  readonly daemons?: readonly DaemonUnit[];
  readonly rows?: readonly DoctorRow[];
  readonly trees?: readonly ServedTree[];
  readonly probe?: ResponseProbe;
  readonly replay?: ReplayGate;
}

/** @internal */
export const WEB_FRONT_END_PROPS: PropTable<WebFrontEndProps> = {
  host: required(either(HOST, fields(HOST_PROPS))),
  mode: required(MODE),
  upstream: required(either(UPSTREAM, either(text, fields(UPSTREAM_PROPS)))),
  additionalServerNames: listOf(text),
  proxyOptions: fields(PROXY_OPTIONS),
  route: fields(ROUTE_CHANGES),
  ...fieldsOf(virtualServerOptions, "responseHeaders"),
  pauseResponse: PAUSE_RESPONSE,
  errorPages: listOf(record),
  windowsDrives: flag,
  proxy: fields(without(REVERSE_PROXY_PROPS, "host", "paths")),
  service: fields(without(PROXY_SERVICE_PROPS, "proxy")),
  paths: fields(HOST_PATHS),
  firewall: fields(
    without(FIREWALL_PROPS, "host", "ports", "loopbackPorts", "unitDirectory", "acceptLockOut"),
  ),
  activation: fields<WebActivationProps>({
    settings: DESCRIBED_SETTINGS,
    daemons: DAEMON_UNITS,
    rows: listOf(record),
    trees: listOf(record),
    ...kindsOf(deploymentSchema, "probe", "replay", "requireCertificate"),
    doctor: fields(DAILY_DOCTOR_PROPS),
  }),
};
