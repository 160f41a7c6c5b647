import { isIPv4, isIPv6 } from "node:net";
import type { CertificateEnd } from "../../model/certificateEnd.js";
import type { GraphEdge, GraphNode } from "../../model/review/routesGraph.js";
import type { Transfer } from "../dispatch/transfers.js";

/**
 * The current state for people: the one document that the status page, `status.json`, the action `status` and `portico
 * status` show. The master makes it on request. All of it is JSON. Texts come from the config, from Portico itself, or
 * from clients; the last are short, printable, and without query strings and tokens. Times are milliseconds since 1970.
 */
export interface Overview {
  /** Release of the master. */
  readonly version: string;
  /** When this was made. */
  readonly at: number;
  /** When the master began to serve. */
  readonly since: number;
  /** Counts up with each config that is put into service. */
  readonly generation: number;
  /** `stopping`: it finishes requests in progress. */
  readonly state: "serving" | "stopping";
  readonly workers: { readonly running: number; readonly silent: number };
  /** `https 0.0.0.0:443`, in the order of the config. */
  readonly listeners: readonly string[];
  readonly traffic: Traffic;
  readonly transfers: readonly ListedTransfer[];
  /** Requests in progress besides `transfers`. */
  readonly moreTransfers: number;
  readonly upstreams: readonly OverviewUpstream[];
  readonly certificates: readonly OverviewCertificate[];
  /** A sentence for each maintenance or quiesce in force. */
  readonly pauses: readonly string[];
  /** Reloads, upgrades, warnings and errors of the master, the newest first. */
  readonly events: readonly OverviewEvent[];
  readonly topology: Topology;
}

/** Rates are by the second, and means of a period. */
export interface Traffic {
  readonly requests: number;
  readonly bytesIn: number;
  readonly bytesOut: number;
  /** Open connections of clients. */
  readonly connections: number;
  readonly history: TrafficHistory;
}

/** Means of periods, the oldest first; each list has a number for each period. */
export interface TrafficHistory {
  /** Length of a period in milliseconds. */
  readonly everyMs: number;
  /** The most periods there may be; until then the time before is not known. */
  readonly periods: number;
  readonly requests: readonly number[];
  readonly bytesIn: readonly number[];
  readonly bytesOut: readonly number[];
}

export interface ListedTransfer extends Transfer {
  /** Process of the worker that has it. */
  readonly pid: number;
  /** The name of the request's virtual server. */
  readonly site?: string;
}

export interface OverviewUpstream {
  readonly name: string;
  /** The virtual servers with a route to the upstream. */
  readonly sites?: readonly string[];
  readonly servers: readonly OverviewServer[];
}

export interface OverviewServer {
  readonly url: string;
  readonly backup: boolean;
  /**
   * `unasked`: no request and no check has reached it so far. `out`: requests failed there, and workers leave it out for
   * that. `failing`: the same, and it still gets requests, because no other server is left. `down`: its checks fail; it
   * gets no requests, unless it is the only server.
   */
  readonly state: "unasked" | "up" | "failing" | "out" | "drained" | "down";
  /** Requests that it has; absent where they are not counted. */
  readonly inProgress?: number;
  /** Failed requests of the last minute; 0 where they are not counted, with several servers. */
  readonly failures: number;
  /** Why it is down, out or failing, where that is known. */
  readonly why?: string;
}

export interface OverviewCertificate {
  readonly names: readonly string[];
  /** The virtual servers with one of the names. */
  readonly sites?: readonly string[];
  readonly listeners: readonly string[];
  readonly issuer: string;
  readonly source: "files" | "acme" | "temporary";
  readonly notAfter: number;
  /** Whole days until then; below 0 once it has ended. */
  readonly daysLeft: number;
  /** Whether that is near, for how long the certificate is valid. */
  readonly end: CertificateEnd;
  /** Why it was not renewed. */
  readonly problem?: { readonly message: string; readonly fix: string };
}

export interface OverviewEvent {
  readonly at: number;
  readonly level: "info" | "warn" | "error" | "crit";
  readonly message: string;
  readonly problems: readonly {
    readonly path: string;
    readonly message: string;
    readonly fix: string;
  }[];
}

/** The topology: columns from left to right, and the traffic between them. */
export interface Topology {
  readonly columns: readonly { readonly title: string; readonly nodes: readonly TopologyNode[] }[];
  readonly edges: readonly TopologyEdge[];
}

export interface TopologyNode extends GraphNode {
  /** Something is wrong with it. */
  readonly trouble?: true;
}

export interface TopologyEdge extends Pick<GraphEdge, "from" | "to"> {
  /** Requests a second. */
  readonly requests: number;
}

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
