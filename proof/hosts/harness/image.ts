import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { mustRun, runCommand } from "./commands.js";

const CACHE = join(__dirname, "../../../.cache/host-image");

/** Releases of Debian by their names: 11, whose systemd is too old, 12 and 13. */
const DEBIANS = ["bullseye", "bookworm", "trixie"] as const;
/** Of Ubuntu: 22.04, whose systemd is the oldest that is supported, 24.04 and 26.04. */
const UBUNTUS = ["jammy", "noble", "resolute"] as const;
const RELEASES = [...DEBIANS, ...UBUNTUS];
export type Release = (typeof RELEASES)[number];

const isUbuntu = (release: Release): boolean => UBUNTUS.some((name) => name === release);

/** The release that the hosts of a suite have, unless the run asks for another: `PORTICO_TEST_RELEASE`. */
export function releaseOfSuite(usual: Release = "bookworm"): Release {
  const wanted = process.env["PORTICO_TEST_RELEASE"] ?? usual;
  const known = RELEASES.find((name) => name === wanted);
  if (known === undefined)
    throw new Error(`PORTICO_TEST_RELEASE=${wanted} is none of ${RELEASES.join(", ")}`);
  return known;
}

/** A server as a provider hands it over: systemd, sshd, and what an administrator looks around with. No Node. */
const PACKAGES = [
  "ca-certificates",
  "curl",
  "dbus",
  "iproute2",
  "iputils-ping",
  "logrotate",
  "nftables",
  "openssh-server",
  "openssl",
  "procps",
  "sudo",
  "systemd",
  "systemd-sysv",
];

/** What the hosts of a pair have besides. */
export const PAIR_PACKAGES = ["keepalived"];

/** What a host has whose addresses fail2ban bans; `python3-systemd` is for the jail of its SSH server. */
export const FAIL2BAN_PACKAGES = ["fail2ban", "python3-pyinotify", "python3-systemd"];

/** Makes the images, which proof/prepare.ts does before the tests; one after the other, since each keeps a core busy. */
export async function prepareImages(): Promise<void> {
  for (const packages of [PAIR_PACKAGES, FAIL2BAN_PACKAGES]) await hostImage(packages);
  for (const release of DEBIANS) await hostImage([], release);
}

/** Raise it when the steps below change, so that nobody gets an older image. */
const RECIPE = 3;

/**
 * Ends with the new tree at "$work/root", without what only installing needs, in the tarball "$1". The tree is in memory:
 * dpkg waits for the disk after each file, and everything else that runs on the machine waits with it.
 */
const inWorkFolder = (steps: string): string => `
    [ -e "$1" ] && exit 0
    work=$(mktemp -d "$1.XXXXXX")
    trap 'umount "$work" || true; rm -rf "$work" "$work.tar"' EXIT
    mount -t tmpfs -o size=2g,mode=755 image "$work"
    ${steps}
    rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    : > "$work/root/etc/machine-id"
    tar -C "$work/root" --numeric-owner --xattrs -cf "$work.tar" .
    mv "$work.tar" "$1"`;

/** With neither manuals nor translations, as in Debian's own images for containers: nobody reads them, and they take time. */
const WITHOUT = ["doc", "locale", "man"]
  .map((name) => `--dpkgopt='path-exclude=/usr/share/${name}/*'`)
  .join(" ");

/** The hook joins `/bin` and the like with `/usr`, as an installer does, in releases that have the package for it. */
const install = (archive: string, options = ""): string => `
    mmdebstrap --quiet --variant=minbase --include="$2" ${options} ${WITHOUT} \
      --hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr "$3" "$work/root" ${archive} >&2
    systemctl --root="$work/root" enable systemd-networkd.service >&2`;

const DEBIAN = inWorkFolder(install("http://deb.debian.org/debian"));

/** Debian has no package with Ubuntu's keys. */
const UBUNTU = inWorkFolder(`
    archive=https://archive.ubuntu.com/ubuntu
    curl -fsSo "$work/keys.deb" "$archive/pool/main/u/ubuntu-keyring/ubuntu-keyring_2023.11.28.1_all.deb"
    dpkg-deb -x "$work/keys.deb" "$work/keys"
    keys="$work/keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"
    ${install('"$archive"', '--components=main,universe --keyring="$keys"')}`);

/** From the tree without them: another mmdebstrap would install all of Debian again. */
const MORE_PACKAGES = inWorkFolder(`
    mkdir "$work/root"
    tar -C "$work/root" --numeric-owner --xattrs -xf "$3"
    apt() { DEBIAN_FRONTEND=noninteractive chroot "$work/root" apt-get -q "$@" >&2; }
    apt update
    apt install --yes --no-install-recommends $2
    rm -f "$work"/root/var/cache/apt/*.bin`);

/**
 * Path of a tarball with a freshly installed system; made by `mmdebstrap` when it is not there yet (half a minute),
 * kept in `.cache/host-image`.
 *
 * @param packages further Debian packages; each set is an image of its own
 */
export async function hostImage(
  packages: readonly string[] = [],
  release: Release = releaseOfSuite(),
): Promise<string> {
  const more = [...new Set(packages)].filter((name) => !PACKAGES.includes(name)).sort();
  const key = createHash("sha256")
    .update(JSON.stringify([RECIPE, release, PACKAGES, more]))
    .digest("hex")
    .slice(0, 12);
  const tarball = join(CACHE, `${release}-${key}.tar`);
  if (existsSync(tarball)) return tarball;
  await refuseMissingTools();
  mkdirSync(CACHE, { recursive: true });
  const [script, ...args] =
    more.length === 0
      ? [isUbuntu(release) ? UBUNTU : DEBIAN, PACKAGES.join(","), release]
      : [MORE_PACKAGES, more.join(" "), await hostImage([], release)];
  // mmdebstrap mounts into the new tree: in a mount namespace nothing of it is left behind.
  const build = ["unshare", "--mount", "bash", "-euc", script, "build", tarball, ...args];
  // A lock for each image: who waits for one should not wait for the others, too.
  await mustRun(["flock", `${tarball}.lock`, ...build], { timeoutSeconds: 1_800 });
  return tarball;
}

const TOOLS = { mmdebstrap: "mmdebstrap", "systemd-nspawn": "systemd-container", ip: "iproute2" };

/** The tools that hosts need, or an error that names the packages. */
export async function refuseMissingTools(): Promise<void> {
  const missing: string[] = [];
  for (const [tool, name] of Object.entries(TOOLS)) {
    if ((await runCommand(["which", tool])).code !== 0) missing.push(name);
  }
  if (process.getuid?.() !== 0) throw new Error("test hosts need root");
  if (missing.length > 0) throw new Error(`test hosts need: apt-get install ${missing.join(" ")}`);
}
