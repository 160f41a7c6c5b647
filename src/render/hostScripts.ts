/**
 * Shell scripts that a delivery over ssh runs on a host, as root and with `sh -eu`. They use only programs of every
 * Debian (coreutils), since Node itself may come with this deployment.
 */

import { type DeploymentIdentity, IDENTITY_FILE, otherDeployment } from "../model/deployment.js";
import { formatProblem, problem } from "../model/text/problem.js";
import { KEPT, LOST, refuseLost } from "./programScripts.js";
import { SHARED_DIRECTORY } from "./secretExchange.js";
import { literal, parentOf, quote, refusal, WORD } from "./shell.js";

/** A program that activation uses: its installed path, and its expected content. */
export interface HostProgram {
  /** The program's absolute path on the host. */
  readonly path: string;
  /** Hash of its content, if it comes with the deployment. */
  readonly sha256?: string;
}

/**
 * Directory of the log-in user, below the home directory: no other user can enter it. Terraform's scripts run there,
 * and uploads of a user without root's rights stay there until root takes them.
 */
export const LOGIN_DIRECTORY = ".portico/incoming";

/**
 * The path at which Terraform puts the scripts of a connection. It gives each of them mode 0777, whatever the path: only the
 * directory protects them.
 */
export const SCRIPT_PATH = `./${LOGIN_DIRECTORY}/%RAND%.sh`;

/**
 * The `script_path` of the connection that makes the directory, while there is no directory yet that could take a
 * script. Terraform uploads a script to that path, literally, and then has the login shell run `chmod 0777 PATH` and
 * `PATH`: both make the directory, and the uploaded file is never run. (Should a release of Terraform quote the path
 * one day, both fail, and the apply with them.)
 */
export const LOGIN_DIRECTORY_SCRIPT_PATH = `:|install -d -m 0700 .portico ${LOGIN_DIRECTORY}`;

/**
 * Commands that end a script with a problem if there is no directory for uploads.
 * @param staging address of the resource that makes the directory
 */
export function uploadsCheck(incoming: string, staging: string): string {
  const found = problem(
    "delivery.reinstalled-host",
    WORD,
    "does not exist, but an apply has made it, as Terraform's state says: was the host reinstalled, or replaced by another machine?",
    {
      fix: `To send everything again, run \`terraform apply -replace=${literal(staging)}\`. If the machine is the wrong one, correct the address.`,
    },
  );
  return `[ -d ${quote(incoming)} ] || ${refusal(found, quote(incoming))}\n`;
}

/**
 * Removes the file that is uploaded for {@link LOGIN_DIRECTORY_SCRIPT_PATH}: its name is the part before the last `/`.
 */
export const REMOVE_UPLOAD = `rm -f ${quote(parentOf(LOGIN_DIRECTORY_SCRIPT_PATH))}`;

/**
 * Removes scripts of Terraform that have ended: it leaves an empty file of each. One that is just being uploaded is empty
 * as well.
 */
export const REMOVE_ENDED_SCRIPTS = `find ${LOGIN_DIRECTORY} -maxdepth 1 -name '*.sh' -size 0 -mmin +1 -delete || true`;

/**
 * Removes the files that an apply leaves in the log-in user's home directory, unless another deployment has uploads on
 * the host: its scripts run there too.
 */
export function removeLoginDirectory({ incoming }: Pick<HostScriptsInput, "incoming">): string {
  return `${REMOVE_UPLOAD}; [ -d ${quote(parentOf(incoming))} ] || rm -rf .portico`;
}

/** Ends a script that is where others may change it; for a `script_path` that was chosen. */
export const REFUSE_OPEN_DIRECTORY = `directory=$(dirname "$0")
if [ ! -O "$directory" ] || [ -n "$(find "$directory" -maxdepth 0 -perm /0077)" ]; then
  echo "scriptPath: other users can enter $directory and change the scripts in it: make $(id -un) its owner, and set its mode to 0700" >&2
  exit 1
fi`;

export interface HostScriptsInput {
  /** Directory of activation on the host. */
  readonly store: string;
  /** Directory for the uploads of this deployment only. */
  readonly incoming: string;
  readonly identity: DeploymentIdentity;
  /** Whether it takes the place of another deployment; default false. */
  readonly takeOver?: boolean;
}

export interface ActivateScriptInput {
  readonly node: HostProgram;
  readonly runtime: HostProgram;
  /** Nothing is done while the host has this address: clients are served through it. */
  readonly withoutAddress?: string;
  /** Name of the document among the uploads: its SHA-256. */
  readonly document: string;
}

/**
 * Makes the directory for uploads; only root may look into it, for they hold private keys. On the host of another
 * deployment, nothing is uploaded at all.
 */
