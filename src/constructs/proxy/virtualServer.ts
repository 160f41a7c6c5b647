import { sayWhere } from "./elsewhere.js";
import { Construct, type IConstruct } from "constructs";
import { virtualServerOptions } from "../../model/config/config.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { freeId } from "../props/constructIds.js";
import {
  type ExpectedRow,
  type Problem,
  problem,
  rowsOfServer,
  type VirtualServerInput,
} from "../../model/index.js";
import type { PauseResponse } from "../../applications/index.js";
import type { ClientCertificate } from "./clientCertificate.js";
import { type ErrorPage, PAUSE_RESPONSE } from "./errorPage.js";
import { type ExpectedResponse, expectedProblems, isExpected, listOfExpected } from "./expectation.js";
import { refuse, virtualServerProblems } from "../props/checks.js";
import { LISTENER, TLS_MATERIAL } from "../props/instances.js";
import type { IListener } from "./listener.js";
import { fieldsOf } from "../props/fieldTable.js";
import {
  any,
  fields,
  flag,
  judged,
  listOf,
  type PropTable,
  record,
  refuseId,
  refuseOptions,
  refuseProps,
  required,
} from "../props/propTable.js";
import { proxyOf, scopeOf } from "./proxyScope.js";
import { removeFromTree, removedProblems, removedWith } from "../props/removal.js";
import {
  HSTS_OPTIONS,
  type HstsOptions,
  type ResponseHeaders,
  selfSignedHstsProblems,
  withoutForce,
} from "./responseHeaders.js";
import type { LogIn } from "../../applications/definition.js";
import type { NamedGuard, PasswordGuard } from "./passwordGuard.js";
import { bypassedBy, leavesBypass, type NamedAccess, withoutUsers } from "./access.js";
import { Route, type RouteProps } from "./route.js";
import type { TlsFiles, TlsMaterial } from "./tlsMaterial.js";

/** A virtual server of a front end or of a proxy, for functions that add routes to either. */
export interface IVirtualServer extends IConstruct {
  /** Name in the config. */
  readonly name: string;
  /** Names of the virtual server, the main one first. */
  readonly serverNames: readonly string[];
  /** Listeners of the virtual server. */
  readonly listeners: readonly IListener[];
  /** Routes below the virtual server, in the order they were added. */
  readonly routes: readonly Route[];
  /** Adds a route and returns it. */
  addRoute(id: string, props: RouteProps): Route;
}

/** Server names on listeners, with routes. Its scope is a proxy, or a construct below a proxy. */
export class VirtualServer extends Construct implements IVirtualServer {
  readonly name: string;
  readonly serverNames: readonly string[];
  /** The virtual server's own certificate; undefined if the virtual server uses the certificate of its listeners. */
  readonly tls?: TlsMaterial;
  /** Files of the virtual server's own certificate. */
  readonly tlsFiles?: TlsFiles;
  /** @internal Site in the config; undefined if the virtual server is one of its own. */
  site?: string;
  /** @internal Path of the construct whose prop `serverNames` has the names. */
  namedBy: string;
  /** @internal Who may use its routes; undefined for those whom the front end lets in. */
  access?: NamedAccess;
  /** @internal What tries a secret, by its applications. */
  logIns: readonly LogIn[] = [];
  /** @internal Paths that programs of its applications request with their own credentials. */
  withCredentials: readonly string[] = [];
  /** @internal Guards these; undefined for the guard of the front end. */
  guard?: NamedGuard;
  /** @internal Whether the front end's passwords apply. */
  asksForUsers = true;
  private readonly props: VirtualServerProps;
  private reachedThrough: readonly IListener[];

  constructor(scope: Construct, id: string, props: VirtualServerProps) {
    const place = scopeOf(scope, "VirtualServers");
    super(place, freeId(place, id));
    refuseProps(this, props, VIRTUAL_SERVER_PROPS, (fit) => [
      ...unusedTls(this.node.path, fit),
      ...removedListeners(this.node.path, fit.listeners),
      ...expectedProblems(this, fit.expect),
      ...problemsOn(this.node.path, { ...(fit as VirtualServerProps), name: fit.name ?? id }, fit.listeners),
    ]);
    const proxy = proxyOf(this);
    this.props = props;
    this.site = props.site;
    this.namedBy = this.node.path;
    this.name = props.name ?? id;
    this.serverNames = props.serverNames;
    this.reachedThrough = props.listeners;
    this.tls = props.tls;
    this.tlsFiles = props.tls === undefined ? undefined : proxy.tlsFiles(props.tls, this);
  }

