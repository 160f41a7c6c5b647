#!/usr/bin/env bash
# Builds SFTPGo, a file server with a web interface, WebDAV and share links (https://sftpgo.com), from the Go module proxy, with
# nothing but local files and users in memory; its pages lie beside it. Some of its dependencies are newer than it asks for:
# those of the Terraform providers, which are compiled already.
#
#   build.sh [DIR]   default: .cache/sftpgo
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../../testkit/goPrograms.sh"
folder_for_one "${1:-$here/../../../.cache/sftpgo}"
exit_if_built SFTPGo "$here"/build.sh "$here"/go.{mod,sum}
module=github.com/drakkan/sftpgo/v2
go_program "$here" "$dir/sftpgo" \
  -tags nogcs,nos3,noazblob,nomysql,nopgsql,nosqlite,nobolt,noportable,nometrics "$module"
rm -rf "$dir"/{templates,static,openapi}
cp -R "$(go -C "$here" list -m -f '{{.Dir}}' "$module")"/{templates,static,openapi} "$dir"
chmod -R u+w "$dir"/{templates,static,openapi}
is_built SFTPGo
