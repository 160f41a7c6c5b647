import { isDeepStrictEqual } from "node:util";
import type { Construct } from "constructs";
import { type Problem, problem } from "../model/index.js";
import { CONTAINER_PATHS, dhParametersPem } from "../render/index.js";
import { hostPathProblems, refuse } from "./props/checks.js";
import { refuseOptions, refuseProps, required, text } from "./props/propTable.js";
import {
  PROXY_SETTINGS,
  type ProxySettings,
  ReverseProxyBase,
  settingsProblems,
} from "./reverseProxyBase.js";
import type { TlsPlace } from "./tlsMaterial.js";

/**
 * A proxy that runs in containers: the same listeners, virtual servers and upstreams as those of a `ReverseProxy`, and
 * no host. It puts nothing anywhere; what runs the containers takes `config` and `files` from it.
 */
export class ContainerProxy extends ReverseProxyBase {
  private readonly own: ProxySettings;
  private given: ProxySettings | undefined;
  private readonly contents = new Map<string, string>();

  constructor(scope: Construct, id: string, props: ContainerProxyProps = {}) {
    super(scope, id);
    refuseProps(this, props, PROXY_SETTINGS, (fit) => settingsProblems(this.node.path, fit));
    this.own = props;
  }

  /** @internal */
  protected get settings(): ProxySettings {
    const { own, given = {} } = this;
    const logs = { access: { stream: "stdout" }, error: { stream: "stderr" }, ...own.logs } as const;
    const timeouts = { ...given.timeouts, ...own.timeouts };
    const limits = { ...given.limits, ...own.limits };
    return {
      ...given,
      ...own,
      logs,
      ...(Object.keys(timeouts).length === 0 ? {} : { timeouts }),
      ...(Object.keys(limits).length === 0 ? {} : { limits }),
    };
  }

  /**
   * @internal Settings that follow from how its containers are run; its own take priority.
   *
   * @returns whether it has them now: it runs in one way, and what was given before stays
   */
  give(settings: ProxySettings): boolean {
    refuse(settingsProblems(this.node.path, settings));
    this.given ??= settings;
    return isDeepStrictEqual(this.given, settings);
  }

  /** Adds a small file that containers need besides the config, such as a page. Not for secrets. */
  addFile(path: string, content: string): void {
    const at = `${this.node.path}.addFile`;
    const both = { path: required(text), content: required(text) };
    refuseOptions(at, { path, content }, both, (fit) => hostPathProblems({ path: fit.path }, at));
    if (this.contents.has(path) || path === CONTAINER_PATHS.config) {
      const fix = "Give the file another path.";
      refuse([problem("files.duplicate-path", at, "is already there", { received: path, fix })]);
    }
    this.contents.set(path, content);
  }

  /** Files that containers need besides the config, by path, in the order they were added. */
  get files(): ReadonlyMap<string, string> {
    return this.contents;
  }

  /** @internal */
  protected override placeProblems(): readonly Problem[] {
    return this.directoryProblems([CONTAINER_PATHS.config, CONTAINER_PATHS.tlsDirectory]);
  }

  /** @internal */
  protected override tlsPlace(): TlsPlace {
    return { directory: CONTAINER_PATHS.tlsDirectory, dhParameters: () => this.dhParameters() };
  }

  private dhParameters(): string {
    if (!this.contents.has(CONTAINER_PATHS.dhParameters)) {
      this.addFile(CONTAINER_PATHS.dhParameters, dhParametersPem());
    }
    return CONTAINER_PATHS.dhParameters;
  }

  /** @internal */
  override onThisMachine(): undefined {
    return undefined;
  }
}

/** Settings of a proxy that runs in containers. */
export type ContainerProxyProps = ProxySettings;
