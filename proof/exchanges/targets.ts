import type { RouteInput } from "../../src/model/index.js";

/** The routes that requests are for; every lane has all of them. */
export type Target =
  | "plain"
  | "limited"
  | "timed"
  | "narrow"
  | "tight"
  | "deaf"
  | "large"
  | "small"
  | "fixed"
  | "elsewhere";

export interface TargetFacts {
  /** Begins the path. */
  readonly letter: string;
  /** Who answers: the lane's upstream, none, or the proxy. */
  readonly answeredBy: "lane" | "none" | "file" | "proxy";
  /** The longest request body; undefined for any. */
  readonly bodyBytesMax?: number;
  /** How long the client may be silent within a body; undefined for longer than anything is played. */
  readonly bodyTimeoutMs?: number;
  /** Its upstream has one connection at a time, for which requests wait. */
  readonly narrow?: boolean;
  /** What the proxy answers without an upstream. */
  readonly own?: { readonly status: number; readonly body: Buffer | undefined };
}

const LIMITED_BYTES = 100;
/** Short, for many are waited for; longer than a client is held up where it is not to time out. */
const BODY_TIMEOUT_MS = 300;

const FIXED = "Fixed, and of nobody.\n";
/** More than is read at once, and more than a cache keeps. */
const LARGE_BYTES = 600_000;
const SMALL_BYTES = 3_000;

const fileOf = (bytes: number, text: string): Buffer => Buffer.alloc(bytes, text, "latin1");

export const TARGETS: Readonly<Record<Target, TargetFacts>> = {
  plain: { letter: "e", answeredBy: "lane" },
  limited: { letter: "m", answeredBy: "lane", bodyBytesMax: LIMITED_BYTES },
  timed: { letter: "t", answeredBy: "lane", bodyTimeoutMs: BODY_TIMEOUT_MS },
  narrow: { letter: "n", answeredBy: "lane", narrow: true },
  tight: {
    letter: "w",
    answeredBy: "lane",
    narrow: true,
    bodyBytesMax: LIMITED_BYTES,
    bodyTimeoutMs: BODY_TIMEOUT_MS,
  },
  /** It never takes a connection from its queue. */
  deaf: { letter: "d", answeredBy: "none" },
  large: { letter: "l", answeredBy: "file", own: { status: 200, body: fileOf(LARGE_BYTES, "large file;") } },
  small: { letter: "s", answeredBy: "file", own: { status: 200, body: fileOf(SMALL_BYTES, "small file;") } },
  fixed: { letter: "f", answeredBy: "proxy", own: { status: 200, body: Buffer.from(FIXED) } },
  elsewhere: { letter: "r", answeredBy: "proxy", own: { status: 307, body: undefined } },
};

const byLetter = new Map(Object.values(TARGETS).map((facts) => [facts.letter, facts]));

/** What follows the host in a request. */
export function pathOf(lane: number, id: string, to: Target): string {
  const { letter, answeredBy } = TARGETS[to];
  return `/${letter}${lane}/${answeredBy === "file" ? "file?" : ""}${id}`;
}

/** Lane and id in such a path, and its target's facts. */
export function readPath(path: string): { lane: number; id: string; facts: TargetFacts } | undefined {
  const [, letter, lane, id] = /^\/([a-z])(\d+)\/(?:file\?)?([\d.]+)$/.exec(path) ?? [];
  const facts = letter === undefined ? undefined : byLetter.get(letter);
  return facts === undefined ? undefined : { lane: Number(lane), id: id!, facts };
}

/** Name of the upstream of a route. */
export function upstreamOf(lane: number, { answeredBy, narrow }: TargetFacts): string {
  if (answeredBy === "none") return "deaf";
  return `${narrow === true ? "narrow" : "lane"}${lane}`;
}

/** The route of a lane. @param folder where the files lie, in a directory each */
export function routeOf(lane: number, to: Target, folder: string): RouteInput {
  const facts = TARGETS[to];
  const { letter, answeredBy, bodyBytesMax, bodyTimeoutMs, own } = facts;
  const route = {
    name: `${letter}${lane}`,
    path: `/${letter}${lane}`,
    ...(bodyBytesMax === undefined ? {} : { requestBodyBytesMax: bodyBytesMax }),
    ...(bodyTimeoutMs === undefined ? {} : { requestBodyTimeoutMs: bodyTimeoutMs }),
  };
  if (answeredBy === "file")
    return { ...route, action: { type: "staticFiles", directory: `${folder}/${to}` } };
  if (answeredBy !== "proxy")
    return { ...route, action: { type: "proxy", upstream: upstreamOf(lane, facts) } };
  if (own!.body === undefined)
    return { ...route, action: { type: "redirect", status: 307, host: "elsewhere.test" } };
  return { ...route, action: { type: "respond", status: own!.status, body: own!.body.toString() } };
}

/** Names and contents of the files, below the folder of {@link routeOf}. */
export const FILES: Readonly<Record<string, Buffer>> = Object.fromEntries(
  Object.entries(TARGETS).flatMap(([to, { answeredBy, own }]) =>
    answeredBy === "file" ? [[`${to}/file`, own!.body!]] : [],
  ),
);
