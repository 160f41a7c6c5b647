#!/usr/bin/env bash
# Builds SFTPGo, a file server with a web interface, WebDAV and share links (https://sftpgo.com), from the Go module proxy, with
# nothing but local files and users in memory; its pages lie beside it.
#
#   build.sh [DIR]   default: .cache/sftpgo
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../../.cache/sftpgo}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

# Two test runs may find it missing at the same moment.
if command -v flock > /dev/null; then
  exec 9> "$dir/lock"
  flock 9
fi

stamp="$(uname -sm) $(cat "$here"/build.sh "$here"/go.{mod,sum} | sha256sum)"
if [[ -f $dir/stamp && $(< "$dir/stamp") == "$stamp" ]]; then
  echo "SFTPGo is up to date in $dir"
  exit 0
fi

# The build must not depend on the caller's flags, workspace or C compiler.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0
module=github.com/drakkan/sftpgo/v2
go -C "$here" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$dir/sftpgo" \
  -tags nogcs,nos3,noazblob,nomysql,nopgsql,nosqlite,nobolt,noportable,nometrics "$module"
rm -rf "$dir"/{templates,static,openapi}
cp -R "$(go -C "$here" list -m -f '{{.Dir}}' "$module")"/{templates,static,openapi} "$dir"
chmod -R u+w "$dir"/{templates,static,openapi}
# Last, so that an interrupted build is not taken for a finished one.
echo "$stamp" > "$dir/stamp"
echo "SFTPGo is ready in $dir after $SECONDS s"
