import type { ClientScript } from "../wire/timeline.js";
import { http2Turns } from "../wire/http2Input.js";
import { http1Turns, LANE_MIN } from "../wire/http1Input.js";

/**
 * Where the input of a case's first client is split: at every byte; of HTTP/2 at every frame, and the bytes around it.
 */
export function bordersOf(index: number, client: ClientScript): number[] {
  const turns = (client.protocol === "h2" ? http2Turns : http1Turns)(index, 0, client, LANE_MIN);
  const borders = new Set<number>();
  let from = 0;
  for (const { bytes } of turns.flatMap(({ parts }) => parts)) {
    const to = from + bytes.length;
    if (client.protocol !== "h2") for (let at = from; at < to; at++) borders.add(at);
    else for (const at of BESIDE_FRAME) if (at < bytes.length) borders.add(from + at);
    if (client.protocol === "h2") borders.add(to - 1);
    from = to;
  }
  borders.delete(0);
  return [...borders].sort((a, b) => a - b);
}

/** Before a frame, within its head (RFC 9113, 4.1), after that, and in the payload's first bytes. */
const BESIDE_FRAME = [0, 1, 3, 8, 9, 10];
