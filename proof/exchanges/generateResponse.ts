import type { Random } from "../../testkit/random.js";
import { isBodiless, type ResponseFlaw, type ResponsePlan, INFORMATIONAL_MAX } from "../wire/timeline.js";

/**
 * Lengths at which buffers, windows, frames, TLS records and gathered writes (`upstream/requestWriter.ts`) end: the
 * bytes and pieces beside them are where a border is missed.
 */
const EDGES = [0, 1, 2, 15, 16, 17, 255, 256, 1_023, 1_024, 2_048, 4_096, 16_383, 16_384, 16_385, 20_000];
const LARGE = [65_535, 65_536, 65_537, 100_000, 131_072];
/** As many as chunks of one byte, which cost the most per byte. */
export const FINE_BYTES = 300_000;

const MANY_INFORMATIONAL = Array.from({ length: INFORMATIONAL_MAX * 2 }, () => 103);

export function lengthBy(chance: Random, large: boolean): number {
  if (large && chance.is(0.03)) return chance.of(...LARGE);
  return chance.is(0.3) ? chance.of(...EDGES) : chance.upTo(chance.of(20, 20, 300, 3_000));
}

/**
 * @param tunnel whether the request can open one
 * @param resets whether the upstream's connection can be reset, which Unix sockets cannot
 */
export function responseBy(chance: Random, tunnel: boolean, head: boolean, resets: boolean): ResponsePlan {
  const flaw: ResponseFlaw = chance.is(0.2)
    ? chance.of("short", "long", "late", "chunkSize", "chunkEnd", "garbage", "silence", "switch")
    : "none";
  const status = tunnel && chance.is(0.5) ? 101 : chance.of(200, 200, 200, 200, 201, 204, 304, 401, 413, 500);
  const bytes = lengthBy(chance, true);
  const drawn: ResponsePlan = {
    when: chance.of("complete", "complete", "complete", "head", "half"),
    held: chance.is(0.03) ? chance.of("head", "half") : "no",
    informational: chance.is(0.1)
      ? chance.of<readonly number[]>([100], [103], [100, 103], MANY_INFORMATIONAL)
      : [],
    status,
    framing: chance.of("length", "length", "chunked", "close"),
    bytes,
    piece: Math.max(1, Math.ceil(bytes / chance.of(1, 2, 5, 20))),
    apart: chance.is(0.15),
    flaw,
    then: chance.of("keep", "keep", "keep", "keep", "keep", "close", "close", "quit", "soon", "reset"),
  };
  const fine = chance.is(0.004)
    ? ({ ...drawn, framing: "chunked", bytes: FINE_BYTES, piece: 1, apart: false } as const)
    : drawn;
  // 101 to who asked for it is none.
  const response = settled(tunnel && fine.flaw === "switch" ? { ...fine, flaw: "none" } : fine, head);
  return resets ? response : unreset(response);
}

/** Without resets nothing shows that a response is cut which ends with its connection. */
const unreset = (response: ResponsePlan): ResponsePlan => ({
  ...response,
  ...(response.then === "reset" ? { then: "quit" } : {}),
  ...(response.flaw === "short" && response.framing === "close" ? { flaw: "none" } : {}),
});

/** Flaws that a framing cannot have are none. */
function settled(response: ResponsePlan, head: boolean): ResponsePlan {
  const { flaw, framing, bytes, status } = response;
  const bodiless = isBodiless({ method: head ? "HEAD" : "GET", response }) || status === 101;
  // Of nothing there is no half.
  if (response.held === "half" && (bodiless || bytes < 2))
    return settled({ ...response, held: "head" }, head);
  const inBody = flaw === "short" || flaw === "chunkSize" || flaw === "chunkEnd";
  const unchunked = framing !== "chunked" && flaw.startsWith("chunk");
  if (inBody && (bodiless || bytes < 2 || unchunked)) return { ...response, flaw: "none" };
  if (flaw === "late") return settledLate(response);
  // What is after a response has to come in one read with it: later it would be the response to the next request.
  if (flaw === "long")
    return framing === "close" || status === 101
      ? { ...response, flaw: "none" }
      : { ...response, bytes: Math.min(bytes, 4_096), apart: false };
  return response;
}

/** Where the end of the connection ends it, nothing can follow. */
const settledLate = (response: ResponsePlan): ResponsePlan =>
  response.framing === "close" || response.status === 101
    ? { ...response, flaw: "none" }
    : { ...response, held: "no", then: "keep" };
