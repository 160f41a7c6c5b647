import { Construct, type IConstruct } from "constructs";
import type { InputOf } from "../../model/schema/inferred.js";
import { freeId } from "../props/constructIds.js";
import { proxyOf, scopeOf } from "./proxyScope.js";
import { removeFromTree } from "../props/removal.js";
import { type UpstreamInput, urlsOf } from "../../model/index.js";
import {
  upstream,
  type upstreamHealth,
  type upstreamServer,
  type upstreamSticky,
} from "../../model/config/upstream.js";
import type { upstreamTls } from "../../model/config/tls.js";
import { upstreamProblems } from "../props/checks.js";
import { hasTokens } from "../props/tokens.js";
import { warn } from "../props/warn.js";
import { fieldsOf } from "../props/fieldTable.js";
import { knownList, type PropTable, refuseProps } from "../props/propTable.js";

/**
 * The target of routes: an `Upstream`, also of another stack, or a construct of your own that contains an `Upstream`.
 */
export interface IUpstream extends IConstruct {
  /** Name in the config and in logs. */
  readonly name: string;
  /** URL of the upstream; the first of `urls`. */
  readonly url: string;
  /** URLs of the servers. */
  readonly urls: readonly string[];
  /** TLS options, if the URL is `https`. */
  readonly tls?: UpstreamTls;
  /**
   * The upstream's section of the config. Your own class returns the section of an `Upstream` that it contains, or
   * builds the section itself.
   */
  render(): UpstreamInput;
}

/**
 * A backend that routes forward requests to. An upstream does not belong to one proxy: every proxy whose routes use
 * the upstream renders it.
 */
export class Upstream extends Construct implements IUpstream {
  readonly name: string;
  readonly url: string;
  readonly urls: readonly string[];
  readonly tls?: UpstreamTls;
  private readonly input: UpstreamInput;

  /**
   * An existing upstream at a URL such as an output of another stack or an attribute of a resource. All other options
   * have their defaults. You do not need this for an upstream of another stack of the same app: use the object
   * itself.
   *
   * @param url as `url` of `UpstreamProps`
   */
  static fromUrl(scope: Construct, id: string, url: string): IUpstream {
    return new Upstream(scope, id, { url });
  }

  constructor(scope: Construct, id: string, props: UpstreamProps) {
    const place = scopeOf(scope, "Upstreams");
    super(place, freeId(place, id));
    refuseProps(this, props, UPSTREAM_PROPS, (fit) =>
      upstreamProblems(this.node.path, { ...(fit as UpstreamProps), name: fit.name ?? id }),
    );
    this.input = { ...props, name: props.name ?? id };
    this.name = this.input.name;
    this.urls = urlsOf(this.input).map(({ url }) => url);
    [this.url] = this.urls as [string];
    if (props.tls !== undefined) this.tls = props.tls;
    if (props.tls?.verify === false) warn(this, UNVERIFIED);
  }

  /**
   * Removes the upstream, also that of a front end. As long as a route names it, its proxy still has it; no other route
   * may name it any more.
   */
  remove(): void {
    removeFromTree(this);
  }

  render(): UpstreamInput {
    return this.input;
  }
}

/** @internal Upstreams that only routes with their URL use: without such a route, the proxy does not have them. */
export const madeOfUrls = new WeakSet<IUpstream>();

/** The upstreams of each proxy, by URL. */
const byUrl = new WeakMap<IConstruct, Map<string, Upstream>>();

/** @internal The upstream of a URL that the routes of a proxy share. */
export function upstreamAt(route: IConstruct, url: string): Upstream {
  const proxy = proxyOf(route);
  const known = byUrl.get(proxy) ?? new Map<string, Upstream>();
  byUrl.set(proxy, known);
  let upstream = known.get(url);
  if (upstream === undefined) {
    const place = scopeOf(proxy as IConstruct as Construct, "Upstreams");
    const isTaken = (id: string): boolean =>
      place.node.tryFindChild(id) !== undefined || proxy.upstreams.some(({ name }) => name === id);
    // A URL that only Terraform knows has no text to name it after.
    const words = (hasTokens(url) ? route.node.id : url.replace(/^\w+:/, "")).replaceAll(/[^\w.-]+/g, "-");
    const id = words.replace(/^[^A-Za-z0-9]+/, "").slice(0, 60) || "url";
    let free = id;
    for (let i = 2; isTaken(free); i++) free = `${id}-${i}`;
    known.set(url, (upstream = new Upstream(place, free, { url })));
    madeOfUrls.add(upstream);
  }
  return upstream;
}

/** @internal Files of the host that an upstream's TLS takes, by the names of their fields. */
export function tlsFilesOf({ tls = {} }: IUpstream): Readonly<Record<string, string>> {
  const { caFile, certificateFile, privateKeyFile } = tls;
  const files = Object.entries({ caFile, certificateFile, privateKeyFile });
  return Object.fromEntries(files.filter((file): file is [string, string] => file[1] !== undefined));
}

/** @internal Props with changes to them: `servers` take the place of `url`. */
export function withChanges(props: UpstreamProps, changes: Partial<UpstreamProps> = {}): UpstreamProps {
  return { ...props, ...(changes.servers === undefined ? {} : { url: undefined }), ...changes };
}

const UNVERIFIED =
  "`verify: false` accepts every server that responds at the upstream's address, and that server can read and change " +
  "everything: set `caFile` to the root certificate, or to the certificate itself if it is self-signed, and remove `verify: false`.";

export interface UpstreamTls extends InputOf<typeof upstreamTls> {}

/** A server of an upstream. */
export interface UpstreamServer extends InputOf<typeof upstreamServer> {}

export interface UpstreamSticky extends InputOf<typeof upstreamSticky> {}

export interface UpstreamHealth extends InputOf<typeof upstreamHealth> {}

/** URL of a backend, and options of connections to the backend. */
export interface UpstreamProps extends Omit<InputOf<typeof upstream>, "name"> {
  /** @default - the construct's id */
  readonly name?: string;
  /**
   * @remarks Permission to write to a socket must be granted to others, or to a group of `service: { groups }`. A
   * socket below /tmp, /home or /run/user is refused (`unit.no-access`).
   * @default - `servers`, required without a `url`
   */
  readonly url?: string;
  readonly servers?: readonly UpstreamServer[];
  readonly sticky?: UpstreamSticky;
  readonly health?: UpstreamHealth;
  readonly tls?: UpstreamTls;
  /** @default 5000 (the file-sync service: 36000000) */
  readonly connectTimeoutMs?: number;
  /** @default 60000 (the file-sync service: 36000000) */
  readonly sendTimeoutMs?: number;
  /** @default 60000 (the file-sync service: 36000000) */
  readonly readTimeoutMs?: number;
}

/** @internal */
export const UPSTREAM_PROPS: PropTable<UpstreamProps> = { ...fieldsOf(upstream), servers: knownList };
