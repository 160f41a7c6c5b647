import type { ProxyConfig } from "./config.js";
import { isBypassed } from "./forwardAuth.js";
import type { NormalisedPath } from "../net/target.js";
import { AddressSet, type PackedAddresses } from "../access/addressSet.js";

/** Who may come in, of the config: `accessPolicies`. */
export type AccessPolicyConfig = NonNullable<ProxyConfig["accessPolicies"]>[string];

/** Contents of the files that policies name, by path. */
export type AccessLists = Readonly<Record<string, PackedAddresses>>;

/** A policy refuses a request. */
export interface AccessRefusal {
  /** Name of the policy, which is the place that it was given at: `vault/admin`; of `clientCertificate`, the virtual server. */
  readonly policy: string;
  /** Field of the policy that decided. */
  readonly by: "allow" | "deny" | "denyFile" | "basic" | "forwardAuth" | "clientCertificate";
  /** The response; 429 and 503 where too many passwords wait to be verified; of a portal any up to 499, 502 and 503. */
  readonly refusal: number | "close";
}

type AddressField = "allow" | "deny" | "denyFile";

/** A refusal in logs: `vault/admin allow`. */
export const refusalText = ({ policy, by }: AccessRefusal): string => `${policy} ${by}`;

/** nginx's 444: the connection is closed without a response. */
export const NO_RESPONSE = 444;

/** The status in logs. */
export const refusalStatus = ({ refusal }: AccessRefusal): number =>
  refusal === "close" ? NO_RESPONSE : refusal;

/** Judges clients by one policy: by its address lists, and tells what else a client needs. */
export class PolicyJudge {
  private readonly allowed: AddressSet | undefined;
  private readonly denied: AddressSet | undefined;
  private readonly refusals: Readonly<Record<AddressField, AccessRefusal>>;
  private list: AddressSet | undefined;
  /** The refusal of a client without a user and a password; undefined if it needs none. */
  readonly unknownUser: AccessRefusal | undefined;

  constructor(
    readonly name: string,
    readonly policy: AccessPolicyConfig,
  ) {
    const { allow, deny, refusal } = policy;
    this.allowed = allow && AddressSet.of(allow);
    this.denied = deny && AddressSet.of(deny);
    const by = (field: AddressField): AccessRefusal => ({ policy: name, by: field, refusal });
    this.refusals = { allow: by("allow"), deny: by("deny"), denyFile: by("denyFile") };
    this.unknownUser = policy.basic && { policy: name, by: "basic", refusal: 401 };
  }

  /** Whether it may need more of a request than an address. */
  get asks(): boolean {
    const { basic, forwardAuth } = this.policy;
    return basic !== undefined || forwardAuth !== undefined;
  }

  /** Whether it needs more than an address of this request. */
  asksFor(target: string, path: NormalisedPath): boolean {
    const { basic, forwardAuth } = this.policy;
    return basic !== undefined || (forwardAuth !== undefined && !isBypassed(forwardAuth, target, path));
  }

  /** From now on `denyFile` has these addresses. */
  setList(list: AddressSet): void {
    this.list = list;
  }

  /**
   * Why a client is refused; undefined if it is not. `deny` and `denyFile` have priority over `allow`. A client without
   * an address, which is gone by now, is refused.
   */
  refusal(address: string): AccessRefusal | undefined {
    const { allowed, denied, list, refusals } = this;
    if (denied?.has(address) === true || address === "") return refusals.deny;
    if (list?.has(address) === true) return refusals.denyFile;
    return allowed === undefined || allowed.has(address) ? undefined : refusals.allow;
  }
}
