import type { Overview } from "../../runtime/status/overview.js";
import type { ListedPauses } from "../../runtime/supervisor/control/listedPauses.js";
import type { Deployment, Problem, ProxyConfig } from "../../model/index.js";
import type { NodeFixes } from "../../model/host/nodeReleases.js";
import type { ListeningSocket } from "../../runtime/sockets/node/listeningSockets.js";
import type { ListedCertificate } from "../../runtime/supervisor/control/certificateList.js";
import type { ExpectedProbe } from "./expected/expectedResponses.js";
import type { CheckedResponse } from "./expected/liveCheck.js";
import type { TreePermissions } from "./treePermissions.js";
import type { UnfollowedLink } from "./unfollowedLinks.js";
import type { ProbeOutcome } from "./expected/probe.js";
import type { Units } from "./system/hostFacts.js";
import type { ForeignRule } from "./system/foreignRules.js";

/** What the running proxy knows of clients' certificates. */
export type SeenClientCertificates = Pick<Overview, "clientAuthorities" | "refusedCertificates">;

/**
 * All evidence of a diagnosis, gathered once and then only evaluated. Facts that could not be determined are undefined,
 * and their rows say so; nothing is guessed.
 */
export interface Evidence {
  /** Whether this is the host itself, another machine, which sees the network only, or a folder with a host's files. */
  readonly place: "host" | "elsewhere" | "folder";
  readonly config: ProxyConfig;
  /** The problems that `portico check` reports about the config and its files. */
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
  readonly links?: readonly UnfollowedLink[];
  readonly publicAddresses?: readonly PublicAddress[];
  /** The differences between host and deployment; only on the host, and only with a deployment that was activated. */
  readonly drift?: Drift;
  /** Log files of the config. */
  readonly logs?: readonly EvidenceFinding[];
  /** Reasons why the logs are not rotated; undefined if no rotation was deployed. */
  readonly rotation?: readonly EvidenceFinding[];
  /** Addresses of this machine's interfaces, in canonical form. */
  readonly ownAddresses?: ReadonlySet<string>;
  /** File systems that are full or nearly so. */
  readonly space?: readonly EvidenceFinding[];
  /** Certificates that the running proxy serves; undefined where none is by ACME, or it could not be asked. */
  readonly certificates?: readonly ListedCertificate[];
  /** What a machine beside the host sees; undefined if it was not to be asked. */
  readonly outside?: SeenOutside;
  /** Rules of other tables about the ports of the front end; undefined if nft gives no answer. */
  readonly foreignRules?: readonly ForeignRule[];
  /** Why there may be others. */
  readonly rulesUnseen?: string;
  /** Processes that do not respond, and others that have the proxy's ports; only on the host. */
  readonly processes?: ProxyProcesses;
  /** The health listener's response to `/readyz`; only on the host, and only with a health listener in the config. */
  readonly health?: ProbeOutcome;
  /** Servers of upstreams that have several; undefined where there are none, or the proxy could not be asked. */
  readonly upstreamServers?: readonly SeenUpstreamServer[];
  /** Certificates of clients; undefined where none is asked for, or the proxy could not be asked. */
  readonly clientCertificates?: SeenClientCertificates;
  /** Maintenance and quiesce in force; undefined if there is none, or the proxy could not be asked. */
  readonly pauses?: ListedPauses;
  /** How many of its processes the kernel has killed for want of memory; undefined for none. */
  readonly memoryKills?: number;
  /** The Node that runs this, which is the deployment's; only on the host. */
  readonly node?: NodeSeen;
  /** Parts of Node that the proxy uses and this Node lacks; undefined if it has all. */
  readonly missingPieces?: string;
}

export interface NodeSeen {
  /** A version such as `24.21.0`. */
  readonly version: string;
  readonly path: string;
  /** Undefined for a major version that is newer than this release of Portico. */
  readonly fixes?: NodeFixes;
}

/** Something that is not as it should be, with a fix. */
export interface EvidenceFinding {
  /** Path or name of the thing. */
  readonly at: string;
  readonly what: string;
  /** A command, or a sentence. */
  readonly fix: string;
  /** Whether requests that it concerns wait for a response that does not come. */
  readonly stalls?: true;
}

/** An activated deployment, compared with the files on the host and with the loaded state. */
export interface Drift {
  /** Findings in the store of the activation: missing or damaged files, and an activation that was cut off. */
  readonly store: readonly EvidenceFinding[];
  /** Files that are not as delivered: content, mode, owner. */
  readonly files: readonly EvidenceFinding[];
  /** Units whose loaded state differs from their files, that do not run, or that are not enabled. */
  readonly units: readonly EvidenceFinding[];
  /** Served directories that are empty, and were not. */
  readonly emptied?: readonly EvidenceFinding[];
  /** Default routes that the host has lost since it was activated. */
  readonly routes?: readonly EvidenceFinding[];
  /** The packet filter; undefined without one. */
  readonly firewall?: readonly EvidenceFinding[];
  /** Why the loaded rules could not be compared. */
  readonly firewallUnknown?: string;
  /** Differences in the state that the running proxy has loaded; undefined if it could not be queried. */
  readonly running?: readonly EvidenceFinding[];
}

/** An expected response (service 5.1), the actual response, and the comparison. */
export interface SeenResponse {
  readonly row: ExpectedProbe;
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
  /** Row that reports it; undefined for `settings`. */
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
  /**
   * `failing`: requests failed there, and it gets others only because no other server is left. `refused`: the proxy sends
   * it requests, and a connection from here failed.
   */
  readonly state: "up" | "drained" | "down" | "out" | "failing" | "refused";
  /** The error that the proxy, or a connection from here, got. */
  readonly why?: string;
  /** The state in words, with the error. */
  readonly message: string;
}

/** Processes of the proxy that do not respond, and programs that have its ports. */
export interface ProxyProcesses {
  /** What the main process says when it is asked; undefined if it responds, or does not run. */
  readonly silentMaster?: string;
  /** Workers that gave the main process no response. */
  readonly silentWorkers: readonly number[];
  /** Programs that listen where the proxy should. */
  readonly strangers: readonly EvidenceFinding[];
}

/** What another machine sees, or why that was not tried. */
export type SeenOutside = { readonly asked: readonly AskedAddress[] } | { readonly why: string };

export interface AskedAddress {
  readonly address: string;
  /** Rows of `portico doctor --elsewhere` that failed there. */
  readonly failed: readonly {
    readonly id: string;
    readonly cause?: string;
    readonly evidence: readonly string[];
  }[];
}
