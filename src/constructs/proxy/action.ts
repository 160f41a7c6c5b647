import { forwarded, proxyOptions } from "../../model/actions/proxy.js";
import { redirectOptions } from "../../model/actions/redirect.js";
import { respondOptions } from "../../model/actions/respond.js";
import { staticFilesOptions } from "../../model/actions/staticFiles.js";
import { statusOptions } from "../../model/actions/status.js";
import type { IConstruct } from "constructs";
import type { InputOf } from "../../model/schema/inferred.js";
import type { ActionInput } from "../../model/index.js";
import { ACTION, UPSTREAM } from "../props/instances.js";
import { fieldsOf } from "../props/fieldTable.js";
import {
  any,
  either,
  fields,
  number,
  type PropTable,
  record,
  refuseArgument,
  refuseNew,
  refuseOptions,
  required,
  text,
} from "../props/propTable.js";
import { type IUpstream, upstreamAt } from "./upstream.js";

/** The action that handles the requests of a route. Each static method creates one kind of action. */
export abstract class Action {
  /**
   * The upstream that receives the requests; undefined for other actions than `proxy`. The action of a URL has an
   * upstream once a route has the action: `route.action.upstream`.
   */
  readonly upstream?: IUpstream;
  /** The directory that files are served from; undefined for other actions than `staticFiles`. */
  readonly directory?: string;
  // Other members are optional or for the package alone: without this, editors and the compiler would take any object.
  declare private readonly kind: "Action";

  /** @internal The URL that it names in place of an upstream. */
  readonly url?: string;
  /** @internal The action as a route has it, with the upstream of the route's proxy. */
  readonly of: (route: IConstruct) => Action = () => this;

  /** @internal Made through its static methods. */
  constructor() {
    refuseNew("Action", ACTION, new.target === Action);
  }

  /** @internal Files on the host that request fields are taken from, by field. */
  get credentials(): Readonly<Record<string, string>> {
    return {};
  }

  /**
   * Forwards requests to an upstream; bodies stream both ways, unbuffered.
   *
   * @param upstream an upstream, or a URL as `url` of `UpstreamProps`. The routes of a proxy with the same URL share one
   * upstream, which has the default options and is named after the URL: `127.0.0.1-8000`.
   */
  static proxy(upstream: IUpstream | string, options: ProxyOptions = {}): Action {
    const given = { upstream: required(UPSTREAM_OR_URL) };
    refuseArgument("Action.proxy", { upstream }, given, options, PROXY_OPTIONS);
    return typeof upstream === "string"
      ? new UrlAction(upstream, options)
      : new ProxyActionProp(upstream, options);
  }

  /**
   * Sends the files of a directory. The rest of the path, after the route's path, names the file.
   * Directories are never listed. A missing file results in 404, a file without read permission for others in 403.
   *
   * @param directory absolute path on the host; the directory and all directories above need read and execute
   * permission for others
   */
  static staticFiles(directory: string, options: StaticFilesOptions = {}): Action {
    const given = { directory: required(text) };
    refuseArgument("Action.staticFiles", { directory }, given, options, STATIC_FILES_OPTIONS);
    return new StaticFilesActionProp(directory, options);
  }

  /** Redirects to another scheme, port, host or path. */
  static redirect(options: RedirectOptions = {}): Action {
    refuseOptions("Action.redirect", options, REDIRECT_OPTIONS);
    return new RedirectActionProp(options);
  }

  /**
   * Sends a fixed response.
   *
   * @param status 200 to 599
   */
  static respond(status: number, options: RespondOptions = {}): Action {
    refuseArgument("Action.respond", { status }, { status: required(number) }, options, RESPOND_OPTIONS);
    return new RespondActionProp(status, options);
  }

  /**
   * Serves a status page: traffic, transfers, upstream servers, certificates, errors; for GET and HEAD of the route's
   * path, to the clients in `allow`. With `?json` the page is JSON.
   */
  static status(options: StatusOptions): Action {
    refuseOptions("Action.status", options, STATUS_OPTIONS);
    return new StatusActionProp(options);
  }

