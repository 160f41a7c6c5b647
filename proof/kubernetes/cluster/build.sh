#!/usr/bin/env bash
# Builds Kubernetes (https://kubernetes.io), its DNS (https://coredns.io) and the container that holds a pod's namespaces
# from the Go module proxy: about eight minutes of CPU once.
#
#   build.sh [DIR]   default: .cache/kubernetes
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../../.cache/kubernetes}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Two runs may find it missing at the same moment.
exec 9> "$dir/lock"
flock 9

stamp="$(uname -sm) $(cat "$here"/build.sh "$here"/{,dns/}{*.go,go.mod,go.sum} | sha256sum)"
if [[ -f $dir/stamp && $(< "$dir/stamp") == "$stamp" ]]; then
  echo "Kubernetes is up to date in $dir"
  exit 0
fi

version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' "$here/go.mod")
# Without its version kubectl does not know which servers it can talk to.
package=k8s.io/component-base/version
flags="-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<< "$version")"

# The build must not depend on the caller's flags, workspace or C compiler.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl; do
  go -C "$here" build -trimpath -buildvcs=false -ldflags="$flags" -o "$dir/bin/$program" "k8s.io/kubernetes/cmd/$program"
done
go -C "$here" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$dir/bin/pause" pause.go
go -C "$here/dns" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$dir/bin/coredns" .
# Last, so that an interrupted build is not taken for a finished one.
echo "$stamp" > "$dir/stamp"
echo "Kubernetes $version is ready in $dir after $SECONDS s"
