#!/usr/bin/env bash
# Builds Pebble, a CA for tests (https://github.com/letsencrypt/pebble), and its DNS server from the Go module proxy.
#
#   build.sh [DIR]   default: .cache/pebble
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../../testkit/goPrograms.sh"
folder_for_one "${1:-$here/../../../.cache/pebble}"
exit_if_built Pebble "$here"/build.sh "$here"/go.{mod,sum}
for program in pebble pebble-challtestsrv; do
  go_program "$here" "$dir/$program" "github.com/letsencrypt/pebble/v2/cmd/$program"
done
is_built Pebble
