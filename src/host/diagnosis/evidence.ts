import type { ListedPauses } from "../../runtime/supervisor/listedPauses.js";
import type { Deployment, Problem, ProxyConfig } from "../../model/index.js";
import type { NodeFixes } from "../../model/nodeReleases.js";
import type { ListeningSocket } from "../../runtime/sockets/node/listeningSockets.js";
import type { ListedCertificate } from "../../runtime/supervisor/certificateList.js";
import type { ExpectedResponse } from "./expectedResponses.js";
import type { CheckedResponse } from "./liveCheck.js";
import type { TreePermissions } from "./treePermissions.js";
import type { ProbeOutcome } from "./probe.js";
import type { Units } from "./hostFacts.js";

/**
 * Everything a diagnosis looks at, gathered once and then only judged. What could not be determined is undefined, and
 * its rows say so; nothing is guessed.
 */
export interface Evidence {
  /** Whether this is the host itself, another machine, which sees the network only, or a folder with a host's files. */
  readonly place: "host" | "elsewhere" | "folder";
  readonly config: ProxyConfig;
  /** What `portico check` reports about the config and the files it names. */
  readonly configProblems?: readonly Problem[];
  readonly configWarnings?: readonly Problem[];
  /** Undefined if none is deployed, or it was not given. */
  readonly deployment?: Deployment;
  readonly responses: readonly SeenResponse[];
  readonly units?: Units;
  readonly sockets?: readonly Pick<ListeningSocket, "address" | "port">[];
  /** The name to connect to, if it does not resolve here; only from another machine. */
  readonly unresolved?: string;
  /** TCP ports tried from another machine, and whether they are open. */
  readonly openPorts?: ReadonlyMap<number, boolean>;
  readonly settings?: SettingsSeen;
  readonly trees?: TreePermissions;
  readonly publicAddresses?: readonly PublicAddress[];
  /** How the host differs from what was deployed; only on the host, and only with a deployment that was activated. */
  readonly drift?: Drift;
  /** Log files of the config. */
  readonly logs?: readonly Finding[];
  /** What keeps the logs from being rotated; undefined if nothing was deployed that rotates them. */
  readonly rotation?: readonly Finding[];
  /** Addresses of this machine's interfaces, in canonical form. */
  readonly ownAddresses?: ReadonlySet<string>;
  /** File systems that are full or nearly so. */
  readonly space?: readonly Finding[];
  /** Certificates that the running proxy serves; undefined where none is by ACME, or it could not be asked. */
  readonly certificates?: readonly ListedCertificate[];
  /** What the health listener said to `/readyz`; only on the host, and only with one in the config. */
  readonly health?: ProbeOutcome;
  /** Servers of upstreams that have several; undefined where there are none, or the proxy could not be asked. */
  readonly upstreamServers?: readonly SeenUpstreamServer[];
  /** What the proxy refuses by command; undefined where that is nothing, or it could not be asked. */
  readonly pauses?: ListedPauses;
  /** How many of its processes the kernel has killed for want of memory; undefined for none. */
  readonly memoryKills?: number;
  /** The Node that runs this, which is the deployment's; only on the host. */
  readonly node?: NodeSeen;
  /** What the proxy uses and this Node lacks; undefined if it has everything. */
  readonly missingPieces?: string;
}

export interface NodeSeen {
  /** Such as `24.21.0`. */
  readonly version: string;
  readonly path: string;
  /** Undefined for a major version that is newer than this release of Portico. */
  readonly fixes?: NodeFixes;
}

/** Something that is not as it should be, and what to do about it. */
export interface Finding {
  /** Path or name of the thing. */
  readonly at: string;
  readonly what: string;
  /** A command, or a sentence. */
  readonly fix: string;
}

/** A deployment as it was activated, compared with what is on the host and with what is loaded. */
export interface Drift {
  /** The store of the activation: what is missing or damaged in it, and an activation that was cut off. */
  readonly store: readonly Finding[];
  /** Files that are not as delivered: content, mode, owner. */
  readonly files: readonly Finding[];
  /** Units whose loaded state differs from their files, or that are not enabled. */
  readonly units: readonly Finding[];
  /** The packet filter; undefined without one. */
  readonly firewall?: readonly Finding[];
  /** Why the loaded rules could not be compared. */
  readonly firewallUnknown?: string;
  /** What the running proxy has loaded; undefined if it could not be queried. */
  readonly running?: readonly Finding[];
}

/** One expected response (service 5.1), what came, and the comparison. */
export interface SeenResponse {
  readonly row: ExpectedResponse;
  /** Undefined if the request was not made. */
  readonly outcome: ProbeOutcome | undefined;
  readonly checked: CheckedResponse;
}

export interface SettingsSeen {
  /** Items that are not as deployed: where they are set, and to what. */
  readonly deviations: readonly SettingDeviation[];
  /** Files that could not be read or understood. */
  readonly problems: readonly Problem[];
  /** Whether the application's database was queried, or why not. */
  readonly database: string;
}

export interface SettingDeviation {
  readonly item: string;
  readonly wanted: string;
  /** Undefined if the item is not set. */
  readonly found?: string;
  /** File and line, or the database. */
  readonly where: string;
  /** Row that tells of it; undefined for `settings`. */
  readonly code?: string;
}

/** An address by which other networks reach the host, probed from here. */
export interface PublicAddress {
  /** In canonical form. */
  readonly address: string;
  /** Whether it is one of this machine's own. */
  readonly own: boolean;
  /** The name that resolves to it; undefined if it is known to be the host's in another way. */
  readonly name?: string;
  /** The address of this machine that it is translated to, if a provider's NAT does that: see `translatedTo`. */
  readonly translatedTo?: string;
  readonly outcome: ProbeOutcome;
}

/** A server of an upstream with several, and why it gets no request, if it gets none. */
export interface SeenUpstreamServer {
  readonly upstream: string;
  readonly url: string;
  readonly backup: boolean;
  /** `refused`: the proxy takes it for up, and a connection from here failed. */
  readonly state: "up" | "drained" | "down" | "out" | "refused";
  /** The state in words, with what the proxy, or a connection from here, met. */
  readonly says: string;
}
