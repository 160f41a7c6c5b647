import { type BigIntStats, constants, lstatSync } from "node:fs";
import { open, realpath, stat } from "node:fs/promises";
import { delimiter, dirname, posix } from "node:path";
import { chmodCommand, fsPath, shown, withMode } from "./pathText.js";
import { wayTo } from "./trustedPath.js";

/*
 * Which files the proxy shows to clients (service 2.3). The proxy can read more than the users of its host can: keys, its
 * state, its own process. A user who can make links must not have these sent. So the proxy sends only files that others
 * may read, below directories that others may enter, and nothing from places that look different to the proxy than to
 * other users. Groups and access control lists do not count.
 *
 * Paths have one char a byte.
 */

/** Why a file that is open may not be sent; `moved` if the path no longer leads to it. */
export type Closed = "moved" | { readonly why: string };

/** How a file was reached. Through a link, the advice must not open its target. */
export type FileWay = "straight" | "link";

/**
 * Judges an open file or directory by its real path and its state.
 *
 * The directories are looked up by name after the file was opened. They cannot be exchanged for others that are open:
 * `real` is where the file really is, and whoever cannot rename the directories above a secret cannot change that path.
 *
 * @param real its path without links
 * @param root what the config names, without links: the directories above may be closed to others, because nobody else
 *   chose them (a home directory often is)
 */
export async function closedToOthers(
  real: string,
  opened: BigIntStats,
  way: FileWay,
  root: string,
): Promise<Closed | undefined> {
  const places = await ownPlaces();
  // These entries were used a moment ago, to open the file: to look at them again hardly waits for the disk.
  const there = entryOf(real);
  const paths = directoriesAbove(real);
  const above = paths.map(entryOf);
  if (there?.ino !== opened.ino || there.dev !== opened.dev || !above.every(isThere)) return "moved";
  const place = places.placeOf(real, opened, above);
  if (place !== undefined) return closedPlace(place);
  for (const [i, { mode }] of above.entries()) {
    // Each of these paths is above the file, as the root is, so the shorter one is above the other.
    if (paths[i]!.length >= root.length && (mode & OTHERS_ENTER) === 0n)
      return lacks("directory", paths[i]!, mode, way);
  }
  if (opened.isDirectory() || (opened.mode & OTHERS_READ) !== 0n) return undefined;
  // The file may belong somewhere else.
  return lacks("file", real, opened.mode, opened.nlink > 1n ? "link" : way);
}

const OTHERS_READ = 0o4n;
const OTHERS_ENTER = 0o1n;
const BIGINT = { bigint: true } as const;
const BIGINT_IF_THERE = { bigint: true, throwIfNoEntry: false } as const;

function lacks(kind: "file" | "directory", path: string, mode: bigint, way: FileWay): Closed {
  const [right, grant] = kind === "file" ? (["read", "o+r"] as const) : (["execute", "o+rx"] as const);
  const advice =
    way === "link"
      ? "a link leads there: remove the link, unless every user may read its target"
      : `fix it with: ${chmodCommand(grant, path)}`;
  return { why: `${withMode(kind, path, Number(mode))} lacks ${right} permission for others; ${advice}` };
}

function closedPlace(place: string): Closed {
  return {
    why: `it is in "${shown(place)}", and nothing from there is sent; use another path, or remove the link or mount that leads there`,
  };
}

const entryOf = (path: string): BigIntStats | undefined => lstatSync(fsPath(path), BIGINT_IF_THERE);

const isThere = (entry: BigIntStats | undefined): entry is BigIntStats => entry !== undefined;

/** `/`, `/srv`, `/srv/media` for `/srv/media/file`; nothing for `/`. */
function directoriesAbove(real: string): string[] {
  const paths: string[] = [];
  for (let at = real; at !== "/";) paths.push((at = posix.dirname(at)));
  return paths.reverse();
}

/** File systems of the kernel, whose files differ for each process, and the places of secrets. */
const KERNEL = ["/proc", "/sys", "/dev"];
const SECRETS = ["/run/credentials", "/run/secrets", "/etc/portico/tls"];

/** A directory for files of all users, as `/tmp` is. */
const SHARED_MEMORY = "/dev/shm";

/** The directory that a reload hands credentials over in; the unit names it. */
export const HANDED_OVER = "PORTICO_CREDENTIALS";

