import type { IConstruct } from "constructs";
import { TerraformStack } from "cdktf";
import {
  type ListenerInput,
  parseConfig,
  type Problem,
  problem,
  ProblemError,
  type ProxyConfigInput,
  type RouteInput,
  type UpstreamInput,
  upstreamsOf,
  type VirtualServerInput,
} from "../../model/index.js";
import { proxyLoops } from "../../model/config/crossChecks.js";
import { isFilePath } from "../../model/text/textRule.js";
import { checkAroundTokens, isKnown } from "./tokens.js";

/** Throws if there are problems: constructors refuse bad input at once, where it was given. */
export function refuse(problems: readonly Problem[]): void {
  if (problems.length > 0) throw new ProblemError(problems);
}

/**
 * Every problem of a config, as the host would report it; values that are not known yet are left out.
 *
 * @param ownNames addresses and names of the host, which its config need not mention
 */
export function configProblems(
  config: ProxyConfigInput,
  ownNames: readonly string[] = [],
): readonly Problem[] {
  const problemsOf = (known: ProxyConfigInput): readonly Problem[] => {
    const result = parseConfig(known);
    return result.ok ? proxyLoops(result.value, ownNames) : result.problems;
  };
  return checkAroundTokens(config, problemsOf).problems;
}

const SERVER: VirtualServerInput = {
  name: "s",
  serverNames: ["_"],
  listeners: ["l"],
  default: true,
  routes: [],
};
/** At a documentation address (RFC 5737), so that no upstream can seem to lead to it. */
const LISTENER: ListenerInput = { name: "l", address: "192.0.2.1", port: 1, protocol: "http" };
const SECURE: ListenerInput = { ...LISTENER, protocol: "https", tls: { certificate: "/c", key: "/k" } };

/** Problems of a listener at a construct's path, by the same rules that the host applies to it. */
export function listenerProblems(path: string, part: ListenerInput): Problem[] {
  const config = {
    version: 1,
    listeners: [part],
    virtualServers: [{ ...SERVER, listeners: [part.name] }],
  } as const;
  return partProblems(config, "listeners[0]", path);
}

export function upstreamProblems(path: string, part: UpstreamInput): Problem[] {
  const config = { version: 1, listeners: [LISTENER], upstreams: [part], virtualServers: [SERVER] } as const;
  return partProblems(config, "upstreams[0]", path);
}

/** @param secure whether one of its listeners is https */
export function virtualServerProblems(path: string, part: VirtualServerInput, secure: boolean): Problem[] {
  const listeners = part.listeners.map((name, i) => ({ ...(secure ? SECURE : LISTENER), name, port: i + 1 }));
  return partProblems({ version: 1, listeners, virtualServers: [part] }, "virtualServers[0]", path);
}

/** Problems of an option of a virtual server that is still to be made, at the path of the prop it came by. */
export function serverOptionProblems<
  K extends "hsts" | "responseHeaders" | "errorPages" | "pauseResponse" | "clientCertificate",
>(path: string, name: K, value: VirtualServerInput[K]): Problem[] {
  const at = `virtualServers[0].${name}`;
  const config = { version: 1, listeners: [SECURE], virtualServers: [{ ...SERVER, [name]: value }] } as const;
  return problemsAt(path, config, at);
}

/** A policy as it may be written. */
export type AccessPolicyInput = NonNullable<ProxyConfigInput["accessPolicies"]>[string];

/** The same of an access policy. */
export function accessPolicyProblems(path: string, value: AccessPolicyInput): Problem[] {
  const config = {
    version: 1,
    accessPolicies: { policy: value },
    listeners: [LISTENER],
    virtualServers: [SERVER],
  } as const;
  return problemsAt(path, config, "accessPolicies.policy");
}

/** A guard as it may be written. */
export type PasswordGuardInput = NonNullable<ProxyConfigInput["passwordGuards"]>[string];

/** The same of a guard against guessing. */
export function guardInputProblems(path: string, value: PasswordGuardInput): Problem[] {
  const config = {
    version: 1,
    passwordGuards: { guard: value },
    listeners: [LISTENER],
    virtualServers: [SERVER],
  } as const;
  return problemsAt(path, config, "passwordGuards.guard");
}

