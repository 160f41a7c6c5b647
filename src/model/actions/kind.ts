import type { Problem } from "../text/problem.js";
import type { RedirectGoal } from "./location.js";

/**
 * The properties of a kind of action that all code except the runtime uses. Each kind gives all of it, so that nothing
 * is forgotten.
 */
export interface ActionKind<A> {
  /** Fields that name an upstream. */
  readonly upstreams: readonly TextField<A>[];
  /** Fields that name a directory which files are read from. */
  readonly directories: readonly TextField<A>[];
  /** How it sends clients elsewhere; undefined if it responds to them itself. */
  readonly redirects: Redirects<A> | undefined;
  /**
   * Problems of fields that contradict each other.
   *
   * @param at the action's place in the config
   */
  problems(action: A, at: string): Problem[];
}

/** Names of the fields that are always a text. */
export type TextField<A> = { [K in keyof A]-?: A[K] extends string ? K : never }[keyof A] & string;

export interface Redirects<A> {
  goal(action: A): RedirectGoal;
  /** The same action leading to another port. */
  withPort(action: A, port: number): A;
}
