import type { Problem } from "../../model/index.js";
import type { Counts } from "../counting/counts.js";
import type { Challenge } from "../dispatch/challenge.js";
import type { SeenTransfers } from "../dispatch/transfers.js";
import type { GuardsState, LogInNews } from "../logIns/workerGuards.js";
import type { AskedStatus, StatusResponse } from "../status/asked.js";
import type { PauseOrder, SeenPauses } from "../dispatch/pauses.js";
import type { LoadedConfig } from "../load/loadConfig.js";
import type { Renewal } from "../load/renewal.js";
import type { LimitNews, LimitReport } from "../rates/limitNews.js";
import type { OutageNews } from "../upstream/knownOutage.js";
import type { SeenServers, ServerOrders } from "../upstream/upstreamServers.js";
import type { Holdings } from "./holdings.js";
import type { Piece } from "../sockets/node/pieces.js";

/** A message from the master to a worker. All of it is JSON, and one kind has a socket beside it. */
export type MasterMessage =
  | StartMessage
  /** The socket of a listener comes with this message, before the start message. */
  | { readonly type: "socket"; readonly listener: string }
  /** Stop accepting, let running requests finish, exit. */
  | { readonly type: "drain" }
  /** Exit now. */
  | { readonly type: "stop" }
  | { readonly type: "reopenLogs" }
  | { readonly type: "ticketKeys"; readonly ticketKeys: string }
  /** The certificates and address lists for handshakes and requests from now on; connections stay as they are. */
  | { readonly type: "renewed"; readonly renewal: Renewal }
  /** Respond to these challenges of authorities, and no others, from now on; then say `responding`. */
  | { readonly type: "challenges"; readonly challenges: readonly Challenge[]; readonly turn: number }
  /** Send your holdings. */
  | { readonly type: "holdings"; readonly turn: number }
  /** Send your counts and your current gauges. */
  | { readonly type: "counts"; readonly turn: number }
  /** Act on these orders, and no others, from now on; then report the state of the servers. */
  | { readonly type: "servers"; readonly orders: ServerOrders; readonly turn: number }
  /** Refuse these requests, and no others, from now on; then report about requests in progress. */
  | { readonly type: "pauses"; readonly order: PauseOrder; readonly turn: number }
  /** What clients have asked of routes with limits, by all workers together. */
  | { readonly type: "limits"; readonly news: LimitNews }
  /** What another worker, or this one, saw of a log-in. */
  | { readonly type: "logIn"; readonly news: LogInNews }
  /** Forget what is known of an address of a guard. */
  | { readonly type: "unban"; readonly guard: string; readonly address: string }
  /** Send your requests in progress. */
  | { readonly type: "transfers"; readonly turn: number }
  /** The response to `status` of that turn; undefined if the master has none. */
  | { readonly type: "status"; readonly turn: number; readonly response: StatusResponse | undefined };

/** Node's handle of a bound socket, as a message brings it. */
export interface ReceivedSocket {
  readonly fd: number;
}

/** Everything a worker needs; only sockets come before it. */
export interface StartMessage {
  readonly type: "start";
  readonly loaded: LoadedConfig;
  /** Inherited descriptor of each listener's socket, by listener name; none of sockets that came with messages. */
  readonly fds: Readonly<Record<string, number>>;
  /** 48 bytes in base64: workers that share them resume each other's TLS sessions. */
  readonly ticketKeys: string;
  readonly challenges: readonly Challenge[];
  /** About servers of upstreams. */
  readonly serverOrders: ServerOrders;
  /** The current pause order. */
  readonly pauses: PauseOrder;
  /** What clients have asked of routes with limits so far. */
  readonly limits: LimitNews;
  /** What workers know of log-ins. */
  readonly guards: GuardsState;
  readonly logToStderr: boolean;
  /** Pieces of Node that the master found missing. */
  readonly without: readonly Piece[];
}

/** A message from a worker to the master. */
export type WorkerMessage =
  | { readonly type: "ready" }
  | { readonly type: "failed"; readonly problems: readonly Problem[] }
  /** It no longer accepts. If the master did not order that, a signal did, and the master starts another. */
  | { readonly type: "draining" }
  | { readonly type: "responding"; readonly turn: number }
  | { readonly type: "holdings"; readonly turn: number; readonly holdings: Holdings }
  | CountsMessage
  | { readonly type: "servers"; readonly turn: number; readonly seen: SeenServers }
  /** What it found out about outages; the other workers learn it by the next `servers`. */
  | { readonly type: "outages"; readonly news: readonly OutageNews[] }
  /** What clients have asked of routes with limits since the last report. */
  | { readonly type: "limits"; readonly report: LimitReport }
  | { readonly type: "pauses"; readonly turn: number; readonly seen: SeenPauses }
  | { readonly type: "transfers"; readonly turn: number; readonly seen: SeenTransfers }
  /** What it saw of a log-in; the other workers learn it from the master. */
  | { readonly type: "logIn"; readonly news: LogInNews }
  /** A client requests this part of the status. */
  | { readonly type: "status"; readonly turn: number; readonly asked: AskedStatus };

/**
 * A worker's counts since its last message: sent several times a second, also without any, as a sign of life, and on
 * request.
 */
export interface CountsMessage {
  readonly type: "counts";
  readonly counts: Counts;
  /** Only in a requested message: the current gauges. */
  readonly asked?: { readonly turn: number; readonly gauges: Counts };
}

/** Exit codes of workers; after sysexits(3). */
export const WORKER_EXIT = { ok: 0, failed: 1, usage: 64, crashed: 70 } as const;
