import * as z from "zod";
import type { InputOf, OutputOf } from "../schema/inferred.js";
import type { Problem } from "../text/problem.js";
import type { ActionKind } from "./kind.js";
import type { RedirectGoal } from "./location.js";
import { proxy, proxyFields } from "./proxy.js";
import { redirect, redirectFields } from "./redirect.js";
import { respond, respondFields } from "./respond.js";
import { status, statusFields } from "./status.js";
import { staticFiles, staticFilesFields } from "./staticFiles.js";

/**
 * The table of actions. The compiler reports every place where an action that is added here is missing: below, in
 * `runtime/actions/compileRoutes.ts`, which makes it serve, and in `model/resolution.ts`, for unit tests.
 */
export const actionFields = z
  .discriminatedUnion("type", [proxyFields, staticFilesFields, redirectFields, respondFields, statusFields])
  .describe("How the proxy responds: one of five kinds of action, selected by `type`.");

const KINDS: { readonly [T in ActionConfig["type"]]: ActionKind<ActionOf<T>> } = {
  proxy,
  staticFiles,
  redirect,
  respond,
  status,
};

/** An action of any kind, with every default filled in. */
export type ActionConfig = OutputOf<typeof actionFields>;
/** An action as it may be written. */
export type ActionInput = InputOf<typeof actionFields>;
/** An action of one kind. */
export type ActionOf<T extends ActionConfig["type"]> = Extract<ActionConfig, { readonly type: T }>;

/** A field of an action, and its value. */
export interface ActionField {
  readonly field: string;
  readonly value: string;
}

/** Upstreams that an action names. */
export const upstreamsOf = (action: ActionInput): ActionField[] => values(action, kindOf(action).upstreams);

/** Directories that an action reads files from. */
export const directoriesOf = (action: ActionConfig): ActionField[] =>
  values(action, kindOf(action).directories);

/** The same action with its directories elsewhere. */
export function withDirectories(action: ActionConfig, moved: (path: string) => string): ActionConfig {
  const there = directoriesOf(action).map(({ field, value }) => [field, moved(value)]);
  return { ...action, ...(Object.fromEntries(there) as object) };
}

/** The target that an action redirects clients to; undefined if the action responds to them itself. */
export const redirectGoalOf = (action: ActionConfig): RedirectGoal | undefined =>
  kindOf(action).redirects?.goal(action);

/** The same action with another port; only for an action that redirects. */
export const withRedirectPort = (action: ActionConfig, port: number): ActionConfig =>
  kindOf(action).redirects!.withPort(action, port);

/** Problems of an action's fields that contradict each other. */
export const actionProblems = (action: ActionConfig, at: string): Problem[] =>
  kindOf(action).problems(action, at);

/** The compiler cannot know that an action and its entry are of one kind. */
const kindOf = (action: ActionInput) => KINDS[action.type] as ActionKind<ActionConfig>;

function values(action: ActionInput, fields: readonly string[]): ActionField[] {
  return fields.map((field) => ({ field, value: action[field as keyof ActionInput] }));
}
