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
  /**
   * Path that goes upstream in place of the route's path, as it is sent; what follows the route's path follows it:
   * with `rewrite: "/ping"`, a route for `/thumbnail/ping` asks for `/ping`, and one for `/api` asks for `/ping/v1` where a
   * client asks for `/api/v1`. URLs in `Location` and `Refresh` are changed back. `strip` says how the rest is passed:
   * byte for byte, or with `nginx` decoded and encoded again.
   * @default - the path stays, or is cut by `strip`
   */
  readonly rewrite?: string;
  readonly hostHeader?: "client" | "upstream";
  readonly forwarded?: ForwardedOptions;
  readonly trustedFields?: readonly string[];
  /**
   * Further request fields, by name; each replaces the client's, and an empty value removes it. Fields of framing and
   * connection, and `Host`, are refused (`config.bad-header`).
   * @default - none
   */
  readonly setHeaders?: Readonly<Record<string, string>>;
  /**
   * Request fields whose values are secrets, each with the absolute path of a file on the host that has the value in one
   * line: `{ Authorization: "/etc/portico-secrets/office" }`. Only root has to read the file. It gets to the proxy as a
   * credential of its service, also when the file changes, and its value never enters config, synthesis or state.
   * @default - none
   */
  readonly setHeadersFromCredential?: Readonly<Record<string, string>>;
  /**
   * WebDAV `Destination` that points at this front end (RFC 4918, 10.3): `path`: cut to its path; `absolute`:
   * with the host and scheme that the upstream sees; `unchanged`: left alone, which WebDAV servers behind a
   * proxy answer with 502.
   * @default "path"
   */
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
  /**
   * Encoded files that are sent in place of a file, to clients that accept their coding: `NAME.zst` for `zstd`, `NAME.br`
   * for `br`, `NAME.gz` for `gzip`, beside the file and readable as it is. Of codings that a client accepts with equal
   * weight, the first is taken. The build that writes a file has to write these too: their age is not compared. Only for
   * files that are the same for everybody.
   * @default - none: files are sent as they are
   */
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
