import { overlap } from "../../model/access/addressSet.js";
import { LOCAL_NETWORKS } from "../../model/access/localNetworks.js";
import type {
  accessPolicy,
  basicAuthentication,
  forwardAuthentication,
} from "../../model/access/policySchema.js";
import type { Problem } from "../../model/index.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { type AccessPolicyInput, accessPolicyProblems } from "../props/checks.js";
import { any, type PropKind } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/**
 * A policy. The one nearest to a route applies as a whole: that of the route, else that of the site, else that of the front
 * end. See docs/access.md.
 */
export interface AccessPolicy extends Omit<InputOf<typeof accessPolicy>, "basic" | "forwardAuth"> {
  readonly basic?: BasicAuthentication;
  readonly forwardAuth?: ForwardAuthentication;
}

/** Basic authentication: a user and a password for what has no log-in of its own. */
export interface BasicAuthentication extends InputOf<typeof basicAuthentication> {}

/** Signing on at a portal, in front of an application. Presets of `Access` know the paths and fields of common portals. */
export interface ForwardAuthentication extends InputOf<typeof forwardAuthentication> {}

/** A portal whose path and fields are known. */
export interface PortalOptions extends Omit<ForwardAuthentication, "url" | "convention" | "copyFields"> {
  /**
   * URL at which the proxy reaches the portal, without a path: `http://127.0.0.1:9091`. A URL with a path is used as it is.
   */
  readonly url: string;
  /**
   * Fields of the portal's response that the upstream gets.
   * @default - those that name the user, the groups and the mail address
   */
  readonly copyFields?: readonly string[];
}

/** A policy, or `"open"`: everyone may come in, also below a closed site. */
export type AccessOption = "open" | AccessPolicy;

/** Values of `access`. */
export class Access {
  private constructor() {}

  /**
   * Addresses of networks that people mean by "at home": loopback, the private ranges of RFC 1918 and RFC 4193, and
   * link-local addresses. Not the range of providers' NAT, 100.64.0.0/10 (RFC 6598), which has other customers of the
   * provider; Tailscale uses it, too.
   */
  static localNetworks(): readonly string[] {
    return LOCAL_NETWORKS;
  }

  /**
   * A policy that asks for a user and a password, in addition to the lists of addresses that it gets:
   * `{ ...Access.basic({ usersFile: "/etc/portico/users" }), deny: ["192.0.2.0/24"] }`. `portico password NAME` makes the
   * lines of the file. Only over TLS, or on private addresses.
   */
  static basic(options: BasicAuthentication): AccessPolicy {
    return { basic: options };
  }

  /**
   * A policy that asks Authelia (4.38 and later) at `/api/authz/forward-auth`, in addition to lists of addresses:
   * `{ ...Access.authelia({ url: "http://127.0.0.1:9091" }), deny: ["192.0.2.0/24"] }`.
   */
  static authelia(options: PortalOptions): AccessPolicy {
    const copyFields = ["Remote-User", "Remote-Groups", "Remote-Name", "Remote-Email"];
    return portal(options, "/api/authz/forward-auth", copyFields);
  }

  /**
   * A policy that asks an outpost of authentik at `/outpost.goauthentik.io/auth/traefik`. The site needs a route
   * `/outpost.goauthentik.io` to the outpost, with `access: "open"`.
   */
  static authentik(options: PortalOptions): AccessPolicy {
    const names = ["username", "groups", "entitlements", "email", "name", "uid"];
    const copyFields = names.map((name) => `X-authentik-${name}`);
    return portal(options, "/outpost.goauthentik.io/auth/traefik", copyFields);
  }

  /**
   * A policy that asks oauth2-proxy at `/`, which has to run with `--reverse-proxy`, `--set-xauthrequest` and
   * `--upstream=static://202`. The site needs a route `/oauth2` to it, with `access: "open"`. It signs users on with any
   * provider of OpenID Connect, such as Pocket ID.
   */
  static oauth2Proxy(options: PortalOptions): AccessPolicy {
    const names = ["User", "Email", "Groups", "Preferred-Username"];
    const copyFields = names.map((name) => `X-Auth-Request-${name}`);
    return portal(options, "/", copyFields);
  }

