#!/usr/bin/env bash
# Synthesis and the tests of the constructs on cdktn, the maintained fork of cdktf, as docs/versions.md tells users to install
# it: a copy of the sources with that page's own lines in package.json. Needs the npm registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tar --exclude=./.git --exclude=./.cache --exclude=./dist --exclude=./out --exclude=./cdktf.out --exclude=node_modules \
  --create --file=- . | tar --extract --directory "$work"
cd "$work"

node - <<'SCRIPT'
const { readFileSync, writeFileSync } = require("node:fs");
const versions = readFileSync("docs/versions.md", "utf8");
const wanted = JSON.parse(/```json\n([^]*?)```/.exec(versions)[1]);
const own = JSON.parse(readFileSync("package.json", "utf8"));
Object.assign(own.devDependencies, wanted.dependencies);
Object.assign(own.overrides, wanted.overrides);
// The project itself is no user of its own peers.
delete own.peerDependencies;
writeFileSync("package.json", JSON.stringify(own, undefined, 2));
SCRIPT

npm install --ignore-scripts --no-audit --no-fund --loglevel=error
installed=$(node -p 'require("cdktf/package.json").name')
[ "$installed" = cdktn ] || { echo "cdktf is $installed, not cdktn" >&2; exit 1; }
npm run --silent typecheck
npx --no-install tsx build/build.ts
npx --no-install tsx main.ts
npx --no-install jest --maxWorkers=2 __tests__/constructs __tests__/testing proof/package/package.test.ts
