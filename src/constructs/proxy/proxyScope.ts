import { Construct, type IConstruct } from "constructs";
import { type Problem, problem, type ProxyConfigInput } from "../../model/index.js";
import type { NamedAccess } from "./access.js";
import type { NamedGuard } from "./passwordGuard.js";
import { refuse } from "../props/checks.js";
import type { ProxySettings } from "./proxySettings.js";
import type { TlsFiles, TlsMaterial } from "./tlsMaterial.js";

/** @internal Marks a construct as a proxy, even where two copies of this package are loaded. */
export const PROXY: unique symbol = Symbol.for("cdktf-portico.ReverseProxy") as never;

/** The interface of a proxy for its parts, and for what runs it. */
export interface ProxyScope extends IConstruct {
  readonly [PROXY]: true;
  readonly config: ProxyConfigInput;
  readonly access?: NamedAccess | undefined;
  readonly guard?: NamedGuard | undefined;
  readonly problems: readonly Problem[];
  readonly upstreams: readonly (IConstruct & { readonly name: string })[];
  readonly ticketKeysFile?: string | undefined;
  readonly usedTlsFiles: readonly (readonly [at: string, files: TlsFiles])[];
  readonly credentialFiles: readonly (readonly [at: string, file: string])[];
  onTlsFiles(used: (files: TlsFiles) => void): void;
  onCredentialFiles(used: (file: string) => void): void;
  /** Only a proxy in containers has this method. */
  give?(settings: ProxySettings): boolean;
  tlsFiles(material: TlsMaterial, user?: IConstruct): TlsFiles;
  useCredentialFiles(files: readonly string[]): void;
}

/** @internal The proxy that a construct belongs to: the nearest one above it. */
export function proxyOf(construct: IConstruct): ProxyScope {
  const proxy = construct.node.scopes.reverse().find((scope): scope is ProxyScope => PROXY in scope);
  if (proxy === undefined) {
    const fix = "Use a ReverseProxy, a ContainerProxy, or a construct below one of them, as its scope.";
    const more = { allowed: "a place below a ReverseProxy or a ContainerProxy", fix };
    refuse([problem("config.unknown-reference", construct.node.path, "is not below a proxy", more)]);
  }
  return proxy!;
}

/**
 * @internal The proxy itself, of a construct that may only pass on its members: what the package alone uses is not among
 * those that its authors write.
 */
export function proxyBehind(
  given: IConstruct & { readonly configFile?: IConstruct; readonly listeners: readonly IConstruct[] },
): ProxyScope {
  return proxyOf(PROXY in given ? given : (given.configFile ?? given.listeners[0] ?? given));
}

/** The kinds of a proxy's parts. Each kind has a scope, so that a listener and an upstream may have the same id. */
type PartKind = "Listeners" | "Upstreams" | "VirtualServers";

/** @internal The scope of a part: that of its kind if it is added to a proxy, or else the given one. */
export function scopeOf(scope: Construct, kind: PartKind): Construct {
  if (!Construct.isConstruct(scope) || !(PROXY in scope)) return scope;
  return (scope.node.tryFindChild(kind) as Construct | undefined) ?? new Construct(scope, kind);
}