export function prepareScript({ store, incoming, identity, takeOver }: HostScriptsInput): string {
  return `${takeOver === true ? "" : refuseOtherScript(store, identity)}umask 022
mkdir -p ${quote(parentOf(parentOf(incoming)))}
install -d -m 0700 ${quote(parentOf(incoming))} ${quote(incoming)}
`;
}

/** Refuses another deployment's host as activation does, before there is a Node to ask. */
function refuseOtherScript(store: string, identity: DeploymentIdentity): string {
  const refusal = formatProblem({ ...otherDeployment(identity, "%s"), path: IDENTITY_FILE });
  const state = `${store}/state.json`;
  return `if [ -f ${quote(state)} ]; then
  there=$(${IDENTITY_THERE} ${quote(state)})
  case "$there" in
    "" | ${quote(identity.id)}" "*) ;;
    *)
      printf ${quote(`${refusal}\n`)} "$(echo "$there" | cut -d ' ' -f 2-)" >&2
      exit 1
      ;;
  esac
fi
`;
}

/**
 * Prints id and construct of the deployment in a state, which is the argument; a command of the shell. Within a text of the
 * state, a quote would have a backslash before it.
 */
const IDENTITY_THERE = `sed -n 's/.*"identity":{"id":"\\([^"]*\\)","construct":"\\([^"]*\\)"}.*/\\1 \\2/p'`;

/** Terraform gives its scripts a terminal, but shows their output line by line, and in logs. */
const WITHOUT_COLOURS = "export NO_COLOR=1";

/**
 * Runs `portico activate` by the Node and the runtime of this very deployment, wherever they are by now: just uploaded,
 * kept by an activation that failed, or in place since an earlier one. Its argument is the session's `SSH_CONNECTION`, or
 * empty. The script and its directory, `run.ID`, have the name of this run: another apply of the deployment may run at
 * the same time. It succeeds if the host has this document in the end, whatever the programs say.
 */
export function activateScript(
  { store, incoming, identity, takeOver }: HostScriptsInput,
  { node, runtime, document, withoutAddress }: ActivateScriptInput,
): string {
  const whose = `--identity ${quote(identity.id)} --construct ${quote(identity.construct)}`;
  const skip = `if [ -n "$(ip -o address show to ${withoutAddress})" ]; then
  echo "this host has the address ${withoutAddress}: the other host is activated first"
  rm -f "$0"
  exit 0
fi
`;
  const notNode = "Install Node 20.19 or later there, or deliver Node with `NodeRuntime`.";
  return `${withoutAddress === undefined ? "" : skip}umask 077
${WITHOUT_COLOURS}
# Where the session comes in, by which activation sees that a firewall does not shut it out.
[ -z "$1" ] || export SSH_CONNECTION="$1"
cd ${quote(incoming)}
run=$PWD/run.$(basename "$0" .sh)
mkdir -p "$run"
${LOST}# find_program SHA256 NAME INSTALLED: prints the path of a program with that content
find_program() {
  for file in "$PWD/$1".* ${quote(store)}/blobs/"$1" "$3"; do
    if [ -f "$file" ] && echo "$1  $file" | sha256sum --check --status; then
      if [ "$file" = "$3" ]; then echo "$file"; return; fi
      # By a name of its own, which stays until the activation has ended.
      { ln -f "$file" "$run/$2" 2> /dev/null && chmod 0700 "$run/$2"; } || install -m 0700 "$file" "$run/$2"
      echo "$run/$2"
      return
    fi
  done
  echo "$3 was not delivered, or is damaged, or another apply has replaced it: have everything sent again: terraform apply -replace=ADDRESS of the resource that ends in Host_Staging" >&2
  return 1
}
# leave STATUS: ends the script. \`command\` may need the programs, to remove what was begun.
leave() {
  grep -qsF "$run/" ${quote(store)}/programs || rm -rf "$run"
  rm -f "$0"
  exit "$1"
}
node=${programOf(node, "node")} || leave 1
runtime=${programOf(runtime, "portico.mjs")} || leave 1
if lost "$node" "$runtime"; then
  (${refuseLost(notNode)}) || leave 1
fi
"$node" "$runtime" activate --incoming ${quote(incoming)} --document ${quote(document)} \\
  ${whose}${takeOver === true ? " --take-over" : ""} 2>&1 || leave 1
(
${documentCheck(store, document)}) || leave 1
rm -rf "$run"
leave 0
`;
}