  /** A policy that asks tinyauth at `/api/auth/traefik`. It signs users on itself, or with a provider such as Pocket ID. */
  static tinyauth(options: PortalOptions): AccessPolicy {
    const copyFields = ["Remote-User", "Remote-Name", "Remote-Email", "Remote-Groups"];
    return portal(options, "/api/auth/traefik", copyFields);
  }
}

const ORIGIN = /^https?:\/\/[^/?]+\/?$/;

function portal(options: PortalOptions, path: string, copyFields: readonly string[]): AccessPolicy {
  // The model refuses what is no object, and says what it received.
  if (typeof options !== "object") return { forwardAuth: options };
  const { url } = options;
  const at = typeof url === "string" && ORIGIN.test(url) ? `${url.replace(/\/$/, "")}${path}` : url;
  return { forwardAuth: { copyFields, ...options, url: at } };
}

/** @internal The model judges it, at the place where it was given. */
export const ACCESS: PropKind = any;

/** @internal */
export const accessOptionProblems = (path: string, given: unknown): Problem[] =>
  given === undefined || given === "open" || !isKnown(given as string)
    ? []
    : accessPolicyProblems(path, given as AccessPolicyInput);

/** @internal A policy with the name of its place. */
export interface NamedAccess {
  readonly name: string;
  readonly access: AccessOption;
}

/** @internal The policy without a part that asks for a user, under a name of its own. */
export function withoutUsers(outer: NamedAccess | undefined, name: string): NamedAccess | undefined {
  if (outer === undefined || outer.access === "open") return outer;
  const { basic, forwardAuth, ...access } = outer.access;
  if (basic === undefined && forwardAuth === undefined) return outer;
  const { allow, deny, denyFile } = access;
  const hasRule = [allow, deny, denyFile].some((rule) => rule !== undefined);
  return hasRule ? { name, access } : undefined;
}

/** @internal Whether the policy leaves it to applications which paths the portal is not asked about. */
export const leavesBypass = (outer: NamedAccess | undefined): boolean =>
  outer !== undefined &&
  outer.access !== "open" &&
  outer.access.forwardAuth !== undefined &&
  outer.access.forwardAuth.bypass === undefined;

/**
 * @internal The policy with the paths of applications' programs, under a name of its own.
 *
 * @param paths that programs request with their own credentials
 */
export function bypassedBy(
  outer: NamedAccess | undefined,
  name: string,
  paths: readonly string[],
): NamedAccess | undefined {
  if (paths.length === 0 || !leavesBypass(outer)) return outer;
  const access = outer!.access as AccessPolicy;
  return {
    name,
    access: { ...access, forwardAuth: { ...access.forwardAuth!, bypass: [...new Set(paths)] } },
  };
}

/**
 * @internal What an application's manual closes stays closed, whatever its site lets in: a client has to pass both. The
 * rest is that of the site.
 */
export function narrowed(outer: AccessOption | undefined, own: AccessPolicy): AccessPolicy {
  if (outer === undefined || outer === "open") return own;
  const { allow = [] } = own;
  const given = outer.allow;
  if (given === undefined) return { ...outer, allow };
  // Two ranges with an address in common: one is within the other. A range that only Terraform knows lets nobody in.
  const both = given
    .filter((range) => isKnown(range))
    .flatMap((a) => allow.filter((b) => overlap(a, b)).map((b) => (lengthOf(a) >= lengthOf(b) ? a : b)));
  return both.length > 0
    ? { ...outer, allow: [...new Set(both)] }
    : { ...outer, deny: ["0.0.0.0/0", "::/0"] };
}

const lengthOf = (range: string): number =>
  Number(range.split("/")[1] ?? (range.includes(":") ? 128 : 32)) + (range.includes(":") ? 0 : 96);
