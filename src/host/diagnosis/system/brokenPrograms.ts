import { type Stats, statSync } from "node:fs";
import { quote } from "../../../render/shell.js";

/** Debian's packages of programs that have another name. */
const PACKAGES: Readonly<Record<string, string>> = { nft: "nftables", node: "nodejs" };

/** Why a program cannot be started, and what to do; undefined if it can. */
export function brokenProgram(path: string): { readonly what: string; readonly fix: string } | undefined {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const install = `apt-get install --reinstall ${PACKAGES[name] ?? name}`;
  // The Node that runs this can take the place of the host's Node.
  const isLostNode = name === "node" && process.execPath !== path;
  const fix = isLostNode
    ? `install -D -m 0755 ${quote(process.execPath)} ${quote(path)}`
    : `Install ${path} again (${install})`;
  let found: Stats;
  try {
    found = statSync(path);
  } catch {
    return { what: "does not exist", fix };
  }
  if (!found.isFile())
    return { what: "is no file", fix: `Move ${path} away, then ${fix.replace(/^I/, "i")}` };
  if (found.size === 0) return { what: "is empty", fix };
  // Services run as users of their own.
  if ((found.mode & 0o005) === 0o005) return undefined;
  const mode = (found.mode & 0o7777).toString(8).padStart(4, "0");
  return { what: `cannot be executed by every user (mode ${mode})`, fix: `chmod a+rx ${path}` };
}
