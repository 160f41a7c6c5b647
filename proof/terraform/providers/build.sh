#!/usr/bin/env bash
# Builds the Terraform providers of the tests from the Go module proxy into a
# filesystem mirror, for machines that cannot reach the Terraform registry.
#
#   build.sh [DIR]                             default: .cache/terraform-providers
#   TF_CLI_CONFIG_FILE=DIR/terraform.tfrc terraform init
set -euo pipefail

# NAME VERSION MODULE PACKAGE; the commit behind VERSION is pinned in go.mod and go.sum of the folder MODULE. Of several
# versions, Terraform takes the newest that a stack allows.
providers='
local 2.9.0 newest github.com/terraform-providers/terraform-provider-local
tls   4.2.1 newest github.com/hashicorp/terraform-provider-tls
tls   4.0.4 oldest github.com/hashicorp/terraform-provider-tls
'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../../../testkit/goPrograms.sh"
folder_for_one "${1:-$here/../../../.cache/terraform-providers}"

os=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "build.sh: no provider build for $(uname -m)" >&2; exit 1 ;;
esac

# Written on every run: the path must be absolute, and a restored cache may have moved.
# No `direct` block: what the mirror lacks is an error, not a download.
cat > "$dir/terraform.tfrc" <<EOF
provider_installation {
  filesystem_mirror {
    path    = "$dir/mirror"
    include = ["registry.terraform.io/hashicorp/local", "registry.terraform.io/hashicorp/tls"]
  }
}
EOF

exit_if_built "Terraform providers" "$here"/build.sh "$here"/*/go.{mod,sum}
rm -rf "$dir/mirror"
export GOOS=$os GOARCH=$arch
while read -r name version module package; do
  [[ -n $name ]] || continue
  # Where Terraform looks for it in an unpacked mirror.
  target=$dir/mirror/registry.terraform.io/hashicorp/$name/$version/${os}_$arch/terraform-provider-${name}_v$version
  go_program "$here/$module" "$target" "$package"
done <<< "$providers"
is_built "Terraform providers"
