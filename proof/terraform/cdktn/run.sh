#!/usr/bin/env bash
# cdktn-portico: the sources with the names of CDK Terrain, their types and tests, and the packed package in a project that
# has cdktn and no provider package. Needs the npm registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
project=$PWD

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npx --no-install tsx build/build.ts
npx --no-install tsx build/cdktn.ts "$work/sources"
cd "$work/sources"
git init --quiet && git add --all
npm install --ignore-scripts --no-audit --no-fund --loglevel=error
npm run --silent typecheck
npm run --silent build
npx --no-install tsx main.ts
npx --no-install jest --maxWorkers=2 __tests__/constructs __tests__/kubernetes __tests__/testing

echo "==> the package in a project"
npm pack --silent --ignore-scripts --pack-destination "$work" > /dev/null
mkdir "$work/project" && cd "$work/project"
npm init --yes > /dev/null
npm install --no-audit --no-fund --loglevel=error "$work"/cdktn-portico-*.tgz cdktn@0.24.0 constructs@~10.7.0 tsx
[ ! -e node_modules/cdktf ] && [ ! -e node_modules/@cdktf ] || { echo "the package brings cdktf" >&2; exit 1; }
cp "$work/sources/main.ts" . && sed -i 's#"./src/index.js"#"cdktn-portico"#' main.ts
npx --no-install tsx main.ts

echo "==> state of cdktf-portico, where Terraform and its providers are"
config=$project/.cache/terraform-providers/terraform.tfrc
[ -e "$config" ] || config=$project/.cache/terraform-registry/terraform.tfrc
command -v terraform > /dev/null && [ -e "$config" ] || { [ -z "${CI:-}" ]; exit; }
export TF_CLI_CONFIG_FILE=$config CHECKPOINT_DISABLE=1
state() { terraform -chdir="$1" "${@:2}" -input=false -no-color > "$work/terraform.log" || { cat "$work/terraform.log"; exit 1; }; }
mkdir "$work/before"
(cd "$work/before" && "$project/node_modules/.bin/tsx" "$project/main.ts")
state "$work/before/cdktf.out/stacks/portico" init
state "$work/before/cdktf.out/stacks/portico" apply -auto-approve
sed "s#$work/project#$work/before#g" cdktf.out/stacks/portico/cdk.tf.json > "$work/before/cdktf.out/stacks/portico/cdk.tf.json"
# Exit status 2 would mean a change.
state "$work/before/cdktf.out/stacks/portico" plan -detailed-exitcode