/** systemd tells a service the directories that it makes for the service. */
const OWN_DIRECTORIES = [
  ...[HANDED_OVER, "CREDENTIALS_DIRECTORY", "STATE_DIRECTORY", "RUNTIME_DIRECTORY"],
  ...["LOGS_DIRECTORY", "CACHE_DIRECTORY"],
];

/** The places of which nothing is sent: by name, by the directory itself (bind mounts), and whole file systems. */
class HiddenPlaces {
  private readonly inodes = new Map<string, string>();
  private readonly devices = new Map<bigint, string>();

  private constructor(private readonly names: readonly string[]) {}

  static async look(env: NodeJS.ProcessEnv): Promise<HiddenPlaces> {
    const own = OWN_DIRECTORIES.flatMap((name) => (env[name] ?? "").split(delimiter));
    const names = [...KERNEL, ...SECRETS, ...own.filter((path) => path.startsWith("/") && path !== "/")];
    const places = new HiddenPlaces(names);
    await Promise.all(names.map((name) => places.add(name).catch(() => undefined)));
    return places;
  }

  private async add(name: string): Promise<void> {
    const [found, parent] = await Promise.all([stat(name, BIGINT), stat(dirname(name), BIGINT)]);
    this.inodes.set(identity(found), name);
    // systemd mounts each service's credentials, and the state on disk may be a mount that is shared with media.
    const isWhole = KERNEL.includes(name) || name.startsWith("/run/credentials/");
    if (isWhole && found.dev !== parent.dev) this.devices.set(found.dev, name);
  }

  placeOf(real: string, opened: Inode, above: readonly Inode[]): string | undefined {
    const isShared = real.startsWith(`${SHARED_MEMORY}/`);
    const named = this.names.find((name) => real === name || real.startsWith(`${name}/`));
    if (named !== undefined && !(isShared && named === "/dev")) return named;
    const device = this.devices.get(opened.dev);
    if (device !== undefined) return device;
    for (const directory of [...above, opened].slice(isShared ? 2 : 0)) {
      const name = this.inodes.get(identity(directory));
      if (name !== undefined) return name;
    }
    return undefined;
  }
}

type Inode = Pick<BigIntStats, "dev" | "ino">;

const identity = ({ dev, ino }: Inode): string => `${dev}:${ino}`;

/** Places come and go: a reload makes the directory of renewed credentials. */
const PLACES_MS = 1_000;
let known: { readonly places: Promise<HiddenPlaces>; readonly at: number } | undefined;

function ownPlaces(): Promise<HiddenPlaces> {
  const now = performance.now();
  if (known === undefined || now - known.at >= PLACES_MS)
    known = { places: HiddenPlaces.look(process.env), at: now };
  return known.places;
}

/** The real path of a path of the config, or the link on it that is not followed. */
export type FollowedPath = { readonly real: string } | { readonly link: string };

/**
 * Follows a path of the config: only links that root or the proxy's own user made, in directories that nobody else can
 * change. Another user could have any file of the proxy sent by such a link.
 */
export async function followOwnLinks(path: string): Promise<FollowedPath> {
  const real = (await realpath(fsPath(path), "buffer")).toString("latin1");
  if (real === path) return { real };
  const way = await wayTo(path, "moved-link");
  return way.link === undefined ? { real: way.path } : { link: way.link };
}

/** Why a link is not followed, and what to do. */
export function linkText(link: string): string {
  return (
    `"${shown(link)}" is a symbolic link that a user other than root can have made, and is not followed; ` +
    "let only root change the link and the directories above it, or use the path that the link leads to"
  );
}

/** The text of a file that the config names; its directories may be closed to others. Rejects with the system's error. */
export async function readOpenToOthers(
  path: string,
  bytesMax: number,
): Promise<{ readonly text: string } | { readonly why: string } | { readonly size: number }> {
  const followed = await followOwnLinks(Buffer.from(path).toString("latin1"));
  if ("link" in followed) return { why: linkText(followed.link) };
  const { real } = followed;
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK, O_NOCTTY } = constants;
  const file = await open(fsPath(real), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  try {
    const opened = await file.stat(BIGINT);
    if (!opened.isFile()) throw new Error("is not a regular file");
    const closed = await closedToOthers(real, opened, "straight", real);
    if (closed !== undefined)
      return closed === "moved" ? { why: "it was replaced while it was read" } : closed;
    if (opened.size > BigInt(bytesMax)) return { size: Number(opened.size) };
    return { text: await file.readFile("utf8") };
  } finally {
    await file.close();
  }
}
