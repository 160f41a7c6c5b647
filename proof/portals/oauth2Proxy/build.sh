#!/usr/bin/env bash
# Builds oauth2-proxy, a portal that signs users on with a provider of OpenID Connect, from the Go module proxy.
#
#   build.sh [DIR]   default: .cache/oauth2-proxy
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../../testkit/goPrograms.sh"
folder_for_one "${1:-$here/../../../.cache/oauth2-proxy}"
exit_if_built oauth2-proxy "$here"/build.sh "$here"/go.{mod,sum}
go_program "$here" "$dir/oauth2-proxy" github.com/oauth2-proxy/oauth2-proxy/v7
is_built oauth2-proxy
