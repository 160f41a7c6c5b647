#!/usr/bin/env bash
# Makes ready the servers of the upstream tests: Python packages from their index, and a program in Go.
#
#   prepare.sh [DIR]   default: .cache/upstreams
set -euo pipefail

# Releases of gunicorn that are in use: the last that old installations have, one in between, and the newest.
GUNICORNS='20.1.0 23.0.0 27.0.1'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../testkit/goPrograms.sh"
folder_for_one "${1:-$here/../../.cache/upstreams}"

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

# An environment is bound to its place, and to the interpreter that it was made with.
environment="$dir $(python3 --version) $(sha256sum < "$here/requirements.txt")"
piece python "$environment" python
for version in $GUNICORNS; do
  piece "gunicorn-$version" "$environment" gunicorn "$version"
done
piece go "$(go version) $(cat "$here"/{servers/go/*,../../testkit/goPrograms.sh} | sha256sum)" go_program "$here/servers/go" "$dir/go"
