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
} as const satisfies Record<string, Rule>;

export type RuleName = keyof typeof RULES;
