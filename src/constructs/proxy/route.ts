import { Construct, type IConstruct } from "constructs";
import { route } from "../../model/config/config.js";
import type { rateLimit } from "../../model/config/rates.js";
import type { InputOf } from "../../model/schema/inferred.js";
import {
  ACCESS,
  type AccessOption,
  accessOptionProblems,
  type AccessPolicy,
  type NamedAccess,
  narrowed,
} from "./access.js";
import { freeId } from "../props/constructIds.js";
import { type ActionInput, type ExpectedRow, type RouteInput, rowsOfRoute } from "../../model/index.js";
import type { Action } from "./action.js";
import { type ExpectedResponse, expectedProblems, isExpected, listOfExpected } from "./expectation.js";
import { type Problem, problem } from "../../model/index.js";
import { refuse, routeProblems, upstreamProblems } from "../props/checks.js";
import { ACTION, VIRTUAL_SERVER } from "../props/instances.js";
import { proxyOf } from "./proxyScope.js";
import type { AccessLogFile, AccessLogStream, ErrorLogFile, ErrorLogStream } from "./proxySettings.js";
import type { ResponseHeaders } from "./responseHeaders.js";
import { removeFromTree, removedProblems } from "../props/removal.js";
import { isKnown } from "../props/tokens.js";
import { fieldsOf } from "../props/fieldTable.js";
import { any, type PropTable, refuseOptions, refuseProps, required, without } from "../props/propTable.js";
import { tlsFilesOf } from "./upstream.js";

/**
 * A path of a virtual server and the action that handles its requests. The scope is the virtual server, or a
 * construct below the virtual server. The order of routes does not matter: the longest path wins.
 */
export class Route extends Construct {
  /** Name in the config, in logs and in checks. */
  readonly name: string;
  /** Path of the route. */
  readonly path: string;
  /** @internal Who may come in by the application's manual, unless the route has `access` of its own. */
  closedByManual?: AccessPolicy;
  private current: Action;
  private props: RouteProps;

  constructor(scope: Construct, id: string, props: RouteProps) {
    super(scope, freeId(scope, id));
    const { path } = this.node;
    refuseProps(this, props, ROUTE_PROPS, (fit) => {
      const action: ActionInput = fit.action?.render() ?? { type: "respond", status: 404 };
      const { expect: expected, access, ...fields } = fit as RouteProps;
      const made = { ...fields, name: fit.name ?? id, action };
      return [
        ...strayProblems(this),
        ...routeProblems(path, made),
        ...urlProblems(path, fit.action),
        ...removedUpstream(path, fit.action),
        ...expectedProblems(this, expected),
        ...accessOptionProblems(`${path}.access`, access),
      ];
    });
    this.props = props;
    this.name = props.name ?? id;
    this.path = props.path;
    // The proxy has the route by now, and is asked for its upstreams.
    this.current = props.action;
    this.current = props.action.of(this);
    this.useCredentialFiles();
  }

  /** The current action. */
  get action(): Action {
    return this.current;
  }

  /**
   * Replaces the action, also for a route of a `FrontEnd`. If the action is refused, the route stays as it
   * is.
   */
  replaceAction(action: Action): void {
    const { path } = this.node;
    refuseOptions(`${path}.replaceAction`, { action }, { action: required(ACTION) });
    refuse([
      ...removedProblems(this, `${path}.replaceAction`, "called"),
      ...removedUpstream(path, action),
      ...routeProblems(path, { ...this.section, action: action.render() }),
      ...urlProblems(path, action),
    ]);
    this.current = action.of(this);
    this.useCredentialFiles();
  }

  private useCredentialFiles(): void {
    const { credentials, upstream } = this.action;
    const users = this.policy?.policy.basic?.usersFile;
    proxyOf(this).useCredentialFiles([
      ...Object.values(credentials),
      ...(users === undefined ? [] : [users]),
      ...(upstream === undefined ? [] : Object.values(tlsFilesOf(upstream))),
    ]);
  }

  /**
   * Changes limits, timeouts, response header fields and logs, also for a route of a `FrontEnd`. Options that
   * you leave out keep their values; `undefined` restores the default. If a change is refused, the route stays as it
   * is.
   */
  configure(changes: RouteChanges): void {
    const { path } = this.node;
    refuseOptions(`${path}.configure`, changes, ROUTE_CHANGES, ({ expect: expected, access, ...fields }) => [
      ...removedProblems(this, `${path}.configure`, "called"),
      ...accessOptionProblems(`${path}.access`, access),
      ...routeProblems(path, { ...this.section, ...fields }),
      ...expectedProblems(this, expected),
    ]);
    this.props = { ...this.props, ...changes };
    this.useCredentialFiles();
  }

  /**
   * Removes the route from its virtual server. The longest remaining path that matches then handles the requests;
   * otherwise the response is 404.
   */
  remove(): void {
    removeFromTree(this);
  }

