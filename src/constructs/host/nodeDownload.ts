import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { problem, ProblemError } from "../../model/index.js";

/** System and processor that a Node binary is for. */
export type NodePlatform = "linux-x64" | "linux-arm64";

/** A package of the npm registry that holds a Node binary. */
export interface NodeRelease {
  readonly platform: NodePlatform;
  readonly version: string;
  /** SHA-512 of the package, as npm writes it. */
  readonly integrity: string;
}

/**
 * Path of the binary of a release; fetched if the cache does not have it. `npm` does it, since it knows the user's
 * registry, proxy and credentials. The package's scripts are not run.
 */
export function downloadNode(release: NodeRelease, cacheDirectory = defaultCache()): string {
  const { platform, version, integrity } = release;
  const folder = join(cacheDirectory, `${platform}-${version}-${digest(integrity)}`);
  const binary = join(folder, "package/bin/node");
  if (existsSync(binary)) return binary;
  mkdirSync(cacheDirectory, { recursive: true });
  const work = mkdtempSync(join(cacheDirectory, "fetch-"));
  try {
    const name = `node-${platform}@${version}`;
    run(
      name,
      "npm",
      ["pack", name, "--loglevel=error", "--ignore-scripts", "--pack-destination", work],
      work,
    );
    const tarball = join(
      work,
      readdirSync(work).find((file) => file.endsWith(".tgz"))!,
    );
    const received = `sha512-${createHash("sha512").update(readFileSync(tarball)).digest("base64")}`;
    if (received !== integrity) {
      const message = "does not have the pinned hash";
      throw new ProblemError([problem("node.wrong-hash", name, message, { received, allowed: integrity })]);
    }
    run(name, "tar", ["-xzf", tarball, "package/bin/node", "package/LICENSE"], work);
    rmSync(tarball);
    if (!existsSync(folder)) renameSync(work, folder);
    return binary;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function run(name: string, command: string, args: readonly string[], cwd: string): void {
  const { status, stderr, error } = spawnSync(command, args, { cwd, env: process.env, encoding: "utf8" });
  if (status === 0) return;
  const said = error?.message ?? stderr.trim();
  const message = `cannot be fetched: ${command} failed: ${said}`;
  throw new ProblemError([problem("node.not-fetched", name, message)]);
}

function defaultCache(): string {
  return join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "portico/node");
}

/** A different hash for the same version gets a different folder. */
function digest(integrity: string): string {
  return createHash("sha256").update(integrity).digest("hex").slice(0, 12);
}