  /** @internal Who may use routes without `access` of their own. */
  get outerAccess(): NamedAccess | undefined {
    const outer = this.access ?? proxyOf(this).access;
    if (!this.asksForUsers) return withoutUsers(outer, this.name);
    return bypassedBy(outer, this.name, this.withCredentials);
  }

  /** @internal A portal that would be asked about no request is a mistake. */
  get bypassProblems(): readonly Problem[] {
    const isLeft = this.asksForUsers && leavesBypass(this.access ?? proxyOf(this).access);
    if (!isLeft || !this.withCredentials.includes("/")) return [];
    const path = `${this.node.path}.access.forwardAuth.bypass`;
    const message =
      "is by default every path of the application: programs request any path with their own credentials";
    const fix =
      "Set `bypass` of a policy of the site. With `[]`, programs have to sign on as well; or close the site by `basic` or " +
      "by addresses.";
    return [problem("config.access-without-rule", path, message, { allowed: "paths below `/`", fix })];
  }

  /** @internal The guard that applies, and the name of the place that it was given at. */
  get passwordGuard(): { readonly name: string; readonly guard: PasswordGuard } | undefined {
    const nearest = this.guard ?? proxyOf(this).guard;
    if (nearest === undefined || nearest.guard === "off" || this.logIns.length === 0) return undefined;
    return { name: nearest.name, guard: nearest.guard };
  }

  get listeners(): readonly IListener[] {
    return this.reachedThrough.filter((listener) => removedWith(listener) === undefined);
  }

  /**
   * Adds listeners, also to a virtual server of a `FrontEnd`, such as a port for the internal network. A
   * listener that the virtual server already has changes nothing. If a listener is refused, the virtual server stays
   * as it is.
   */
  addListeners(...listeners: readonly IListener[]): void {
    const at = `${this.node.path}.addListeners`;
    refuseOptions(at, { listeners }, { listeners: LISTENERS }, (fit) => [
      ...removedProblems(this, at, "called"),
      ...removedListeners(at, fit.listeners),
    ]);
    const all = [...new Set([...this.listeners, ...listeners])];
    refuse(problemsOn(this.node.path, { ...this.props, name: this.name }, all));
    this.reachedThrough = all;
  }

  addRoute(id: string, props: RouteProps): Route {
    refuseId(this, "addRoute", id);
    return new Route(this, id, props);
  }

  /** Removes the virtual server with its routes, also that of a front end; its names then reach the default server. */
  remove(): void {
    removeFromTree(this);
  }

  get routes(): readonly Route[] {
    return this.node.findAll().filter((child) => child instanceof Route);
  }

  /** @internal Problems of a virtual server whose last listener, or last one with TLS, was removed. */
  get removalProblems(): readonly Problem[] {
    const { listeners, reachedThrough, tls } = this;
    const { path } = this.node;
    if (listeners.length === reachedThrough.length) return [];
    if (listeners.length > 0) return unusedTls(path, { tls, listeners });
    const removed = reachedThrough.map(({ node }) => node.path).join(", ");
    const fix = "Remove the virtual server too, or give it another listener with `addListeners`.";
    const more = { allowed: "at least one listener that has not been removed", fix };
    return [
      problem(
        "config.out-of-range",
        `${path}.listeners`,
        `is empty, because its listeners were removed: ${removed}`,
        more,
      ),
    ];
  }

  /** @internal */
  get asksForHsts(): boolean {
    return this.props.hsts !== undefined;
  }

  /** @internal Files with its error pages, each with the prop that names it. */
  get errorPageFiles(): readonly (readonly [at: string, file: string])[] {
    return (this.props.errorPages ?? []).flatMap((page, i) =>
      "file" in page ? [[`${this.node.path}.errorPages[${i}].file`, page.file] as const] : [],
    );
  }

  /** @internal The server's section of the config. */
  render(): VirtualServerInput {
    const closed = this.routes.flatMap((route) => (route.closedByManual === undefined ? [] : [route.path]));
    const { passwordGuard: guard } = this;
    return {
      ...sectionOf({ ...this.props, name: this.name, site: this.site }),
      listeners: this.listeners.map((listener) => listener.name),
      ...(closed.length === 0 ? {} : { privatePaths: closed }),
      routes: this.routes.map((route) => route.render()),
      ...(this.logIns.length === 0 ? {} : { passwordGuard: guard?.name, logIns: this.logIns }),
    };
  }

