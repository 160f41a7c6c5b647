import { overlap } from "../../model/access/addressSet.js";
import { LOCAL_NETWORKS } from "../../model/access/localNetworks.js";
import type { accessPolicy, basicAuthentication } from "../../model/access/policySchema.js";
import type { Problem } from "../../model/index.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { type AccessPolicyInput, accessPolicyProblems } from "../props/checks.js";
import { any, type PropKind } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/**
 * A policy. The one nearest to a route applies as a whole: that of the route, else that of the site, else that of the front
 * end. See docs/access.md.
 */
export interface AccessPolicy extends Omit<InputOf<typeof accessPolicy>, "basic"> {
  readonly basic?: BasicAuthentication;
}

/** Basic authentication: a user and a password for what has no log-in of its own. */
export interface BasicAuthentication extends InputOf<typeof basicAuthentication> {}

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
  if (outer === undefined || outer.access === "open" || outer.access.basic === undefined) return outer;
  const { basic: _, ...access } = outer.access;
  const { allow, deny, denyFile } = access;
  const hasRule = [allow, deny, denyFile].some((rule) => rule !== undefined);
  return hasRule ? { name, access } : undefined;
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
