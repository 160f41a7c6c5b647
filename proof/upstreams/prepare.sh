#!/usr/bin/env bash
# Makes ready the servers of the upstream tests: Python packages from their index, and a program in Go.
#
#   prepare.sh [DIR]   default: .cache/upstreams
set -euo pipefail

# Releases of gunicorn that are in use: the last that old installations have, one in between, and the newest.
GUNICORNS='20.1.0 23.0.0 27.0.1'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../.cache/upstreams}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Two test runs may find them missing at the same moment.
if command -v flock > /dev/null; then
  exec 9> "$dir/lock"
  flock 9
fi

# piece NAME STAMP COMMAND...: makes one piece, unless it was made for the same stamp.
piece() {
  local name=$1 stamp=$2 start=$SECONDS
  shift 2
  if [[ -f $dir/$name.stamp && $(< "$dir/$name.stamp") == "$stamp" ]]; then
    echo "$name is up to date in $dir"
    return
  fi
  rm -rf "${dir:?}/$name" "$dir/$name.stamp"
  echo "$name is being made"
  "$@"
  # Last, so that an interrupted run is not taken for a finished one.
  echo "$stamp" > "$dir/$name.stamp"
  echo "$name is ready after $((SECONDS - start)) s"
}

python() {
  python3 -m venv "$dir/python"
  "$dir/python/bin/pip" install --quiet --disable-pip-version-check -r "$here/requirements.txt"
}

# Without what it needs: that is in the environment which all releases share.
gunicorn() {
  "$dir/python/bin/pip" install --quiet --disable-pip-version-check --no-deps \
    --target "$dir/gunicorn-$1" "gunicorn==$1"
}

# The build must not depend on the caller's flags, workspace or C compiler.
go_server() {
  GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 GOTOOLCHAIN=local \
    go -C "$here/servers/go" build -trimpath -buildvcs=false -o "$dir/go"
}

# An environment is bound to its place, and to the interpreter that it was made with.
environment="$dir $(python3 --version) $(sha256sum < "$here/requirements.txt")"
piece python "$environment" python
for version in $GUNICORNS; do
  piece "gunicorn-$version" "$environment" gunicorn "$version"
done
piece go "$(go version) $(cat "$here"/servers/go/* | sha256sum)" go_server
