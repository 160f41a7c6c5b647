import type { OutputOf } from "../../model/schema/inferred.js";
import { printableValue } from "../../model/text/printable.js";
import { isKnownMethod } from "../counting/requestCounts.js";
import { headerValue, type RunningExchange } from "../exchange/exchange.js";
import type { TRANSFER } from "../overviewSchema.js";

export type Transfer = OutputOf<typeof TRANSFER>;

/** A worker's requests in progress. */
export interface SeenTransfers {
  /** The requests that moved most bytes, the oldest first. */
  readonly transfers: readonly Transfer[];
  /** How many others there are. */
  readonly more: number;
}

interface Looked {
  readonly id: number;
  at: number;
  bytes: number;
  rate: number;
}

/** Lists the requests in progress on demand, so that there is no cost while the list is not wanted. */
export class Transfers {
  private readonly looked = new WeakMap<RunningExchange, Looked>();
  private lastId = 0;

  constructor(private readonly now: () => number = () => performance.now()) {}

  /**
   * @param running the requests in progress
   * @param max how many are listed individually
   */
  look(running: Iterable<RunningExchange>, max = TRANSFERS_MAX): SeenTransfers {
    const routed = [...running].filter(
      ({ route }) => route !== undefined && route.config.action.type !== "status",
    );
    const most = routed.sort(
      (a, b) => bytesOf(b) - bytesOf(a) || a.request.receivedAt - b.request.receivedAt,
    );
    const shown = most.slice(0, max).sort((a, b) => a.request.receivedAt - b.request.receivedAt);
    return { transfers: shown.map((one) => this.transfer(one)), more: routed.length - shown.length };
  }

  private transfer(exchange: RunningExchange): Transfer {
    const { request, client, server, status, bodyBytesSent: bytesOut, bodyBytesReceived: bytesIn } = exchange;
    const route = exchange.route!.config;
    const { method } = request;
    const kind = kindOf(exchange);
    const bytesTotal =
      kind === "upload" ? request.bodyLength : kind === "download" ? exchange.responseBytes : -1;
    return {
      ...this.paced(exchange),
      server: server.name,
      route: route.name,
      ...shownPath(route.path, request.path),
      method: isKnownMethod(method) ? method : "other",
      client: client.address,
      program: plainName(headerValue(request.headers, "user-agent") ?? ""),
      kind,
      status,
      ageMs: Math.round(this.now() - request.receivedAt),
      bytesIn,
      bytesOut,
      ...(bytesTotal > 0 ? { bytesTotal } : {}),
    };
  }

  private paced(exchange: RunningExchange): Pick<Transfer, "id" | "bytesPerSecond"> {
    const [now, bytes] = [this.now(), bytesOf(exchange)];
    const began = exchange.request.receivedAt;
    const before = this.looked.get(exchange);
    const looked = before ?? { id: ++this.lastId, at: began, bytes: 0, rate: 0 };
    // Readers at the same time get the same rate.
    if (now - looked.at >= PACE_MS) {
      looked.rate = Math.round(((bytes - looked.bytes) * 1_000) / (now - looked.at));
      looked.at = now;
      looked.bytes = bytes;
    }
    if (before === undefined) this.looked.set(exchange, looked);
    return { id: looked.id, bytesPerSecond: looked.rate };
  }
}

/** How many a worker lists individually. */
export const TRANSFERS_MAX = 100;
const PACE_MS = 500;

const bytesOf = ({ bodyBytesReceived, bodyBytesSent }: RunningExchange): number =>
  bodyBytesReceived + bodyBytesSent;

function kindOf(exchange: RunningExchange): Transfer["kind"] {
  const { request, bodyBytesReceived, bodyBytesSent } = exchange;
  if (isTunnel(exchange)) return "tunnel";
  return request.bodyLength !== 0 && bodyBytesSent <= bodyBytesReceived ? "upload" : "download";
}