/** Ends a script with status 1 unless a host's last good state is the one of a document; says since when. */
export function documentCheck(store: string, document: string): string {
  const state = quote(`${store}/state.json`);
  const other = problem("activation.other-document", "%s", "the host has another document", {
    received: "%s",
    allowed: "the document of this apply, %s",
  });
  return `now=$(sed -n 's/.*"document":"\\([0-9a-f]*\\)".*/\\1/p' ${state} 2> /dev/null || true)
since=$(sed -n 's/.*"activatedAt":"\\([^"]*\\)".*/, activated at \\1/p' ${state} 2> /dev/null || true)
[ -n "$now" ] || now="no document"
[ "$now" = ${quote(document)} ] || ${refusal(other, state, '"$now$since"', quote(document))}
echo "the host has the document $now$since"
`;
}

/**
 * Ends a script with status 1 if a host still has a deployment, whatever the program that removed it says.
 * @param id of the deployment; a host may have another one in its place
 */
export function removalCheck(store: string, id: string | undefined): string {
  const left = problem(
    "activation.not-removed",
    "%s",
    "the deployment is still on this host, although `portico deactivate` reported success",
  );
  const state = quote(`${store}/state.json`);
  const other =
    id === undefined
      ? ""
      : `case $(${IDENTITY_THERE} ${state} 2> /dev/null || true) in "" | ${quote(id)}" "*) ;; *) exit 0 ;; esac
`;
  return `${other}for file in ${state} ${quote(`${store}/journal.json`)}; do
  [ ! -e "$file" ] || ${refusal(left, '"$file"')}
done
`;
}

/**
 * Removes the deployment, and then everything that its delivery used; with `purge` logs and certificates as well. Of a
 * deployment that took its place nothing is touched. Without Node nothing can be removed, and the script says what is
 * lost; a lost runtime is replaced by the store's copy.
 */
export function deactivateScript(
  {
    store,
    incoming,
    identity,
  }: Omit<HostScriptsInput, "identity"> & { readonly identity: Pick<DeploymentIdentity, "id"> },
  { purge }: { readonly purge: boolean },
): string {
  const run = `${quote(incoming)}/run`;
  const at = quote(store);
  const lost = `Nothing was removed, and the services still run. Put the program back, then run \`terraform destroy\` again: \`terraform apply\` sends the program again if the deployment contains it; otherwise install Node 20.19 or later at that path. For a machine that will be discarded, run \`terraform state rm ADDRESS\` for the resource of this error instead.`;
  return `${WITHOUT_COLOURS}
${LOST}${KEPT}begun=
for file in ${at}/command ${at}/state.json ${at}/journal.json ${run}/node; do
  [ ! -e "$file" ] || begun=yes
done
there=$(${IDENTITY_THERE} ${at}/state.json 2> /dev/null || true)
case "$there" in
  "" | ${quote(identity.id)}" "*) ;;
  *)
    echo "nothing was removed: this host has the deployment of $(echo "$there" | cut -d ' ' -f 2-), which replaced this one"
    begun=
    ;;
esac
if [ -n "$begun" ]; then
  # Copies: the programs go with the rest, and by something a deactivation that was cut off must be carried on.
  if lost ${run}/node ${run}/portico.mjs; then
    node=
    runtime=
    { IFS= read -r node && IFS= read -r runtime; } 2> /dev/null < ${at}/programs || true
    if lost "$node" "$runtime"; then
      [ "$what" != "$runtime" ] || runtime=$(kept ${at})
      [ -n "$what" ] || what=${at}/programs
      [ "$what" != "$node" ] && [ -n "$runtime" ] && [ -n "$node" ] || ${refuseLost(lost)}
    fi
    mkdir -p ${quote(parentOf(incoming))}
    install -d -m 0700 ${quote(incoming)} ${run}
    # It may have stayed there since an activation that failed.
    [ "$runtime" -ef ${run}/portico.mjs ] || install -m 0700 "$runtime" ${run}/portico.mjs
    sync ${run}/portico.mjs
    if ! [ "$node" -ef ${run}/node ]; then
      install -m 0700 "$node" ${run}/node.new
      sync ${run}/node.new
      mv ${run}/node.new ${run}/node
    fi
  fi
  ${run}/node ${run}/portico.mjs deactivate${purge ? " --purge" : ""} --identity ${quote(identity.id)} 2>&1
  (
${removalCheck(store, identity.id)})
fi
rm -rf ${quote(incoming)}
# What stays is of another deployment.
[ -d ${at} ] || rm -rf ${SHARED_DIRECTORY}
for directory in ${quote(parentOf(incoming))} ${quote(parentOf(parentOf(incoming)))}; do
  if [ -d "$directory" ]; then rmdir --ignore-fail-on-non-empty "$directory"; fi
done
`;
}

function programOf({ path, sha256 }: HostProgram, name: string): string {
  return sha256 === undefined ? quote(path) : `$(find_program ${sha256} ${name} ${quote(path)})`;
}
