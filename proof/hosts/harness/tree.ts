import { existsSync, mkdirSync } from "node:fs";
import { basename, join } from "node:path";
import { runFolder } from "../../../testkit/sharedFile.js";
import { mustRun } from "./commands.js";

/**
 * An image as a folder, which the hosts of a run have in common: each writes to a layer of its own above it (boot.sh).
 * Unpacked for each of them, it would take the same time and memory again.
 *
 * @param image tarball of `hostImage`
 */
export async function sharedTree(image: string): Promise<string> {
  const tree = join(runFolder(), "trees", basename(image, ".tar"));
  if (existsSync(tree)) return tree;
  mkdirSync(join(tree, ".."), { recursive: true });
  // Suites begin at the same moment: one of them unpacks, and the others wait.
  const unpack = `[ -e "$1" ] || { mkdir "$1.new"; tar -C "$1.new" --numeric-owner --xattrs -xf "$2"; mv "$1.new" "$1"; }`;
  await mustRun(["flock", `${tree}.lock`, "bash", "-euc", unpack, "unpack", tree, image]);
  return tree;
}