  /** @internal Whether a response is expected explicitly, of the virtual server itself. */
  get expects(): boolean {
    return isExpected(this.props.expect);
  }

  /** @internal The responses that are expected of it and its routes. */
  expectedRows(): readonly ExpectedRow[] {
    const own = listOfExpected(this.props.expect) ?? [];
    if (own === false) return [];
    return [
      ...rowsOfServer(this.name, own),
      ...this.routes.flatMap((route) => route.expectedRows(this.name)),
    ];
  }
}

sayWhere(VirtualServer, {
  addUpstream: "the proxy",
  addListener: "the proxy",
  addVirtualServer: "the proxy",
});

/** Problems of a virtual server on its listeners; without any, those that do not depend on listeners. */
function problemsOn(
  path: string,
  props: VirtualServerProps & { readonly name: string },
  listeners: readonly IListener[] = [],
): Problem[] {
  const { tls, hsts } = props;
  const secure = listeners.length === 0 || listeners.some(({ protocol }) => protocol === "https");
  const names = listeners.map(({ name }) => name);
  const materials = tls === undefined ? listeners.map((listener) => listener.tls?.material) : [tls];
  return [
    ...virtualServerProblems(path, { ...sectionOf(props), listeners: names, routes: [] }, secure),
    ...(hsts === undefined ? [] : selfSignedHstsProblems(`${path}.hsts`, hsts, materials)),
  ];
}

/** The server's props as its section of the config has them. */
const sectionOf = ({ tls, hsts, expect: _, ...fields }: VirtualServerProps & { readonly name: string }) => ({
  ...fields,
  ...(hsts === undefined ? {} : { hsts: withoutForce(hsts) }),
});

/** Names and listeners of a virtual server. */
export interface VirtualServerProps extends Omit<InputOf<typeof virtualServerOptions>, "name" | "listeners"> {
  /** @default - the construct's id */
  readonly name?: string;
  /** Constructs through which clients connect; at least one. */
  readonly listeners: readonly IListener[];
  readonly responseHeaders?: ResponseHeaders;
  /** @remarks With a self-signed certificate, it is refused (`config.hsts-self-signed`). */
  readonly hsts?: HstsOptions;
  readonly errorPages?: readonly ErrorPage[];
  readonly pauseResponse?: PauseResponse;
  readonly clientCertificate?: ClientCertificate;
  /**
   * A certificate for the virtual server's names, besides that of the listeners, at least one of which must be
   * `https`. Clients that request a covered name (SNI) receive this certificate. Only key and certificate of the
   * material are used.
   * @default - the listeners' own
   */
  readonly tls?: TlsMaterial;
  /**
   * Expected responses after an apply, besides those of the routes. `false`: no check of the virtual server or its
   * routes.
   * @default - the expected responses of the routes
   */
  readonly expect?: false | ExpectedResponse | readonly ExpectedResponse[];
}

function unusedTls(path: string, { tls, listeners }: Partial<VirtualServerProps>): Problem[] {
  if (tls === undefined || listeners === undefined || listeners.some(({ protocol }) => protocol === "https"))
    return [];
  const fix = "Add an https listener to `listeners`, or remove `tls`.";
  return [
    problem(
      "config.tls-unexpected",
      `${path}.tls`,
      "has no effect: no listener of the virtual server is https",
      {
        fix,
        allowed: "`tls` of a virtual server with an https listener",
      },
    ),
  ];
}

const removedListeners = (path: string, listeners: readonly IListener[] = []): Problem[] =>
  listeners.flatMap((listener, i) => removedProblems(listener, `${path}.listeners[${i}]`, "used"));

const LISTENERS = required(listOf(LISTENER));

const VIRTUAL_SERVER_PROPS: PropTable<VirtualServerProps> = {
  ...fieldsOf(virtualServerOptions),
  serverNames: { ...judged, eachItem: true },
  listeners: LISTENERS,
  tls: TLS_MATERIAL,
  default: flag,
  versionTokens: flag,
  windowsDrives: flag,
  errorPages: listOf(record),
  pauseResponse: PAUSE_RESPONSE,
  hsts: fields(HSTS_OPTIONS),
  expect: any,
};