/** The same of an option of a listener. */
export function listenerOptionProblems<K extends "proxyProtocol">(
  path: string,
  name: K,
  value: ListenerInput[K],
): Problem[] {
  const config = {
    version: 1,
    listeners: [{ ...LISTENER, [name]: value }],
    virtualServers: [SERVER],
  } as const;
  return problemsAt(path, config, `listeners[0].${name}`);
}

function problemsAt(path: string, config: ProxyConfigInput, at: string): Problem[] {
  const named = (text: string): string => text.replaceAll(at, path);
  return configProblems(config).map((p) => ({ ...p, path: named(p.path), message: named(p.message) }));
}

export function routeProblems(path: string, part: RouteInput): Problem[] {
  // Checked alone, with stand-ins for its context: the upstreams that it names, and a trusted proxy.
  const upstreams = upstreamsOf(part.action).map(({ value }) => ({ name: value, url: "http://localhost:2" }));
  const virtualServers = [{ ...SERVER, routes: [part] }];
  const trustedProxies = ["192.0.2.2"];
  const config = { version: 1, listeners: [LISTENER], upstreams, virtualServers, trustedProxies } as const;
  return partProblems(config, "virtualServers[0].routes[0]", path);
}

/** Problems of the settings of a proxy as a whole. */
export function proxyProblems(path: string, part: Omit<ProxyConfigInput, ProxyParts>): Problem[] {
  const config = { ...part, listeners: [LISTENER], virtualServers: [SERVER] };
  return configProblems(config).map((p) => ({ ...p, path: `${path}.${p.path}` }));
}

type ProxyParts = "certificateAuthorities" | "listeners" | "upstreams" | "virtualServers";

/** Problems below one path of a config, reported at the path of the code that made that part. */
export function partProblems(config: ProxyConfigInput, at: string, path: string): Problem[] {
  const here = configProblems(config).filter((p) => `${p.path}.`.startsWith(`${at}.`));
  return here.map((p) => ({
    ...p,
    path: path + p.path.slice(at.length),
    // The user has not written this config, so its indexes are replaced.
    message: p.message.replaceAll(at, path),
  }));
}

/** Paths on a host that are not absolute or not in normal form. */
export function hostPathProblems(
  paths: Readonly<Record<string, string | undefined>> = {},
  at: string,
): Problem[] {
  return Object.entries(paths).flatMap(([name, path]) => {
    if (path === undefined || !isKnown(path) || (isFilePath(path) && path !== "/" && !path.endsWith("/")))
      return [];
    const allowed =
      "an absolute path on the host, without `//`, `.` or `..` segments and without a trailing slash";
    return [
      problem("config.bad-file-path", `${at}.${name}`, "is not a path on the host", {
        received: path,
        allowed,
      }),
    ];
  });
}

/**
 * A problem if the stack is of another library than this package imports: of cdktn, cdktf's fork, which has cdktf's own
 * symbols, so that each takes the other's constructs and fails when it synthesizes them. Two copies of one library go
 * together.
 */
export function libraryProblems(construct: IConstruct): Problem[] {
  const stack = construct.node.scopes.findLast((scope) => TerraformStack.isStack(scope));
  const [own, other] = [libraryOf(TerraformStack), stack && libraryOf(stack.constructor)];
  if (other === undefined || other === own) return [];
  const more = {
    received: other,
    allowed: `constructs of ${own}`,
    fix: `Create the stack with ${own}, or import ${other}-portico in place of ${own}-portico.`,
  };
  return [problem("config.wrong-type", construct.node.path, `is in a stack of the library ${other}`, more)];
}

/** The library that a class is of, which jsii notes in it: `cdktf.TerraformStack`. */
function libraryOf(made: object): string | undefined {
  const { fqn } = (made as { [RTTI]?: { fqn?: string } })[RTTI] ?? {};
  return fqn?.split(".")[0];
}

const RTTI = Symbol.for("jsii.rtti");
