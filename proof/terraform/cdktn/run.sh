#!/usr/bin/env bash
# cdktn-portico: the sources with the names of CDK Terrain, their types and tests; the packed package in projects that have
# cdktn and no package of cdktf; its state, which is that of cdktf-portico. Needs the npm registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
project=$PWD

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
npm_install() { npm install --no-audit --no-fund --loglevel=error --prefer-offline "$@"; }

echo "==> the sources"
npx --no-install tsx build/build.ts
npx --no-install tsx build/cdktn.ts "$work/sources"
# Everything but the library is what is installed here.
mkdir "$work/library" "$work/sources/node_modules"
npm_install --prefix "$work/library" cdktn@0.24.0 constructs@~10.7.0
ln -s "$project"/node_modules/* "$project"/node_modules/.bin "$work/sources/node_modules"
rm -r "$work"/sources/node_modules/{cdktf,@cdktf,constructs}
ln -s "$work"/library/node_modules/* "$work/sources/node_modules"
cd "$work/sources"
git init --quiet && git add --all
if grep -n '^npm install .*cdktf' README.md docs/*.md; then echo "a page of cdktn-portico installs cdktf's" >&2; exit 1; fi
if grep -n 'config\.missing-package' docs/errors.md; then echo "no package of a provider can be missing here" >&2; exit 1; fi
# A line that names both libraries says what they are to each other; of cdktf's own names only files are left.
if grep -rnE 'cdktf' README.md docs examples main.ts \
  | grep -vE 'cdktn|cdktf\.(json|out)' | grep -vE '^docs/(moving|versions)\.md:'; then
  echo "a page of cdktn-portico speaks of cdktf" >&2; exit 1
fi
# Checks the library's types as well.
npm run --silent build
# Whole stacks with resources of each provider, the texts that name a package, ids, tokens and checks at synth: what the
# library of constructs has a part in. The rest is the same code.
npx --no-install jest --maxWorkers=2 __tests__/constructs/{whole,stack,providers,mistakes,ids,tokens}.test.ts \
  __tests__/kubernetes/frontEnd.test.ts __tests__/testing

echo "==> the files of the package are those of cdktf-portico, with resources in place of provider packages"
# What entry points share has names by its content.
files() { npm pack --dry-run --ignore-scripts --json "$1" 2> /dev/null | grep -o '"path": "[^"]*"' | grep -vE "/providers/|/lib/shared-" | sort; }
diff <(files "$project") <(files "$work/sources")

echo "==> the package in a new project, by its README, with both ways to test"
# In CI the packages are in npm's cache, since the same test ran for cdktf.
[ -n "${CI:-}" ] || npx --no-install tsx proof/prepare.ts proof/package/newProject.test.ts
npx --no-install jest proof/package/newProject.test.ts

echo "==> beside cdktn's package of another provider, by cdktn's command"
npm pack --silent --ignore-scripts --pack-destination "$work" > /dev/null
mkdir "$work/project" && cd "$work/project"
npm init --yes > /dev/null
npm_install "$work"/cdktn-portico-*.tgz cdktn@0.24.0 constructs@~10.7.0 tsx @cdktn/provider-aws@25.7.0 cdktn-cli@0.24.0
[ ! -e node_modules/cdktf ] && [ ! -e node_modules/@cdktf ] || { echo "the package brings cdktf" >&2; exit 1; }
cat > main.mts <<'EOF'
import { App, TerraformStack } from "cdktn";
import { Eip } from "@cdktn/provider-aws/lib/eip/index.js";
import { AwsProvider } from "@cdktn/provider-aws/lib/provider/index.js";
import { Application, FrontEnd, Host, Mode } from "cdktn-portico";

const app = new App();
const stack = new TerraformStack(app, "portico");
new AwsProvider(stack, "aws", { region: "eu-central-1" });
const address = new Eip(stack, "address", { domain: "vpc" });
const host = Host.fromAddress(stack, "host", address.publicIp, { publicName: "app.example.org" });
const application = Application.server("http://127.0.0.1:3000");
new FrontEnd(stack, "app", { host, mode: Mode.tls(), application });
app.synth();
EOF
echo '{ "language": "typescript", "app": "npx tsx main.mts", "sendCrashReports": "false" }' > cdktf.json
# Its command does not run on Node.js 20.
node24=$(npm --prefix "$project" run --silent node-versions -- --node 24 --path)
CHECKPOINT_DISABLE=1 PATH=$(dirname "$node24"):$PATH npx --no-install cdktn synth
made=cdktf.out/stacks/portico/cdk.tf.json
for part in '"aws_eip"' '"source": "hashicorp/local"' 'aws_eip.address.public_ip' '"tls_self_signed_cert"'; do
  grep --quiet --fixed-strings "$part" "$made" || { echo "$made lacks $part" >&2; exit 1; }
done

echo "==> cdktf-portico in a new project, by cdktf's command"
npm pack --silent --ignore-scripts --pack-destination "$work" "$project" > /dev/null
mkdir "$work/cdktf" && cd "$work/cdktf"
npm init --yes > /dev/null
npm_install "$work"/cdktf-portico-*.tgz cdktf@0.21.0 constructs@10 @cdktf/provider-local@11 @cdktf/provider-tls@11 tsx cdktf-cli@0.21.0
cp "$project/main.ts" . && sed -i 's#"./src/index.js"#"cdktf-portico"#' main.ts
echo '{ "language": "typescript", "app": "npx tsx main.ts", "sendCrashReports": "false" }' > cdktf.json
CHECKPOINT_DISABLE=1 npx --no-install cdktf synth
grep --quiet '"tls_self_signed_cert"' cdktf.out/stacks/portico/cdk.tf.json
cd "$work/project"

echo "==> state of cdktf-portico, where Terraform and its providers are"
config=$project/.cache/terraform-providers/terraform.tfrc
[ -e "$config" ] || config=$project/.cache/terraform-registry/terraform.tfrc
command -v terraform > /dev/null && [ -e "$config" ] || { [ -z "${CI:-}" ]; exit; }
export TF_CLI_CONFIG_FILE=$config CHECKPOINT_DISABLE=1
cp "$work/sources/main.ts" . && sed -i 's#"./src/index.js"#"cdktn-portico"#' main.ts
npx --no-install tsx main.ts
state() { terraform -chdir="$1" "${@:2}" -input=false -no-color > "$work/terraform.log" || { cat "$work/terraform.log"; exit 1; }; }
mkdir "$work/before"
(cd "$work/before" && "$project/node_modules/.bin/tsx" "$project/main.ts")
state "$work/before/cdktf.out/stacks/portico" init
state "$work/before/cdktf.out/stacks/portico" apply -auto-approve
sed "s#$work/project#$work/before#g" cdktf.out/stacks/portico/cdk.tf.json > "$work/before/cdktf.out/stacks/portico/cdk.tf.json"
# Exit status 2 would mean a change.
state "$work/before/cdktf.out/stacks/portico" plan -detailed-exitcode
