import { readFileSync } from "node:fs";
import { canonicalAddress } from "../../model/net/address.js";
import type { EvidenceFinding } from "./evidence.js";

/** A way from this machine to all networks that it has no other way to. */
export interface DefaultRoute {
  readonly family: "IPv4" | "IPv6";
  /** Undefined for an interface without a gateway. */
  readonly gateway?: string;
  readonly interface: string;
}

/** The default routes of this machine, as the kernel lists them (proc(5), /proc/net/route and /proc/net/ipv6_route). */
export function defaultRoutes(): DefaultRoute[] {
  return [...ipv4Routes(textOf("/proc/net/route")), ...ipv6Routes(textOf("/proc/net/ipv6_route"))];
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "latin1");
  } catch {
    // The file is missing if the system has no IPv6.
    return "";
  }
}

const NONE = "0".repeat(32);
/** The kernel's RTF_REJECT: such a route leads nowhere. */
const REJECTS = 0x0200;

export function ipv4Routes(text: string): DefaultRoute[] {
  return rowsOf(text).flatMap(([at = "", destination, gateway = "", , , , , mask]) => {
    if (destination !== "00000000" || mask !== "00000000") return [];
    const address = [...Buffer.from(gateway, "hex")].reverse().join(".");
    return [{ family: "IPv4", ...(gateway === "00000000" ? {} : { gateway: address }), interface: at }];
  });
}

export function ipv6Routes(text: string): DefaultRoute[] {
  return rowsOf(text).flatMap(([destination, length, , , gateway = "", , , , flags = "", at = ""]) => {
    if (destination !== NONE || length !== "00" || (parseInt(flags, 16) & REJECTS) !== 0) return [];
    const address = canonicalAddress(gateway.match(/.{4}/g)!.join(":"));
    return [{ family: "IPv6", ...(gateway === NONE ? {} : { gateway: address }), interface: at }];
  });
}

const rowsOf = (text: string): string[][] => text.split("\n").map((line) => line.trim().split(/\s+/));

/** Families that had a default route, and have none: only clients in the host's own networks get responses. */
export function lostRoutes(before: readonly DefaultRoute[], now = defaultRoutes()): EvidenceFinding[] {
  const lost = before.filter(({ family }) => !now.some((route) => route.family === family));
  const first = lost.filter(({ family }, i) => lost.findIndex((route) => route.family === family) === i);
  return first.map(({ family, gateway, interface: at }) => {
    const via = gateway === undefined ? "" : ` via ${gateway}`;
    return {
      at: `${family} default route`,
      what: `is missing; when the deployment was activated, it led to ${gateway ?? "every address"} (${at}). Only clients in the host's own networks get responses`,
      fix: `ip -${family === "IPv4" ? 4 : 6} route add default${via} dev ${at}; to make it last, correct the configuration of the network`,
    };
  });
}
