import { execFileSync } from "node:child_process";
import { ROOT } from "../../build/paths.js";

/** Containers, without a registry of images. */

export const podman = (...args: readonly string[]): string =>
  execFileSync("podman", args, { encoding: "utf8", cwd: ROOT, stdio: ["ignore", "pipe", "ignore"] }).trim();

/** What containers need on a machine that is one itself. */
export const LIMITS = ["--runtime=runc", "--ulimit=nofile=20000:20000", "--ulimit=nproc=1000:1000"];

/** In place of an image from a registry: the Node that runs the tests, and its libraries. */
export function importNode(name: string): void {
  const linked = execFileSync("ldd", [process.execPath], { encoding: "utf8" });
  const libraries = [...linked.matchAll(/(\/\S+) \(0x/g)].map(([, file]) => file!);
  const moved = `--transform=s,^${process.execPath.slice(1)}$,usr/local/bin/node,`;
  // A hundred megabytes: not written down in between.
  const archive = ["tar", "-c", "--dereference", "--mode=755", moved, process.execPath, ...libraries];
  const script = `"$@" 2>/dev/null | podman import --change "ENV PATH=/usr/local/bin" - ${name}`;
  execFileSync("sh", ["-c", script, "sh", ...archive], { stdio: "ignore" });
}

/** The image of the package, on that Node. */
export const buildImage = (name: string, node: string): string =>
  podman("build", "--isolation=chroot", "--build-arg", `NODE=localhost/${node}`, "--tag", name, ROOT);
