import type { ActionInput } from "../model/index.js";
import { UPSTREAM } from "./props/instances.js";
import {
  any,
  fields,
  number,
  type PropTable,
  record,
  refuseArgument,
  refuseOptions,
  required,
  text,
} from "./props/propTable.js";
import type { IUpstream } from "./upstream.js";

/** What answers the requests of a route. A closed choice: take one of the static methods. */
export abstract class Action {
  /** The upstream that requests go to; undefined for actions that answer themselves. */
  readonly upstream?: IUpstream;
  /** The directory that files are served from; undefined for other actions. */
  readonly directory?: string;
  /** @internal Files on the host that request fields are taken from, by field. */
  get credentials(): Readonly<Record<string, string>> {
    return {};
  }

  /** Forwards requests to an upstream; bodies stream both ways, unbuffered. */
  static proxy(upstream: IUpstream, options: ProxyOptions = {}): Action {
    refuseArgument("Action.proxy", { upstream }, { upstream: required(UPSTREAM) }, options, PROXY_OPTIONS);
    return new ProxyAction(upstream, options);
  }

  /**
   * Serves files from a directory, for GET and HEAD; the part of the path after the route's path names the
   * file. Directories are never listed. A missing file gets 404, one that others may not read gets 403.
   *
   * @param directory absolute path on the host; it and all directories above it need read and execute
   * permission for others
   */
  static staticFiles(directory: string, options: StaticFilesOptions = {}): Action {
    const given = { directory: required(text) };
    refuseArgument("Action.staticFiles", { directory }, given, options, STATIC_FILES_OPTIONS);
    return new StaticFilesAction(directory, options);
  }

  /** A redirect to another scheme, port, host or path. */
  static redirect(options: RedirectOptions = {}): Action {
    refuseOptions("Action.redirect", options, REDIRECT_OPTIONS);
    return new RedirectAction(options);
  }

  /**
   * A fixed response.
   *
   * @param status 200 to 599
   */
  static respond(status: number, options: RespondOptions = {}): Action {
    refuseArgument("Action.respond", { status }, { status: required(number) }, options, RESPOND_OPTIONS);
    return new RespondAction(status, options);
  }

  /**
   * A page that shows what goes on: traffic, transfers, upstream servers, certificates, errors; for GET and HEAD of the
   * route's path, to the clients that `allow` names. With `?json` it is JSON.
   */
  static status(options: StatusOptions): Action {
    refuseOptions("Action.status", options, STATUS_OPTIONS);
    return new StatusAction(options);
  }

  /** @internal Its section of the config. */
  abstract render(): ActionInput;
}

/** How requests are passed to an upstream. */
export interface ProxyOptions {
  readonly strip?: "none" | "raw" | "nginx";
  readonly rewrite?: string;
  readonly hostHeader?: "client" | "upstream";
  readonly forwarded?: ForwardedOptions;
  readonly trustedFields?: readonly string[];
  readonly setHeaders?: Readonly<Record<string, string>>;
  /**
   * @remarks The service gets the file as a credential, also when it changes, and the value never enters config, synthesis or
   * state: `{ Authorization: "/etc/portico-secrets/office" }`.
   */
  readonly setHeadersFromCredential?: Readonly<Record<string, string>>;
  readonly destination?: "path" | "absolute" | "unchanged";
  readonly webSocket?: boolean;
}

/** Forwarding fields that an upstream gets; each can be switched off. */
export interface ForwardedOptions {
  readonly realIp?: boolean;
  readonly for?: boolean;
  readonly proto?: boolean;
  readonly host?: string;
}

/** How files from a directory are served. */
export interface StaticFilesOptions {
  readonly index?: readonly string[];
  readonly symlinks?: "inside" | "anywhere" | "never";
  readonly cacheControl?: string;
  readonly precompressed?: readonly ("zstd" | "br" | "gzip")[];
}

/** Where a redirect leads. */
export interface RedirectOptions {
  readonly status?: 301 | 302 | 303 | 307 | 308;
  readonly scheme?: "http" | "https";
  readonly port?: number;
  readonly host?: string;
  readonly path?: string;
}

/** What a fixed response contains besides its status. */
export interface RespondOptions {
  readonly contentType?: string;
  readonly body?: string;
}

/** Who sees the status, and how much of clients. */
export interface StatusOptions {
  readonly allow: readonly string[];
  readonly addresses?: "whole" | "shortened";
  readonly fileNames?: boolean;
}

class ProxyAction extends Action {
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

class StaticFilesAction extends Action {
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

class RedirectAction extends Action {
  constructor(private readonly options: RedirectOptions) {
    super();
  }

  override render(): ActionInput {
    return { type: "redirect", ...this.options };
  }
}

class RespondAction extends Action {
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

class StatusAction extends Action {
  constructor(private readonly options: StatusOptions) {
    super();
  }

  override render(): ActionInput {
    return { type: "status", ...this.options };
  }
}

const PROXY_OPTIONS: PropTable<ProxyOptions> = {
  strip: any,
  rewrite: any,
  hostHeader: any,
  forwarded: fields<ForwardedOptions>({ realIp: any, for: any, proto: any, host: any }),
  trustedFields: any,
  setHeaders: record,
  setHeadersFromCredential: record,
  destination: any,
  webSocket: any,
};

const STATIC_FILES_OPTIONS: PropTable<StaticFilesOptions> = {
  index: any,
  symlinks: any,
  cacheControl: any,
  precompressed: any,
};

const REDIRECT_OPTIONS: PropTable<RedirectOptions> = {
  status: any,
  scheme: any,
  port: any,
  host: any,
  path: any,
};

const RESPOND_OPTIONS: PropTable<RespondOptions> = { contentType: any, body: any };

const STATUS_OPTIONS: PropTable<StatusOptions> = { allow: required(any), addresses: any, fileNames: any };
