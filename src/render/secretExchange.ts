/**
 * A secret that two hosts share: the host that has it gives it to the other one, through the machine that runs
 * Terraform. There it is in no file, plan or state.
 */

/** Directory on a host for secrets that it shares with another host; a destroy removes it. Only root can enter it. */
export const SHARED_DIRECTORY = "/var/lib/portico/shared";

/** On a host; prints the secret if it is there. */
const readScript = (file: string): string => `[ ! -s ${file} ] || cat ${file}`;

/** On a host, with the secret on its standard input. */
const takeScript = (file: string): string => `set -eu; umask 077
[ -d ${SHARED_DIRECTORY} ] || install -d -m 0755 /var/lib/portico && install -d -m 0700 ${SHARED_DIRECTORY}
cat > ${file}.new
[ -s ${file}.new ]
if cmp -s ${file}.new ${file}; then rm ${file}.new; else mv ${file}.new ${file}; fi`;

/** Runs a script on a host as root; the script is in a variable. */
const onHost = (name: string, script: string): string =>
  `ssh -F "$work/config" ${name} "$${name.toUpperCase()}_BECOME /bin/sh -c '$${script}'"`;

/** Shell functions that write OpenSSH's configuration from the environment, and give keys to the agent. */
const LOGIN = `value() { eval "printf '%s' \\"\\\${$1-}\\""; }

# key PREFIX: prints a private key, if there is one
key() {
  if [ -n "$(value "$1_PRIVATE_KEY_FILE")" ]; then cat "$(value "$1_PRIVATE_KEY_FILE")"
  elif [ -n "$(value "$1_PRIVATE_KEY")" ]; then printf '%s\\n' "$(value "$1_PRIVATE_KEY")"; fi
}

# login NAME PREFIX OWNER: how to reach one host, as ssh_config(5) has it; a bastion may have the key of the host behind it
login() {
  own="$work/$1"
  printf 'Host %s\\n  HostName %s\\n  Port %s\\n' "$1" "$(value "$2_HOST")" "$(value "$2_PORT")"
  printf '  User %s\\n  BatchMode yes\\n  ConnectTimeout 30\\n' "$(value "$2_USER")"
  known=$(value "$2_HOST_KEY")
  if [ -n "$known" ]; then
    # The server's own key, or that of an authority that signed it.
    printf '* %s\\n@cert-authority * %s\\n' "$known" "$known" > "$own.known"
    printf '  StrictHostKeyChecking yes\\n  UserKnownHostsFile "%s"\\n  GlobalKnownHostsFile none\\n' "$own.known"
  else
    printf '  StrictHostKeyChecking no\\n  UserKnownHostsFile none\\n  GlobalKnownHostsFile none\\n  LogLevel ERROR\\n'
  fi
  from=$2
  if [ -z "$(value "$2_PRIVATE_KEY_FILE")$(value "$2_PRIVATE_KEY")" ]; then from=$3; fi
  if [ -n "$(value "\${from}_PRIVATE_KEY_FILE")$(value "\${from}_PRIVATE_KEY")" ]; then
    # The public key names one of the agent's.
    key "$from" | ssh-keygen -y -P '' -f /dev/stdin > "$own.pub" 2> /dev/null || {
      echo "the private key for $(value "$2_HOST") cannot be used: Terraform needs a private key without a passphrase" >&2
      exit 1
    }
    key "$from" | ssh-add -q -
    printf '  IdentityFile "%s"\\n  IdentitiesOnly yes\\n  IdentityAgent "%s"\\n' "$own.pub" "$SSH_AUTH_SOCK"
  elif [ "$(value "$3_AGENT")" = false ] || [ -z "$USER_AGENT" ]; then
    printf '  IdentityAgent none\\n'
  else
    printf '  IdentityAgent "%s"\\n' "$USER_AGENT"
  fi
  if [ -n "$(value "$2_CERTIFICATE")" ]; then
    printf '%s\\n' "$(value "$2_CERTIFICATE")" > "$own-cert.pub"
    printf '  CertificateFile "%s"\\n' "$own-cert.pub"
  fi
  if [ -n "$(value "$2_BASTION_HOST")" ]; then
    printf '  ProxyJump %s-bastion\\n' "$1"
    login "$1-bastion" "$2_BASTION" "$2"
  fi
}
`;

/**
 * The script for `/bin/sh` on the machine that runs Terraform, which needs OpenSSH's client. The script itself is in
 * `EXCHANGE`, and the logins are in the environment: `FIRST_HOST`, `SECOND_BASTION_USER` and so on, so that nothing of them
 * is read by a shell. Keys are never written to another file: an agent has them, which ends with the script, however that
 * ends. (A trap is not enough: Terraform kills the script that it interrupts.)
 */
export function secretExchangeScript(
  file: string,
  hosts: readonly ("first" | "second")[] = ["first", "second"],
): string {
  return `set -eu
umask 077
if [ -z "\${EXCHANGE_DIRECTORY-}" ]; then
  for program in ssh ssh-agent ssh-add ssh-keygen; do
    command -v $program > /dev/null || { echo "$program is not installed here: the hosts of a pair exchange a secret by OpenSSH's client" >&2; exit 1; }
  done
  EXCHANGE_DIRECTORY=$(mktemp -d)
  export EXCHANGE_DIRECTORY USER_AGENT="\${SSH_AUTH_SOCK-}"
  exec ssh-agent -a "$EXCHANGE_DIRECTORY/agent" /bin/sh -c "$EXCHANGE"
fi
work=$EXCHANGE_DIRECTORY
trap 'rm -rf "$work"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
${LOGIN}{ ${hosts.map((name) => `login ${name} ${name.toUpperCase()} ${name.toUpperCase()}`).join("; ")}; } > "$work/config"
read_it='${readScript(file)}'
take_it='${takeScript(file)}'
secret=
${hosts.map((name) => `[ -n "$secret" ] || secret=$(${onHost(name, "read_it")} < /dev/null)`).join("\n")}
[ -n "$secret" ] || secret=$(head -c 32 /dev/urandom | base64)
${hosts.map((name) => `printf '%s\\n' "$secret" | ${onHost(name, "take_it")}`).join("\n")}
`;
}