/** Whether its upgrade was granted. */
export const isTunnel = ({ request, status, headSent }: RunningExchange): boolean =>
  request.upgrade !== undefined && headSent && (status === 101 || status === 200);

/**
 * The route's path from the config, and of the rest only a last segment that is the name of a file. Everything between
 * may be a secret: share links and upload links have a token there.
 */
export function shownPath(
  routePath: string,
  path: string,
): { readonly path: string; readonly file?: string } {
  if (path.length <= routePath.length || path === `${routePath}/`) return { path: routePath };
  const base = routePath.endsWith("/") ? routePath : `${routePath}/`;
  const file = fileName(path.slice(routePath.length));
  if (file === undefined) return { path: `${base}…` };
  return { path: path.lastIndexOf("/") < base.length ? base : `${base}…/`, file };
}

function fileName(rest: string): string | undefined {
  const last = decoded(rest.slice(rest.lastIndexOf("/") + 1));
  const dot = last.lastIndexOf(".");
  const [stem, extension] = [last.slice(0, dot), last.slice(dot + 1)];
  // A dot alone makes no name: signed tokens have some as well.
  if (dot < 1 || !EXTENSION.test(extension) || !LETTER.test(extension)) return undefined;
  return `${shortStem(printableValue(stem))}.${extension}`;
}

const EXTENSION = /^[A-Za-z0-9]{1,5}$/;
const LETTER = /[A-Za-z]/;

/** A long name loses its middle, and a possible token most of its characters. */
function shortStem(stem: string): string {
  const characters = [...stem];
  if (TOKEN.test(stem) && DIGIT.test(stem)) return `${characters.slice(0, 4).join("")}…`;
  if (characters.length <= STEM_CHARACTERS_MAX) return stem;
  return `${characters.slice(0, 20).join("")}…${characters.slice(-6).join("")}`;
}

const STEM_CHARACTERS_MAX = 32;
/** A long run of letters and digits, the hex of a hash or a UUID, or base64url. */
const TOKEN = /[A-Za-z0-9]{20}|^[0-9a-fA-F-]{20}|[A-Za-z0-9_-]{32}/;
const DIGIT = /[0-9]/;

/** Paths are compared as bytes; a name is shown as the text that it is. */
function decoded(name: string): string {
  const text = Buffer.from(name, "latin1").toString("utf8");
  return text.includes("\ufffd") ? name : text;
}

/**
 * A client's program in a few words, from its `User-Agent`: browsers by name and major version, others by the first
 * word of the field. The result is always plain ASCII of 40 characters at most.
 */
export function plainName(userAgent: string): string {
  const text = userAgent.slice(0, FIELD_CHARACTERS_MAX);
  if (text.startsWith("Mozilla/")) {
    for (const [name, mark] of BROWSERS) {
      const version = versionAfter(text, mark);
      if (version !== undefined) return `${name} ${version}`;
    }
  }
  const [first = ""] = text.split(/[ (;]/, 1);
  const plain = first.replace(/[^\w./+-]/g, "");
  return plain.length > NAME_CHARACTERS_MAX ? `${plain.slice(0, NAME_CHARACTERS_MAX - 1)}…` : plain;
}

const FIELD_CHARACTERS_MAX = 512;
const NAME_CHARACTERS_MAX = 40;

/** Each calls itself by the names of those before it in history: the newest name counts. */
const BROWSERS = [
  ["Edge", "Edg/"],
  ["Opera", "OPR/"],
  ["Firefox", "Firefox/"],
  ["Chrome", "Chrome/"],
  ["Chrome", "CriOS/"],
  ["Firefox", "FxiOS/"],
  ["Safari", "Version/"],
] as const;

/** The digits that follow a mark. */
function versionAfter(text: string, mark: string): string | undefined {
  const at = text.indexOf(mark);
  if (at === -1) return undefined;
  return /^\d{1,6}/.exec(text.slice(at + mark.length, at + mark.length + 6))?.[0];
}
