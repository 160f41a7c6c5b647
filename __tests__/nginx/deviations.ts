import type { Difference, Pair } from "./compare.js";

export interface Rule {
  readonly allowedBy: string;
  readonly why: string;
  readonly everywhere?: true;
  explains(difference: Difference, pair: Pair): boolean;
}

export const RULES = {
  upstreamReuse: {
    allowedBy: "design 5.9",
    why: "Upstream connections are reused.",
    everywhere: true,
    explains: ({ fact, nginx, portico }) =>
      fact === "upstream field connection" && nginx === "Connection: close" && portico === undefined,
  },
  publicForwardedHost: {
    allowedBy: "design 5.4",
    why: "X-Forwarded-Host is the public name, never `_`.",
    everywhere: true,
    explains: ({ fact, nginx, portico }) =>
      fact === "upstream field x-forwarded-host" && nginx === "X-Forwarded-Host: _" && portico === "X-Forwarded-Host: sync.example",
  },
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;
