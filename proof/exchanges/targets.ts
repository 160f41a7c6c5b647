import type { RouteInput } from "../../src/model/index.js";
import { Random } from "../../testkit/random.js";
import type { Target } from "../wire/timeline.js";

/** The routes that requests are for; every lane has all of them. */
export type TargetName =
  | "plain"
  | "secure"
  | "unix"
  | "limited"
  | "timed"
  | "narrow"
  | "tight"
  | "deaf"
  | "large"
  | "small"
  | "fixed"
  | "elsewhere"
  | "status";

const LIMITED_BYTES = 100;
/** Short, for many are waited for; longer than a client is held up where it is not to time out. */
const BODY_TIMEOUT_MS = 300;

const FIXED = "Fixed, and of nobody.\n";
/** More than is read at once, and more than a cache keeps. */
const LARGE_BYTES = 600_000;
const SMALL_BYTES = 3_000;

/** Their contents are the same in each run. */
const SEED_OF_FILES = 1;
const files = new Random(SEED_OF_FILES);

export const TARGETS: Readonly<Record<TargetName, Target>> = {
  plain: { letter: "e", responder: "lane" },
  secure: { letter: "x", responder: "lane", carrier: "tls" },
  unix: { letter: "u", responder: "lane", carrier: "unix" },
  limited: { letter: "m", responder: "lane", bodyBytesMax: LIMITED_BYTES },
  timed: { letter: "t", responder: "lane", bodyTimeoutMs: BODY_TIMEOUT_MS },
  narrow: { letter: "n", responder: "lane", narrow: true },
  tight: {
    letter: "w",
    responder: "lane",
    narrow: true,
    bodyBytesMax: LIMITED_BYTES,
    bodyTimeoutMs: BODY_TIMEOUT_MS,
  },
  /** It never takes a connection from its queue. */
  deaf: { letter: "d", responder: "none" },
  large: { letter: "l", responder: "file", own: { status: 200, body: files.bytes(LARGE_BYTES) } },
  small: { letter: "s", responder: "file", own: { status: 200, body: files.bytes(SMALL_BYTES) } },
  fixed: { letter: "f", responder: "proxy", own: { status: 200, body: Buffer.from(FIXED) } },
  elsewhere: { letter: "r", responder: "proxy", own: { status: 307, body: undefined } },
  status: { letter: "o", responder: "proxy", own: { status: 200, body: undefined }, ownHostsOnly: true },
};

/** Name of the upstream of a route. */
export function upstreamOf(lane: number, { responder, narrow, carrier = "tcp" }: Target): string {
  if (responder === "none") return "deaf";
  return `${narrow === true ? "narrow" : carrier}${lane}`;
}

/** The route of a lane. @param folder where the files lie, in a directory each */
export function routeOf(lane: number, to: Target, folder: string): RouteInput {
  const { letter, responder, bodyBytesMax, bodyTimeoutMs, own, ownHostsOnly } = to;
  const route = {
    name: `${letter}${lane}`,
    path: `/${letter}${lane}`,
    requestBodyBytesMax: bodyBytesMax,
    requestBodyTimeoutMs: bodyTimeoutMs,
    // Nobody has so many; each is counted in and out.
    ...(responder === "proxy" ? {} : { concurrencyMax: 100_000 }),
  };
  if (responder === "file")
    return { ...route, action: { type: "staticFiles", directory: `${folder}/${letter}` } };
  if (responder !== "proxy") return { ...route, action: { type: "proxy", upstream: upstreamOf(lane, to) } };
  if (ownHostsOnly) return { ...route, action: { type: "status", allow: ["127.0.0.1"] } };
  if (own!.body === undefined)
    return { ...route, action: { type: "redirect", status: 307, host: "elsewhere.test" } };
  return { ...route, action: { type: "respond", status: own!.status, body: own!.body.toString() } };
}

/** Names and contents of the files, below the folder of {@link routeOf}. */
export const FILES: Readonly<Record<string, Buffer>> = Object.fromEntries(
  Object.values(TARGETS).flatMap(({ letter, responder, own }) =>
    responder === "file" ? [[`${letter}/file`, own!.body!]] : [],
  ),
);
