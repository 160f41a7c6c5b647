import { problem } from "../model/text/problem.js";
import { refusal } from "./shell.js";

/**
 * Node and the runtime, as scripts on a host find them. A shell takes an empty file for a script that succeeds, and
 * `/bin/true` succeeds too, so that a script asks each program for its name before it relies on the program.
 */

const NOT_NODE = "is not Node, or Node does not run on this host";
const NOT_RUNTIME = "is not the runtime of portico, or is damaged";

/**
 * A function of the shell: `lost NODE RUNTIME` sets `what` and `why` to the program that does not run and to the reason,
 * and fails if both run.
 */
export const LOST = `lost() {
  what=$1
  if [ ! -e "$1" ]; then why="is missing"; return; fi
  if [ ! -s "$1" ]; then why="is empty"; return; fi
  if [ ! -x "$1" ]; then
    why="cannot be run: its mode does not allow it, or its file system is mounted noexec (findmnt --target $1)"
    return
  fi
  case $("$1" --version 2> /dev/null < /dev/null || true) in
    v[0-9]*) ;;
    *) why="${NOT_NODE}"; return ;;
  esac
  what=$2
  if [ ! -e "$2" ]; then why="is missing"; return; fi
  if [ ! -s "$2" ]; then why="is empty"; return; fi
  case $("$1" "$2" --version 2> /dev/null < /dev/null || true) in
    "portico "*) return 1 ;;
    *) why="${NOT_RUNTIME}" ;;
  esac
}
`;

/**
 * A function of the shell: `kept STORE` prints the path of the store's own copy of the runtime, if the copy is intact.
 * The store has no copy of Node, which is large.
 */
export const KEPT = `kept() {
  hash=$(sed -n 's/.*"sha256":"\\([0-9a-f]*\\)","role":"runtime".*/\\1/p' "$1/state.json" 2> /dev/null || true)
  copy=$1/blobs/$hash
  if [ -n "$hash" ] && echo "$hash  $copy" | sha256sum --check --status 2> /dev/null; then echo "$copy"; fi
}
`;

/** Ends a script that needs the programs; `what` and `why` are set. */
export const refuseLost = (fix: string): string =>
  refusal(problem("activation.lost-program", "%s", "%s", { fix }), '"$what"', '"$why"');

/** How a host gets its programs again. */
export const SEND_PROGRAMS =
  "`terraform apply -replace=ADDRESS` for the resource whose address ends in `Host_Staging`, which sends all files again (a Node that the deployment does not contain: install Node 20.19 or later at that path)";

/** The command on a host that runs portico by the programs that the file `programs` beside it names. */
export const COMMAND_SCRIPT = `#!/bin/sh
store=$(dirname "$0")
${LOST}${KEPT}{ IFS= read -r node && IFS= read -r runtime; } 2> /dev/null < "$store/programs" || {
  what=$store/programs
  why="is missing or damaged: it names the programs of the deployment"
  ${refuseLost(`Run ${SEND_PROGRAMS}.`)}
}
if lost "$node" "$runtime"; then
  copy=$(kept "$store")
  if [ "$what" = "$runtime" ] && [ -n "$copy" ]; then
    ${refusal(
      problem("activation.lost-program", "%s", "%s", {
        fix: "Run `install -m 0755 %s %s`, which copies the intact copy of the last activation there.",
      }),
      '"$what"',
      '"$why"',
      '"$copy"',
      '"$runtime"',
    )}
  fi
  ${refuseLost(`Run ${SEND_PROGRAMS}.`)}
fi
exec "$node" "$runtime" "$@"
`;
