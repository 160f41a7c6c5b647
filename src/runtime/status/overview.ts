import { isIPv4, isIPv6 } from "node:net";
import type { OutputOf } from "../../model/schema/inferred.js";
import type { OVERVIEW } from "../overviewSchema.js";

export type Overview = OutputOf<typeof OVERVIEW>;
export type Traffic = Overview["traffic"];
export type TrafficHistory = Traffic["history"];
export type ListedTransfer = Overview["transfers"][number];
export type OverviewUpstream = Overview["upstreams"][number];
export type OverviewServer = OverviewUpstream["servers"][number];
export type OverviewCertificate = Overview["certificates"][number];
export type OverviewEvent = Overview["events"][number];
export type Topology = Overview["topology"];
export type TopologyEdge = Topology["edges"][number];
export type TopologyNode = Topology["columns"][number]["nodes"][number];

/** Whether nothing is known to keep a server from responding. */
export const mayRespond = ({ state }: Pick<OverviewServer, "state">): boolean =>
  state === "up" || state === "unasked";

/** How much is shown of clients. */
export interface Shown {
  /** `shortened`: IPv4 to 24 bits, IPv6 to 48. */
  readonly addresses: "whole" | "shortened";
  /** Whether names of files are shown, shortened. */
  readonly fileNames: boolean;
}

/** The same with no more data of clients than the settings allow. */
export function limited(overview: Overview, { addresses, fileNames }: Shown): Overview {
  const transfers = overview.transfers.map(({ file, ...one }) => ({
    ...one,
    client: addresses === "whole" ? one.client : shortAddress(one.client),
    ...(fileNames && file !== undefined ? { file } : {}),
  }));
  return { ...overview, transfers };
}

/** `192.0.2.x`, `2001:db8:1::x` */
export function shortAddress(address: string): string {
  if (isIPv4(address)) return `${address.slice(0, address.lastIndexOf("."))}.x`;
  if (!isIPv6(address)) return address;
  const groups = address.split(":");
  const known = groups.indexOf("");
  return `${groups.slice(0, known === -1 ? 3 : Math.min(3, known)).join(":")}::x`;
}