  /** @internal The route's section of the config. */
  render(): RouteInput {
    const { policy } = this;
    return { ...this.section, ...(policy === undefined ? {} : { access: policy.name }) };
  }

  /** The same without what the route has from elsewhere. */
  private get section(): RouteInput {
    const { expect: _, access: __, ...fields } = this.props;
    return { ...fields, name: this.name, action: this.action.render() };
  }

  /** @internal The policy that applies to it, and the name of the place that it was given at. */
  get policy(): { readonly name: string; readonly policy: AccessPolicy } | undefined {
    const { access } = this.props;
    const server = this.node.scopes
      .reverse()
      .find((one): one is ClosableServer => VIRTUAL_SERVER.accepts(one))!;
    const name = `${server.name}/${this.name}`;
    const outer = server.outerAccess;
    const closed = this.closedByManual && { name, access: narrowed(outer?.access, this.closedByManual) };
    const nearest = access !== undefined ? { name, access } : (closed ?? outer);
    return nearest === undefined || nearest.access === "open"
      ? undefined
      : { name: nearest.name, policy: nearest.access };
  }

  /** @internal Whether a response is expected explicitly. */
  get expects(): boolean {
    return isExpected(this.props.expect);
  }

  /** @internal The response that is expected of it, as the deployment lists it. */
  expectedRows(server: string): readonly ExpectedRow[] {
    const { match } = this.props;
    const path = isKnown(this.path) ? encodeURI(this.path) : this.path;
    return rowsOfRoute(server, { name: this.name, path, match }, listOfExpected(this.props.expect));
  }
}

/** A virtual server, as its routes see it. */
interface ClosableServer extends IConstruct {
  readonly name: string;
  readonly outerAccess: NamedAccess | undefined;
}

/** Problems of a URL that an action names in place of an upstream. */
const urlProblems = (path: string, { url }: Partial<Action> = {}): Problem[] =>
  url === undefined
    ? []
    : upstreamProblems(path, { name: "url", url }).map((p) => ({ ...p, path: `${path}.action.upstream` }));

/** A proxy keeps a removed upstream for the routes that have named it before. */
const removedUpstream = (path: string, { upstream }: Partial<Action> = {}): Problem[] =>
  removedProblems(upstream, `${path}.action.upstream`, "used");

/** How many requests one client may send; further requests get 429. */
export interface RateLimit extends InputOf<typeof rateLimit> {}

/** The requests of a route, and the action that handles the requests. */
export interface RouteProps extends Omit<InputOf<typeof route>, "name" | "action" | "access"> {
  /** The action that handles the requests. */
  readonly action: Action;
  /** @default - the construct's id */
  readonly name?: string;
  /** @default 60000 (proxied routes of the file-sync service: 36000000) */
  readonly sendTimeoutMs?: number;
  /** @default - those of the virtual server */
  readonly responseHeaders?: ResponseHeaders;
  /**
   * Who may come in, by the client's address; `"open"` for everyone, also below a closed site. It takes the place of the
   * policy of the site, of the front end, and of the application's manual, as a whole.
   * @default - what the application's manual closes; else the policy of the site, or of the front end; else everyone
   */
  readonly access?: AccessOption;
  readonly rateLimit?: RateLimit;
  readonly accessLog?: "off" | AccessLogFile | AccessLogStream;
  readonly errorLog?: "off" | ErrorLogFile | ErrorLogStream;
  /**
   * The response that the route must give after an apply; otherwise the host rolls back. `portico check --live` and
   * `portico doctor` check the response too. An `Activation` or a front end is needed, which writes the expected
   * response into the deployment of the host. `false`: no check, for a route whose upstream may be down, or whose
   * response to `HEAD` does not end.
   * @default - `proxy`: a response of the upstream, not 502, 504 or the proxy's own 503; `redirect`: its status and
   * `Location`; `respond`: its status; `staticFiles`: a file, if the action has an `index`, otherwise no 5xx; `status`: no
   * 5xx
   */
  readonly expect?: false | ExpectedResponse | readonly ExpectedResponse[];
}

/** Options that can change on an existing route: all except `path`, `match`, `action` and `name`. */
export type RouteChanges = Omit<RouteProps, "path" | "match" | "action" | "name">;

const ROUTE_PROPS: PropTable<RouteProps> = {
  ...fieldsOf(route),
  action: required(ACTION),
  access: ACCESS,
  expect: any,
};
/** @internal */
export const ROUTE_CHANGES: PropTable<RouteChanges> = without(ROUTE_PROPS, "path", "match", "action", "name");

/** A route outside a virtual server would never get a request. */
function strayProblems(route: Route): Problem[] {
  const isServer = (scope: object): boolean => VIRTUAL_SERVER.accepts(scope);
  if (route.node.scopes.some(isServer)) return [];
  const fix = "Use a VirtualServer, or a construct below one, as its scope: `server.addRoute(id, props)`.";
  const more = { allowed: "a place below a VirtualServer", fix };
  return [problem("config.unknown-reference", route.node.path, "is not below a VirtualServer", more)];
}
