#!/usr/bin/env bash
# OpenTofu in Terraform's place: init, apply and an empty second plan of main.ts, with the providers of `../providers/`.
# Builds OpenTofu from its Go module once, which takes five minutes on two cores: too long for each CI run.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
project=$PWD
version=v1.12.6
tofu=$project/.cache/opentofu/$version/tofu

if [ ! -x "$tofu" ]; then
  sources=$(mktemp -d)
  trap 'rm -rf "$sources"' EXIT
  # `go install` refuses modules with replacements, which OpenTofu has.
  downloaded=$(go mod download -json "github.com/opentofu/opentofu@$version" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')
  cp -R "$downloaded/." "$sources" && chmod -R u+w "$sources"
  flags='-s -w -X github.com/opentofu/opentofu/version.dev=no'
  CGO_ENABLED=0 go -C "$sources" build -trimpath -buildvcs=false -ldflags="$flags" -o "$tofu" ./cmd/tofu
fi
"$tofu" version

proof/terraform/providers/build.sh "$project/.cache/terraform-providers"
work=$(mktemp -d)
trap 'rm -rf "$work" "${sources:-}"' EXIT
# OpenTofu looks for the same providers under its own registry's name.
mkdir -p "$work/mirror"
cp -R "$project/.cache/terraform-providers/mirror/registry.terraform.io" "$work/mirror/registry.opentofu.org"
cat > "$work/tofu.rc" <<EOF
provider_installation {
  filesystem_mirror {
    path = "$work/mirror"
  }
}
EOF
export TF_CLI_CONFIG_FILE=$work/tofu.rc

npx --no-install tsx build/build.ts
cd "$work"
"$project/node_modules/.bin/tsx" "$project/main.ts"
run() { "$tofu" -chdir=cdktf.out/stacks/portico "$@" -input=false -no-color > log || { cat log; exit 1; }; }
run init
run apply -auto-approve
# Exit status 2 would mean a change.
run plan -detailed-exitcode
run destroy -auto-approve
echo "OpenTofu $version: init, plan, apply, a second plan that is empty, destroy"
