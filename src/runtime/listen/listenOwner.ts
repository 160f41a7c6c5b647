import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { printableValue } from "../../model/text/printable.js";
import { canonicalAddress, isWildcard } from "../../model/serving.js";
import { listeningSockets } from "../sockets/node/listeningSockets.js";

/** A process that listens, as `nginx (pid 812)`. */
export interface ListenOwner {
  readonly pid: string;
  readonly text: string;
}

/**
 * Which process listens on an address and port, as far as /proc shows it: an unprivileged user cannot see other users'
 * processes. Only called when a port turned out to be taken.
 */
export function listenOwner(address: string, port: number): ListenOwner | undefined {
  try {
    const inodes = listeningInodes(address, port);
    return inodes.size === 0 ? undefined : ownerOf(inodes);
  } catch {
    return undefined;
  }
}

/** Inodes of the sockets that may be in the way: same port, and the same address or all addresses. */
function listeningInodes(address: string, port: number): Set<string> {
  const wanted = canonicalAddress(address);
  const inTheWay = listeningSockets().filter(
    (socket) =>
      socket.port === port && (socket.address === wanted || isWildcard(socket.address) || isWildcard(wanted)),
  );
  return new Set(inTheWay.map(({ inode }) => inode));
}

/** Few hosts have more processes than this; the response is a courtesy and must not take long. */
const PROCESSES_MAX = 5_000;

function ownerOf(inodes: ReadonlySet<string>): ListenOwner | undefined {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, PROCESSES_MAX)) {
    if (holds(pid, inodes))
      // A process may choose any name for itself.
      return {
        pid,
        text: `${printableValue(readFileSync(`/proc/${pid}/comm`, "utf8").trim())} (pid ${pid})`,
      };
  }
  return undefined;
}

function holds(pid: string, inodes: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      const socket = /^socket:\[(\d+)\]$/.exec(linkOf(`/proc/${pid}/fd/${fd}`));
      return socket !== null && inodes.has(socket[1]!);
    });
  } catch {
    // Another user's process, or one that is gone.
    return false;
  }
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return "";
  }
}
