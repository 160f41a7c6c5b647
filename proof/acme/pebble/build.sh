#!/usr/bin/env bash
# Builds Pebble, a CA for tests (https://github.com/letsencrypt/pebble), and its DNS server from the Go module proxy.
#
#   build.sh [DIR]   default: .cache/pebble
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../../.cache/pebble}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Two test runs may find it missing at the same moment.
if command -v flock > /dev/null; then
  exec 9> "$dir/lock"
  flock 9
fi

stamp="$(uname -sm) $(cat "$here"/build.sh "$here"/go.{mod,sum} | sha256sum)"
if [[ -f $dir/stamp && $(< "$dir/stamp") == "$stamp" ]]; then
  echo "Pebble is up to date in $dir"
  exit 0
fi

# The build must not depend on the caller's flags, workspace or C compiler.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0
for program in pebble pebble-challtestsrv; do
  go -C "$here" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$dir/$program" \
    "github.com/letsencrypt/pebble/v2/cmd/$program"
done
# Last, so that an interrupted build is not taken for a finished one.
echo "$stamp" > "$dir/stamp"
echo "Pebble is ready in $dir after $SECONDS s"
