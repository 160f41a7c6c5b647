import { createHash } from "node:crypto";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { mustRun, runCommand } from "./commands.js";

const CACHE = join(__dirname, "../../../.cache/host-image");
const SUITE = "bookworm";

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

/** Raise it when the steps below change, so that nobody gets an older image. */
const RECIPE = 1;

/**
 * Path of a tarball with a freshly installed Debian; made by `debootstrap` when it is not there yet (about a minute),
 * kept in `.cache/host-image`.
 *
 * @param packages further Debian packages; each set is an image of its own
 */
export async function hostImage(packages: readonly string[] = []): Promise<string> {
  const names = [...new Set([...PACKAGES, ...packages])].sort();
  const key = createHash("sha256")
    .update(JSON.stringify([RECIPE, SUITE, names]))
    .digest("hex")
    .slice(0, 12);
  const tarball = join(CACHE, `${SUITE}-${key}.tar`);
  if (existsSync(tarball)) return tarball;
  await refuseMissingTools();
  mkdirSync(CACHE, { recursive: true });
  const script = `
    [ -e "$1" ] && exit 0
    work=$(mktemp -d "$1.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    debootstrap --variant=minbase --include="$2" "$3" "$work/root" >&2
    systemctl --root="$work/root" enable systemd-networkd.service >&2
    rm -rf "$work"/root/var/cache/apt/archives/*.deb "$work"/root/var/lib/apt/lists/*
    : > "$work/root/etc/machine-id"
    tar -C "$work/root" --numeric-owner --xattrs -cf "$work/image.tar" .
    mv "$work/image.tar" "$1"`;
  // debootstrap mounts into the new tree: in a mount namespace nothing of it is left behind.
  const build = ["unshare", "--mount", "bash", "-euc", script, "build", tarball, names.join(","), SUITE];
  // A lock for each image: who waits for one should not wait for the others, too.
  await mustRun(["flock", `${tarball}.lock`, ...build], { timeoutSeconds: 600 });
  return tarball;
}

const TOOLS = { debootstrap: "debootstrap", "systemd-nspawn": "systemd-container", ip: "iproute2" };

/** The tools that hosts need, or an error that names the packages. */
export async function refuseMissingTools(): Promise<void> {
  const missing: string[] = [];
  for (const [tool, name] of Object.entries(TOOLS)) {
    if ((await runCommand(["which", tool])).code !== 0) missing.push(name);
  }
  if (process.getuid?.() !== 0) throw new Error("test hosts need root");
  if (missing.length > 0) throw new Error(`test hosts need: apt-get install ${missing.join(" ")}`);
}
