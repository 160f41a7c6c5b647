/**
 * Shell scripts that a delivery over ssh runs on a host, as root and with `sh -eu`. They use only programs of every
 * Debian (coreutils), since Node itself may come with this deployment.
 */

import { type DeploymentIdentity, IDENTITY_FILE, otherDeployment } from "../model/deployment.js";
import { formatProblem } from "../model/problem.js";
import { SHARED_DIRECTORY } from "./secretExchange.js";

/** A program that activation uses: its installed path, and its expected content. */
export interface HostProgram {
  /** Where the program is on the host: an absolute path. */
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
 * Where Terraform puts the scripts of a connection. It gives each of them mode 0777, whatever the path: only the
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
  /** Directory for the uploads of this deployment only: no other apply changes them. */
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

/** As activation itself refuses it, before there is a Node to ask. */
function refuseOtherScript(store: string, identity: DeploymentIdentity): string {
  const refusal = formatProblem({ ...otherDeployment(identity, "%s"), path: IDENTITY_FILE });
  const state = `${store}/state.json`;
  // Within a text of the state, a quote would have a backslash before it.
  return `if [ -f ${quote(state)} ]; then
  there=$(sed -n 's/.*"identity":{"id":"\\([^"]*\\)","construct":"\\([^"]*\\)"}.*/\\1 \\2/p' ${quote(state)})
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

/** Terraform gives its scripts a terminal, but shows their output line by line, and in logs. */
const WITHOUT_COLOURS = "export NO_COLOR=1";

/**
 * Runs `portico activate` by the Node and the runtime of this very deployment, wherever they are by now: just uploaded,
 * kept by an activation that failed, or in place since an earlier one. The programs it runs with stay in `run` until it
 * has succeeded. Its argument is the session's `SSH_CONNECTION`, or empty.
 */
export function activateScript(
  { store, incoming, identity, takeOver }: HostScriptsInput,
  { node, runtime, document, withoutAddress }: ActivateScriptInput,
): string {
  const whose = `--identity ${quote(identity.id)} --construct ${quote(identity.construct)}`;
  const skip = `if [ -n "$(ip -o address show to ${withoutAddress})" ]; then
  echo "this host has the address ${withoutAddress}: the other host is activated first"
  exit 0
fi
`;
  return `${withoutAddress === undefined ? "" : skip}umask 077
${WITHOUT_COLOURS}
# Where the session comes in, by which activation sees that a firewall does not shut it out.
[ -z "$1" ] || export SSH_CONNECTION="$1"
cd ${quote(incoming)}
mkdir -p run
# find_program SHA256 NAME INSTALLED: prints the path of a program with that content
find_program() {
  for file in "$PWD/$1" "$PWD/run/$2" ${quote(store)}/blobs/"$1" "$3"; do
    if [ -f "$file" ] && echo "$1  $file" | sha256sum --check --status; then
      if [ "$file" = "$3" ] || [ "$file" = "$PWD/run/$2" ]; then echo "$file"; return; fi
      # By a name of its own, which stays until the activation has ended.
      { ln -f "$file" "run/$2" 2> /dev/null && chmod 0700 "run/$2"; } || install -m 0700 "$file" "run/$2"
      echo "$PWD/run/$2"
      return
    fi
  done
  echo "$3 was not delivered, or is damaged: have everything sent again: terraform apply -replace=ADDRESS of the resource that ends in Host_Staging" >&2
  return 1
}
node=${programOf(node, "node")}
runtime=${programOf(runtime, "portico.mjs")}
if [ -f "$node" ] && [ ! -x "$node" ]; then
  echo "$node cannot be run: its file system is mounted noexec (findmnt --target $node)" >&2
  exit 1
elif [ ! -x "$node" ]; then
  echo "$node is not on this host: install Node 20.19 or later, or deliver it with NodeRuntime" >&2
  exit 1
fi
"$node" "$runtime" activate --incoming ${quote(incoming)} --document ${quote(document)} \\
  ${whose}${takeOver === true ? " --take-over" : ""} 2>&1
rm -rf run
`;
}

/**
 * Removes the deployment, and then everything that its delivery used; with `purge` logs and certificates as well. Of a
 * deployment that took its place nothing is touched.
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
  return `${WITHOUT_COLOURS}
if [ -x ${run}/node ] || [ -x ${quote(store)}/command ]; then
  # Copies: the programs go with the rest, and by something a deactivation that was cut off must be carried on.
  if [ ! -x ${run}/node ] || [ ! -f ${run}/portico.mjs ]; then
    { IFS= read -r node && IFS= read -r runtime; } < ${quote(store)}/programs
    mkdir -p ${quote(parentOf(incoming))}
    install -d -m 0700 ${quote(incoming)} ${run}
    # It may have stayed there since an activation that failed.
    [ "$runtime" -ef ${run}/portico.mjs ] || install -m 0700 "$runtime" ${run}/portico.mjs
    install -m 0700 "$node" ${run}/node.new
    sync ${run}/node.new ${run}/portico.mjs
    mv ${run}/node.new ${run}/node
  fi
  ${run}/node ${run}/portico.mjs deactivate${purge ? " --purge" : ""} --identity ${quote(identity.id)} 2>&1
fi
rm -rf ${quote(incoming)}
# What stays is of another deployment.
[ -d ${quote(store)} ] || rm -rf ${SHARED_DIRECTORY}
for directory in ${quote(parentOf(incoming))} ${quote(parentOf(parentOf(incoming)))}; do
  if [ -d "$directory" ]; then rmdir --ignore-fail-on-non-empty "$directory"; fi
done
`;
}

function programOf({ path, sha256 }: HostProgram, name: string): string {
  return sha256 === undefined ? quote(path) : `$(find_program ${sha256} ${name} ${quote(path)})`;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/"));
}

/** One word for the shell. */
export function quote(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
