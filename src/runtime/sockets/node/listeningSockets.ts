import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { canonicalAddress } from "../../../model/serving.js";

/** A TCP socket that listens on this machine. */
export interface ListeningSocket {
  /** In canonical form; IPv6 without brackets. */
  readonly address: string;
  readonly port: number;
  /** Number by which /proc/PID/fd refers to it. */
  readonly inode: string;
}

/** Every TCP socket that listens, as the kernel lists them (proc(5), /proc/pid/net/tcp). */
export function listeningSockets(): ListeningSocket[] {
  // With `ProcSubset=pid` there is no /proc/net.
  return ["/proc/self/net/tcp", "/proc/self/net/tcp6"].flatMap((file) => listeningRows(file).map(listening));
}

/** This process's descriptor of the socket that listens there. */
export function listeningDescriptor(address: string, port: number): number | undefined {
  const wanted = canonicalAddress(address);
  const inodes = listeningSockets()
    .filter((socket) => socket.port === port && socket.address === wanted)
    .map(({ inode }) => inode);
  return [...ownSockets()].find(([, inode]) => inodes.includes(inode))?.[0];
}

/** This process's sockets: descriptor and inode. */
export function ownSockets(): Map<number, string> {
  const found = new Map<number, string>();
  for (const name of readdirSync("/proc/self/fd")) {
    try {
      const link = readlinkSync(`/proc/self/fd/${name}`);
      if (link.startsWith(SOCKET)) found.set(Number(name), link.slice(SOCKET.length, -1));
    } catch {
      // The descriptor that the folder was read through.
    }
  }
  return found;
}

/** Prefix of a socket descriptor's link; the inode and a bracket follow. */
const SOCKET = "socket:[";

function listeningRows(file: string): string[] {
  try {
    const rows = readFileSync(file, "latin1").trimEnd().split("\n").slice(1);
    // A busy host has tens of thousands of connections in the same list.
    return rows.filter((row) => row.includes(LISTENING));
  } catch {
    // The file is missing if the system has no IPv6.
    return [];
  }
}

function listening(row: string): ListeningSocket {
  const [, local = "", , , , , , , , inode = ""] = row.trim().split(/\s+/);
  const [address = "", port = ""] = local.split(":");
  return { address: addressOf(address), port: parseInt(port, 16), inode };
}

/** The kernel's TCP_LISTEN. No other field of a row has two digits, except for decimal ones. */
const LISTENING = " 0A ";

/** The kernel writes an address as 32-bit words in hex, each in the host's (little-endian) order. */
function addressOf(hex: string): string {
  const bytes = Buffer.from(hex, "hex").swap32();
  if (bytes.length === 4) return bytes.join(".");
  const groups = Array.from({ length: 8 }, (_, i) => bytes.readUInt16BE(i * 2).toString(16));
  return canonicalAddress(groups.join(":"));
}
