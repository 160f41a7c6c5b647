/** What one peer can ask for at little cost to itself, as docs/limits.md lists it; `bench/helpers/attacker.ts` plays it. */
export const ATTACKS = {
  none: "nobody attacks",
  "chunks-up": "uploads in chunks of a byte",
  "chunks-down": "responses in chunks of a byte",
  interim: "responses after interim responses without end",
  pipelined: "1,000 requests in one write, again and again",
  "heads-http2": "100 HEAD requests at a time, over HTTP/2",
  "long-heads-http2": "heads of 27 KB for some bytes each, over HTTP/2",
  "data-http2": "DATA frames of a byte, over HTTP/2",
  "resets-http2": "requests that are cancelled at once, over HTTP/2",
  "pings-http2": "PING frames, over HTTP/2",
} as const;

export type Attack = keyof typeof ATTACKS;
