#!/usr/bin/env bash
# The tests on real hosts, on any Debian or Ubuntu machine: `sudo npm run test:hosts`. Arguments go to jest.
# Installs what is missing (a Debian in a container, and what looks at it from outside); needs Node.js, npm,
# Terraform and Go, and `npm ci` once before.
set -euo pipefail
cd "$(dirname "$0")/../.."

[ "$(id -u)" -eq 0 ] || { echo "test hosts need root: sudo $0" >&2; exit 1; }
command -v terraform > /dev/null || { echo "terraform is missing: https://developer.hashicorp.com/terraform/install" >&2; exit 1; }
command -v go > /dev/null || { echo "go is missing, for a CA to test with: https://go.dev/dl" >&2; exit 1; }

missing=()
need() { command -v "$1" > /dev/null || missing+=("$2"); }
need mmdebstrap mmdebstrap
need systemd-nspawn systemd-container
need ip iproute2
need nft nftables
need nmap nmap
need ssh-keyscan openssh-client
need curl curl
[ -e /usr/share/keyrings/debian-archive-keyring.gpg ] || missing+=(debian-archive-keyring)
if [ ${#missing[@]} -gt 0 ]; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq
  apt-get install -y -qq "${missing[@]}" > /dev/null
fi

npx --no-install tsx build/build.ts
export CI=true PORTICO_TEST_HOSTS=1
[ $# -gt 0 ] || set -- proof/hosts/
npx --no-install tsx proof/prepare.ts "$@"
# Hosts wait now and then: more of them at once than there are cores. Each suite has its Debian, most of them 12;
# `PORTICO_TEST_RELEASE=trixie` gives all of them another.
npx --no-install jest --maxWorkers=6 "$@"
