/**
 * A secret that two hosts share: made on the first one, and brought to the second through the machine that runs
 * Terraform. It is in no file there, in no plan and in no state.
 */

/** Directory on a host of what it shares with another one; a destroy removes it. Only root can enter it. */
export const SHARED_DIRECTORY = "/var/lib/portico/shared";

/** On the host that makes the secret; prints it. */
const makeScript = (file: string): string => `set -eu; umask 077
[ -d ${SHARED_DIRECTORY} ] || install -d -m 0755 /var/lib/portico && install -d -m 0700 ${SHARED_DIRECTORY}
if [ ! -s ${file} ]; then
  head -c 32 /dev/urandom | base64 > ${file}.new
  mv ${file}.new ${file}
fi
cat ${file}`;

/** On the other one, with the secret on its standard input. */
const takeScript = (file: string): string => `set -eu; umask 077
[ -d ${SHARED_DIRECTORY} ] || install -d -m 0755 /var/lib/portico && install -d -m 0700 ${SHARED_DIRECTORY}
cat > ${file}.new
[ -s ${file}.new ]
if cmp -s ${file}.new ${file}; then rm ${file}.new; else mv ${file}.new ${file}; fi`;

/**
 * For `/bin/sh` on the machine that runs Terraform, which needs OpenSSH's client. The logins are in the environment:
 * `FIRST_HOST`, `SECOND_BASTION_USER` and so on, so that nothing of them is read by a shell.
 */
export function secretExchangeScript(file: string): string {
  return `set -eu
umask 077
command -v ssh > /dev/null || { echo "ssh is not installed here: the hosts of a pair exchange a secret by it" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
value() { eval "printf '%s' \\"\\\${$1-}\\""; }

# login NAME PREFIX: how to reach one host, as ssh_config(5) has it
login() {
  own="$work/$1"
  printf 'Host %s\\n  HostName %s\\n  Port %s\\n' "$1" "$(value "$2_HOST")" "$(value "$2_PORT")"
  printf '  User %s\\n  BatchMode yes\\n  ConnectTimeout 30\\n' "$(value "$2_USER")"
  key=$(value "$2_HOST_KEY")
  if [ -n "$key" ]; then
    # The server's own key, or that of an authority that signed it.
    printf '* %s\\n@cert-authority * %s\\n' "$key" "$key" > "$own.known"
    printf '  StrictHostKeyChecking yes\\n  UserKnownHostsFile "%s"\\n  GlobalKnownHostsFile none\\n' "$own.known"
  else
    printf '  StrictHostKeyChecking no\\n  UserKnownHostsFile none\\n  GlobalKnownHostsFile none\\n  LogLevel ERROR\\n'
  fi
  if [ -n "$(value "$2_PRIVATE_KEY_FILE")" ]; then
    cat "$(value "$2_PRIVATE_KEY_FILE")" > "$own.key"
  elif [ -n "$(value "$2_PRIVATE_KEY")" ]; then
    printf '%s\\n' "$(value "$2_PRIVATE_KEY")" > "$own.key"
  fi
  if [ -f "$own.key" ]; then printf '  IdentityFile "%s"\\n' "$own.key"; fi
  if [ -n "$(value "$2_CERTIFICATE")" ]; then
    printf '%s\\n' "$(value "$2_CERTIFICATE")" > "$own-cert.pub"
    printf '  CertificateFile "%s"\\n' "$own-cert.pub"
  fi
  if [ "$(value "$2_AGENT")" = false ]; then printf '  IdentityAgent none\\n'; fi
  if [ -n "$(value "$2_BASTION_HOST")" ]; then
    printf '  ProxyJump %s-bastion\\n' "$1"
    login "$1-bastion" "$2_BASTION"
  fi
}
{ login first FIRST; login second SECOND; } > "$work/config"

secret=$(ssh -F "$work/config" first "$FIRST_BECOME /bin/sh -c '${makeScript(file)}'" < /dev/null)
[ -n "$secret" ]
printf '%s\\n' "$secret" | ssh -F "$work/config" second "$SECOND_BECOME /bin/sh -c '${takeScript(file)}'"
`;
}
