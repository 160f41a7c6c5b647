import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { ipv4Bits, ipv6Groups } from "../../model/serving.js";

/**
 * Which process listens on an address and port, as `nginx (pid 812)`, as far as /proc shows it: other users'
 * processes are closed to an unprivileged user. Only asked when a port turned out to be taken.
 */
export function listenOwner(address: string, port: number): string | undefined {
  try {
    const inodes = listeningInodes(address, port);
    return inodes.size === 0 ? undefined : ownerOf(inodes);
  } catch {
    return undefined;
  }
}

/** TCP_LISTEN of the kernel, as /proc/net/tcp writes it. */
const LISTENING = "0A";

/** Inodes of the sockets that may be in the way: same port, and the same or all addresses. */
function listeningInodes(address: string, port: number): Set<string> {
  const wanted = kernelAddress(address);
  const isAll = (hex: string): boolean => /^0+$/.test(hex);
  const rows = ["/proc/net/tcp", "/proc/net/tcp6"].flatMap((file) => readLines(file).slice(1));
  const inodes = rows.flatMap((row) => {
    const [, local = "", , state, , , , , , inode] = row.trim().split(/\s+/);
    const [host = "", hexPort = ""] = local.split(":");
    if (state !== LISTENING || parseInt(hexPort, 16) !== port || inode === undefined) return [];
    return host === wanted || isAll(host) || isAll(wanted) ? [inode] : [];
  });
  return new Set(inodes);
}

function readLines(file: string): string[] {
  try {
    return readFileSync(file, "latin1").trimEnd().split("\n");
  } catch {
    return [];
  }
}

/** An address as /proc/net writes it: 32-bit words in hex, each in the host's (little-endian) order. */
function kernelAddress(address: string): string {
  const bits = ipv4Bits(address);
  const groups = bits === undefined ? ipv6Groups(address)! : [bits >>> 16, bits & 0xffff];
  const bytes = Buffer.from(groups.flatMap((group) => [group >> 8, group & 0xff]));
  return bytes.swap32().toString("hex").toUpperCase();
}

/** Few hosts have more processes than this; the answer is a courtesy and must not take long. */
const PROCESSES_MAX = 5_000;

function ownerOf(inodes: ReadonlySet<string>): string | undefined {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  for (const pid of pids.slice(0, PROCESSES_MAX)) {
    if (holds(pid, inodes)) return `${readFileSync(`/proc/${pid}/comm`, "utf8").trim()} (pid ${pid})`;
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
