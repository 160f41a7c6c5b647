/**
 * Shell scripts that a delivery over ssh runs on a host, as root and with `sh -eu`. They use what every Debian has
 * (coreutils), since Node itself may come with the very deployment.
 */

/** A program that activation runs with: where it lies once it is installed, and what it must hold. */
export interface HostProgram {
  /** Absolute path on the host. */
  readonly path: string;
  /** Hash of its content, if it comes with the deployment. */
  readonly sha256?: string;
}

export interface HostScriptsInput {
  /** Directory of activation on the host. */
  readonly store: string;
  /** Directory below it that takes uploads. */
  readonly incoming: string;
}

/** Makes the directory for uploads; only root may look into it, for they hold private keys. */
export function prepareScript({ incoming, store }: HostScriptsInput): string {
  return `umask 022
mkdir -p ${quote(parentOf(store))}
mkdir -p -m 0700 ${quote(store)} ${quote(incoming)}
`;
}

/**
 * Runs `portico activate` by the Node and the runtime of this very deployment, wherever they are by now: just uploaded,
 * kept by an activation that failed, or in place since an earlier one. What it is run by is left behind as `command`,
 * for the script below. Its argument is the session's `SSH_CONNECTION`, or empty.
 */
export function activateScript(
  { store, incoming }: HostScriptsInput,
  { node, runtime }: { readonly node: HostProgram; readonly runtime: HostProgram },
): string {
  return `umask 077
# Where the session comes in, by which activation sees that a firewall does not shut it out.
[ -z "$1" ] || export SSH_CONNECTION="$1"
cd ${quote(store)}
mkdir -p bootstrap
# find_program SHA256 NAME INSTALLED: prints the path of a program with that content
find_program() {
  for file in ${quote(incoming)}/"$1" "$PWD/blobs/$1" "$PWD/bootstrap/$2" "$3"; do
    if [ -f "$file" ] && echo "$1  $file" | sha256sum --check --status; then
      if [ "$file" = "$3" ]; then echo "$file"; return; fi
      # A copy: activation takes the uploads over, and a program that runs cannot be written to.
      [ "$file" = "$PWD/bootstrap/$2" ] || install -m 0700 "$file" "bootstrap/$2"
      echo "$PWD/bootstrap/$2"
      return
    fi
  done
  echo "$3 was not delivered, or is damaged: deliver it again by terraform apply -replace=ADDRESS" >&2
  return 1
}
cat > command.new <<'COMMAND'
#!/bin/sh
${readPrograms(store)}
exec "$node" "$runtime" "$@"
COMMAND
chmod 0700 command.new
node=${programOf(node, "node")}
runtime=${programOf(runtime, "portico.mjs")}
if [ ! -x "$node" ]; then
  echo "$node is not on this host: install Node 20.19 or later, or let NodeRuntime bring it along" >&2
  exit 1
fi
${runBy(store, '"$node"', '"$runtime"')}
mv command.new command
./command activate --incoming ${quote(incoming)} 2>&1
${runBy(store, quote(node.path), quote(runtime.path))}
rm -rf bootstrap
`;
}

/** Leaves behind which programs `command` runs, a line each: no path is a part of a script. */
function runBy(store: string, node: string, runtime: string): string {
  const file = `${quote(store)}/programs`;
  return `printf '%s\\n' ${node} ${runtime} > ${file}.new && mv ${file}.new ${file}`;
}

function readPrograms(store: string): string {
  return `{ IFS= read -r node && IFS= read -r runtime; } < ${quote(store)}/programs`;
}

/** Takes the deployment away, and then everything that activation itself used; with `purge` the logs as well. */
export function deactivateScript(
  { store }: HostScriptsInput,
  { purge }: { readonly purge: boolean },
): string {
  const command = `${quote(store)}/command`;
  const copies = `${quote(store)}/bootstrap`;
  return `if [ -x ${command} ]; then
  # Copies: the programs go with the rest, and by something a deactivation that was cut off must be carried on.
  if ${readPrograms(store)} &&
    mkdir -p -m 0700 ${copies} &&
    { [ "$node" = ${copies}/node ] || install -m 0700 "$node" ${copies}/node; } &&
    { [ "$runtime" = ${copies}/portico.mjs ] || install -m 0700 "$runtime" ${copies}/portico.mjs; } &&
    sync ${copies}/node ${copies}/portico.mjs; then
    ${runBy(store, `${copies}/node`, `${copies}/portico.mjs`)}
  fi
  ${command} deactivate${purge ? " --purge" : ""} 2>&1
fi
rm -rf ${quote(store)}
if [ -d ${quote(parentOf(store))} ]; then rmdir --ignore-fail-on-non-empty ${quote(parentOf(store))}; fi
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
