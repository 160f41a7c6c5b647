import type { LogIn } from "../../applications/definition.js";
import type { passwordGuard } from "../../model/access/guardSchema.js";
import { type Problem, problem } from "../../model/index.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { guardInputProblems, type PasswordGuardInput } from "../props/checks.js";
import { any, type PropKind } from "../props/propTable.js";
import { isKnown } from "../props/tokens.js";

/** A guard against guessing passwords; `{}` for one with the defaults. See docs/password-guard.md. */
export interface PasswordGuard extends InputOf<typeof passwordGuard> {}

/** A guard, or `"off"`: none, also where the front end has one. */
export type PasswordGuardOption = "off" | PasswordGuard;

/** @internal The model judges it, at the place where it was given. */
export const PASSWORD_GUARD: PropKind = any;

/** @internal */
export const guardOptionProblems = (path: string, given: unknown): Problem[] =>
  isGuard(given) ? guardInputProblems(path, given as PasswordGuardInput) : [];

const isGuard = (given: unknown): boolean =>
  given !== undefined && given !== "off" && isKnown(given as string);

/** @internal A guard with the name of its place. */
export interface NamedGuard {
  readonly name: string;
  readonly guard: PasswordGuardOption;
}

/** @internal A guard of a site whose application does not say what a log-in is. */
export function guardWithoutLogIns(path: string, given: unknown, logIns?: readonly LogIn[]): Problem[] {
  if (!isGuard(given) || logIns === undefined || logIns.length > 0) return [];
  const fix = "Use `Application.custom` with `clients.logIns`, or remove `passwordGuard`.";
  const allowed = "a guard of an application with `logIns`";
  const message = "guards nothing: the application has no `logIns`";
  return [problem("config.guard-without-log-in", path, message, { allowed, fix })];
}
