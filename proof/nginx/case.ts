import type { Channel, WireCase } from "../wire/case.js";
import type { Facts } from "./facts.js";

/** One row of the table: a request, and where the response may differ from that of nginx. */
export interface CaseOf<RuleName extends string> extends WireCase {
  /** All three ways to the application unless said otherwise; `http` and `https` for steps. */
  readonly over?: readonly Channel[];
  /** Status that nginx gives: proves that the case meets what it is about. 0 for none. */
  readonly status: number;
  /** Further facts that both must show, for what the service requires of every proxy. */
  readonly expect?: Facts;
  /** Rules by which Portico deviates here. Each must explain a difference, on one channel at least. */
  readonly rules?: readonly RuleName[];
}

/** What both proxies did with one request. */
export interface Pair {
  readonly row: CaseOf<string>;
  readonly nginx: Facts;
  readonly portico: Facts;
  readonly channel: Channel;
}

/** A fact that is not the same; undefined where one side has no such fact. */
export interface Difference {
  readonly fact: string;
  readonly nginx: string | undefined;
  readonly portico: string | undefined;
}