  /** @internal The action's section of the config. */
  abstract render(): ActionInput;
}

/** Options for requests to an upstream. */
export interface ProxyOptions extends InputOf<typeof proxyOptions> {
  readonly forwarded?: ForwardedOptions;
  /**
   * @remarks The service receives the file as a credential, also after a change. The value never enters config,
   * synthesis or state: `{ Authorization: "/etc/portico-secrets/office" }`.
   */
  readonly setHeadersFromCredential?: Readonly<Record<string, string>>;
}

/** Forwarding header fields of requests to an upstream; each field can be switched off. */
export interface ForwardedOptions extends InputOf<typeof forwarded> {}

/** Options for files from a directory. */
export interface StaticFilesOptions extends InputOf<typeof staticFilesOptions> {}

/** Target and status of a redirect. */
export interface RedirectOptions extends InputOf<typeof redirectOptions> {}

/** Parts of a fixed response besides the status. */
export interface RespondOptions extends InputOf<typeof respondOptions> {}

/** Clients that may see the status page, and the details about clients in the page. */
export interface StatusOptions extends InputOf<typeof statusOptions> {}

class ProxyActionProp extends Action {
  constructor(
    override readonly upstream: IUpstream,
    private readonly options: ProxyOptions,
  ) {
    super();
  }

  override get credentials(): Readonly<Record<string, string>> {
    return this.options.setHeadersFromCredential ?? {};
  }

  override render(): ActionInput {
    return { type: "proxy", upstream: this.upstream.name, ...this.options };
  }
}

/** To a URL: which upstream has it, the proxy says. */
class UrlAction extends Action {
  override readonly of = (route: IConstruct): Action =>
    new ProxyActionProp(upstreamAt(route, this.url), this.options);

  constructor(
    override readonly url: string,
    private readonly options: ProxyOptions,
  ) {
    super();
  }

  override render(): ActionInput {
    return { type: "proxy", upstream: "url", ...this.options };
  }
}

class StaticFilesActionProp extends Action {
  constructor(
    override readonly directory: string,
    private readonly options: StaticFilesOptions,
  ) {
    super();
  }

  override render(): ActionInput {
    return { type: "staticFiles", directory: this.directory, ...this.options };
  }
}

class RedirectActionProp extends Action {
  constructor(private readonly options: RedirectOptions) {
    super();
  }

  override render(): ActionInput {
    return { type: "redirect", ...this.options };
  }
}

class RespondActionProp extends Action {
  constructor(
    private readonly status: number,
    private readonly options: RespondOptions,
  ) {
    super();
  }

  override render(): ActionInput {
    return { type: "respond", status: this.status, ...this.options };
  }
}

class StatusActionProp extends Action {
  constructor(private readonly options: StatusOptions) {
    super();
  }

  override render(): ActionInput {
    return { type: "status", ...this.options };
  }
}

/** @internal */
export const PROXY_OPTIONS: PropTable<ProxyOptions> = {
  ...fieldsOf(proxyOptions),
  forwarded: fields<ForwardedOptions>(fieldsOf(forwarded)),
  setHeaders: record,
  setHeadersFromCredential: record,
};

const UPSTREAM_OR_URL = {
  ...either(UPSTREAM, text),
  allowed: "an Upstream, or a URL",
  fix: 'Use `proxy.addUpstream(id, { url })`, or a URL such as "http://127.0.0.1:8000".',
};
export const STATIC_FILES_OPTIONS: PropTable<StaticFilesOptions> = fieldsOf(staticFilesOptions);
export const REDIRECT_OPTIONS: PropTable<RedirectOptions> = fieldsOf(redirectOptions);
const RESPOND_OPTIONS: PropTable<RespondOptions> = fieldsOf(respondOptions);
const STATUS_OPTIONS: PropTable<StatusOptions> = { ...fieldsOf(statusOptions), allow: required(any) };
