#!/usr/bin/env bash
# Builds the Terraform providers of the tests from the Go module proxy into a
# filesystem mirror, for machines that cannot reach the Terraform registry.
#
#   build.sh [DIR]                             default: .cache/terraform-providers
#   TF_CLI_CONFIG_FILE=DIR/terraform.tfrc terraform init
set -euo pipefail

# NAME VERSION PACKAGE; the commit behind VERSION is pinned in NAME-VERSION/go.mod and go.sum. Of several versions,
# Terraform takes the newest that a stack allows.
providers='
local 2.9.0 github.com/terraform-providers/terraform-provider-local
tls   4.0.4 github.com/hashicorp/terraform-provider-tls
tls   4.2.1 github.com/hashicorp/terraform-provider-tls
'

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-$here/../../../.cache/terraform-providers}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

os=$(uname -s | tr '[:upper:]' '[:lower:]')
case $(uname -m) in
  x86_64) arch=amd64 ;;
  aarch64 | arm64) arch=arm64 ;;
  *) echo "build.sh: no provider build for $(uname -m)" >&2; exit 1 ;;
esac

# binary NAME VERSION: where Terraform looks for it in an unpacked mirror.
binary() {
  echo "$dir/mirror/registry.terraform.io/hashicorp/$1/$2/${os}_$arch/terraform-provider-$1_v$2"
}

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

# Two test runs may find the mirror missing at the same moment.
if command -v flock > /dev/null; then
  exec 9> "$dir/lock"
  flock 9
fi

stamp="$os $arch $(cat "$here"/build.sh "$here"/*/go.{mod,sum} | sha256sum)"
built=true
[[ -f $dir/stamp && $(< "$dir/stamp") == "$stamp" ]] || built=false
while read -r name version _; do
  [[ -z $name || -x $(binary "$name" "$version") ]] || built=false
done <<< "$providers"
if $built; then
  echo "Terraform providers are up to date in $dir"
  exit 0
fi

rm -rf "$dir/mirror" "$dir/stamp"
# The build must not depend on the caller's flags, workspace or C compiler.
export GOFLAGS=-mod=readonly GOWORK=off CGO_ENABLED=0 GOOS=$os GOARCH=$arch
while read -r name version package; do
  [[ -n $name ]] || continue
  start=$SECONDS
  target=$(binary "$name" "$version")
  mkdir -p "$(dirname "$target")"
  go -C "$here/$name-$version" build -trimpath -buildvcs=false -ldflags='-s -w' -o "$target" "$package"
  echo "built hashicorp/$name $version in $((SECONDS - start)) s"
done <<< "$providers"
# Last, so that an interrupted build is not taken for a finished one.
echo "$stamp" > "$dir/stamp"
echo "Terraform providers are ready in $dir after $SECONDS s"
