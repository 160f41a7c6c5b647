import { Annotations, type IAspect } from "cdktf";
import type { IConstruct } from "constructs";
import { parseConfig } from "../../model/index.js";
import {
  isOpenRisk,
  type SecurityFinding,
  securityFindings,
  signsItself,
} from "../../model/review/security.js";
import { choice, refuseOptions } from "../props/propTable.js";
import { warn } from "../props/warn.js";
import { certificateHere } from "./certificatesHere.js";
import { ReverseProxyBase } from "./reverseProxyBase.js";

/** Options of {@link SecurityReview}. */
export interface SecurityReviewOptions {
  /**
   * What makes synthesis fail: findings of level `error`, or also those of level `warning`. The others are warnings.
   * `never`: all are warnings.
   * @default "error"
   */
  readonly failOn?: "error" | "warning" | "never";
}

/**
 * An Aspect that reviews the security of each front end and proxy below a scope, as `portico check --security` does:
 * `Aspects.of(stack).add(new SecurityReview())`. `acceptedRisks` of the proxy accepts findings.
 */
export class SecurityReview implements IAspect {
  private readonly failing: readonly SecurityFinding["level"][];
  private readonly reviewed = new WeakSet<IConstruct>();

  /** @throws ProblemError if an option is not allowed (`config.*`) */
  constructor(options: SecurityReviewOptions = {}) {
    refuseOptions("SecurityReview", options, { failOn: choice("error", "warning", "never") });
    const { failOn = "error" } = options;
    this.failing = { never: [], error: ["error"] as const, warning: ["error", "warning"] as const }[failOn];
  }

  /** Reviews a proxy; cdktf calls this for each construct of the scope. */
  visit(node: IConstruct): void {
    if (!(node instanceof ReverseProxyBase) || this.reviewed.has(node)) return;
    this.reviewed.add(node);
    const config = parseConfig(node.config);
    // Synthesis refuses such a config, and says why.
    if (!config.ok) return;
    for (const finding of securityFindings(config.value, (file) => isSelfSigned(node, file)).filter(
      isOpenRisk,
    )) {
      const construct = constructAt(node, finding.place);
      const message = textOf(finding);
      if (this.failing.includes(finding.level)) Annotations.of(construct).addError(message);
      else warn(construct, message);
    }
  }
}

const textOf = ({ id, message, fix, value }: SecurityFinding): string =>
  `${message[0]!.toUpperCase()}${message.slice(1)}${value === undefined ? "" : ` (${value})`}. ${fix} [${id}]`;

/** A certificate that Terraform makes is self-signed; others may be on the machine that synthesizes. */
function isSelfSigned(proxy: ReverseProxyBase, file: string): boolean | undefined {
  if (
    proxy.usedTlsFiles.some(
      ([, { selfSigned, certificate }]) => selfSigned !== undefined && certificate === file,
    )
  )
    return true;
  const certificate = certificateHere(proxy, file);
  return certificate && signsItself(certificate);
}

function constructAt(proxy: ReverseProxyBase, place: string): IConstruct {
  const [, listener] = /^listeners\[(\d+)\]/.exec(place) ?? [];
  if (listener !== undefined) return proxy.listeners[Number(listener)] ?? proxy;
  const [, at, route] = /^virtualServers\[(\d+)\](?:\.routes\[(\d+)\])?/.exec(place) ?? [];
  const server = at === undefined ? undefined : proxy.virtualServers[Number(at)];
  return (route === undefined ? server : server?.routes[Number(route)]) ?? proxy;
}
