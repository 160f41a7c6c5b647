#!/usr/bin/env bash
# The front end on a real Kubernetes, on any Debian machine: `sudo npm run kubernetes`. Arguments go to main.ts.
# Installs what is missing, and builds Kubernetes from its sources once; needs Node.js, npm and Go, and `npm ci` before.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "Kubernetes needs root: sudo $0" >&2; exit 1; }
command -v go > /dev/null || { echo "go is missing: https://go.dev/dl" >&2; exit 1; }

missing=()
need() { command -v "$1" > /dev/null || missing+=("$2"); }
need etcd etcd-server
need containerd containerd
need runc runc
need nft nftables
need ip iproute2
need haproxy haproxy
need openssl openssl
need curl curl
[ -e /usr/lib/cni/bridge ] || missing+=(containernetworking-plugins)
if [ ${#missing[@]} -gt 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq --no-install-recommends "${missing[@]}" > /dev/null
fi
proof/kubernetes/cluster/build.sh .cache/kubernetes
node=$(npm run -s node-versions -- --node 24 --path)

folder=$(mktemp -d /tmp/portico-kubernetes.XXXXXX)
group=portico-kubernetes-$$
groups() { find /sys/fs/cgroup -depth -type d -path "*/$group*"; }
end() {
  # With it everything ends that runs in its namespaces: processes, mounts and networks.
  [ -z "$inside" ] || kill -KILL "$inside" 2> /dev/null || true
  wait
  for _ in $(seq 50); do
    groups | xargs -r rmdir 2> /dev/null || true
    [ -z "$(groups)" ] && break
    sleep 0.1
  done
  rm -rf "$folder"
}
inside=
trap end EXIT
trap 'exit 130' INT TERM HUP
# The kubelet needs a control group in every hierarchy.
for root in $(awk '$3 ~ /^cgroup2?$/ { print $2 }' /proc/mounts); do mkdir "$root/$group"; done
# Ends with this shell, however that ends.
setpriv --pdeathsig KILL unshare --net --mount --pid --fork --kill-child --mount-proc \
  proof/kubernetes/cluster/inside.sh npx --no-install tsx proof/kubernetes/main.ts \
  --folder "$folder" --group "$group" --node "$PWD/${node#"$PWD/"}" "$@" &
inside=$!
wait "$inside"
