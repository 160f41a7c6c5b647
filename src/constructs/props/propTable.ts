import { Token } from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { type Level, unknownNameFix } from "../../model/config/unknownNames.js";
import { type Problem, problem } from "../../model/index.js";
import { libraryProblems, refuse } from "./checks.js";

/**
 * The tables of props and options. TypeScript reports an unknown or missing name. These tables do so for JavaScript,
 * spread objects and objects read from a file, before anything is made from them.
 *
 * Only names and kinds are checked here. The model decides whether a value is allowed.
 */

/** The kind of value that a prop takes. */
export interface PropKind {
  /** The accepted values in words. */
  readonly allowed: string;
  /** The same without its parts, where these are long, for the message about another value. */
  readonly called?: string;
  /** The fix for another value. */
  readonly fix?: string;
  readonly accepts: (value: unknown) => boolean;
  /** Problems inside the value. */
  readonly inside?: (value: unknown, path: string) => Problem[];
  readonly required?: true | "model";
  /** The fields of an object. */
  readonly table?: Readonly<Record<string, PropKind>>;
  /** Whether each item of a list is needed, so that a list that is not known yet is refused. */
  readonly eachItem?: true;
  /** Whether `allowed` lists values, and not a kind of value. */
  readonly values?: true;
  /** Whether a value is an instance of its class; undefined where no class is asked for. */
  readonly isInstance?: (value: unknown) => boolean;
}

/** A required prop; with `model`, the model reports that it is missing, in its own words. */
export interface RequiredPropKind extends PropKind {
  readonly required: true | "model";
}

/** The path of a prop by the prop's name, for messages. */
export type PathOf = (name: string) => string;

/** An entry for each prop: the compiler reports a missing entry, and a required prop without `required`. */
export type PropTable<P> = {
  readonly [K in keyof P]-?: object extends Pick<P, K> ? PropKind : RequiredPropKind;
};

/** Further problems of props that fit their table: of their values, and of combinations. */
type Judge<P> = (fit: Partial<P>) => readonly Problem[];

/**
 * Refuses props that do not fit the table, and problems that `judge` finds in the others, all at once; problems are at
 * the construct's path.
 */
export function refuseProps<P extends object>(
  construct: IConstruct,
  props: P,
  table: PropTable<P>,
  judge?: Judge<P>,
): void {
  refuse([...libraryProblems(construct), ...allProblems(construct.node.path, props, table, judge)]);
}

/** The same for the options of a static method, which has no construct yet: `Mode.tls`. */
export function refuseOptions<P extends object>(
  method: string,
  options: P,
  table: PropTable<P>,
  judge?: Judge<P>,
): void {
  refuse(allProblems(method, options, table, judge));
}

/** The same for a method with an argument before its options. */
export function refuseArgument<A extends object, P extends object>(
  method: string,
  argument: A,
  argumentTable: PropTable<A>,
  options: P,
  table: PropTable<P>,
): void {
  refuse([...propProblems(method, argument, argumentTable), ...propProblems(method, options, table)]);
}

function allProblems<P extends object>(
  path: string,
  props: P,
  table: PropTable<P>,
  judge: Judge<P> = () => [],
): Problem[] {
  const misfits = propProblems(path, props, table);
  const isAt = (name: string, { path: at }: Problem): boolean =>
    at.startsWith(`${path}.${name}`) && !/^\w/.test(at.slice(`${path}.${name}`.length));
  if (misfits.some((p) => p.path === path)) return misfits;
  const unfit = Object.keys(table).filter((name) => misfits.some((p) => isAt(name, p)));
  const fit = Object.keys(table).filter((name) => !unfit.includes(name) && name in props);
  const others = Object.fromEntries(fit.map((name) => [name, props[name as keyof P]])) as Partial<P>;
  // A prop that is missing for the judge may have been given, and is then among the misfits.
  const judged = judge(others).filter((p) => !unfit.some((name) => isAt(name, p)));
  return [...misfits, ...judged];
}

/** Refuses an id that is not a string: in JavaScript it is easy to pass props in its place. */
export function refuseId(construct: IConstruct, method: string, id: unknown): void {
  if (typeof id === "string" && id !== "") return;
  const more = { received: described(id), allowed: "a string", fix: `Call \`${method}(id, props)\`.` };
  refuse([problem("config.wrong-type", `${construct.node.path}.${method}`, "is called without an id", more)]);
}

function propProblems(path: string, props: unknown, table: Readonly<Record<string, PropKind>>): Problem[] {
  const names = Object.keys(table);
  if (!isObject(props)) {
    const needed = names.filter((name) => table[name]!.required !== undefined);
    const fix = needed.length === 0 ? "Pass an object." : `Pass an object with ${needed.join(", ")}.`;
    const more = { allowed: `an object with ${names.join(", ")}`, fix };
    return props === undefined
      ? [problem("config.missing-field", path, "has no props", more)]
      : [problem("config.wrong-type", path, "is not an object", { received: described(props), ...more })];
  }
  const unknown = Object.keys(props).filter((name) => !names.includes(name));
  if (!isPlainObject(props)) {
    const prop = names.find((name) => table[name]!.isInstance?.(props));
    if (prop !== undefined || unknown.length === Object.keys(props).length)
      return [misplaced(path, props, prop, names)];
  }
  return [
    ...unknown.map((name) => unknownProp(`${path}.${name}`, name, table)),
    ...names.flatMap((name) => valueProblems(`${path}.${name}`, props[name], table[name]!)),
  ];
}

/** An instance in the place of the object that it belongs into: `Mode.tls(material)`. */
function misplaced(path: string, value: object, prop: string | undefined, names: readonly string[]): Problem {
  const allowed = `an object with ${names.join(", ")}`;
  const fix = prop === undefined ? "Pass an object." : `Pass the value by its name: \`{ ${prop}: … }\`.`;
  const received = prop === undefined ? described(value) : `a value for \`${prop}\``;
  const more = { received, allowed, fix };
  return problem(
    "config.wrong-type",
    path,
    "gets an instance of a class in place of an object with options",
    more,
  );
}

function unknownProp(path: string, name: string, table: Readonly<Record<string, PropKind>>): Problem {
  return problem("config.unknown-field", path, "is not a known field", {
    allowed: Object.keys(table).join(", ") || "no options",
    ...unknownNameFix(name, levelOf(table)),
  });
}

const levelOf = (table: Readonly<Record<string, PropKind>>): Level => ({
  names: Object.keys(table),
  inside: (name) => {
    const inner = table[name]?.table;
    return inner === undefined ? undefined : levelOf(inner);
  },
});

function valueProblems(path: string, value: unknown, kind: PropKind): Problem[] {
  const { allowed, called = allowed, fix = `Use ${called}.` } = kind;
  if (value === undefined) {
    if (kind.required !== true) return [];
    const add = kind.fix ?? `Set the field to ${called}.`;
    return [problem("config.missing-field", path, "is missing", { allowed, fix: add })];
  }
  if (Array.isArray(value) && Token.isUnresolved(value) && kind.eachItem === true) {
    const received = "a list that Terraform knows at apply";
    const more = { received, allowed: "a list with a known number of items", fix: ITEM_BY_ITEM };
    return [problem("config.wrong-type", path, "is a list whose length is not known at synthesis", more)];
  }
  if (!kind.accepts(value)) {
    const more = { received: described(value), allowed, fix };
    return kind.values === true
      ? [problem("config.not-one-of", path, "is not one of the allowed values", more)]
      : [problem("config.wrong-type", path, `is not ${called}`, more)];
  }
  return kind.inside?.(value, path) ?? [];
}

const ITEM_BY_ITEM = "List the items one by one: `[Fn.element(list, 0), Fn.element(list, 1)]`.";

/** A construct shown as JSON would be the whole tree. */
function described(value: unknown): unknown {
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const { name } = value.constructor;
  return name === "Object" || name === "" ? value : `an instance of ${name}`;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Any value, since the model judges it. */
export const any: PropKind = { allowed: "a value", accepts: () => true, inside: constructsInside };

/** Problems of a construct, such as a variable, in the place of its value. */
function constructsInside(value: unknown, path: string): Problem[] {
  if (Array.isArray(value)) return value.flatMap((item, i) => constructsInside(item, `${path}[${i}]`));
  if (Construct.isConstruct(value)) {
    const more = { received: described(value), allowed: "a value, or a reference to one", fix: REFERENCE };
    return [problem("config.wrong-type", path, "is a construct", more)];
  }
  if (!isPlainObject(value)) return [];
  return Object.entries(value).flatMap(([name, item]) => constructsInside(item, `${path}.${name}`));
}

const REFERENCE =
  "Use an attribute of the construct: `stringValue`, `numberValue` or `value` of a variable, `id` and others of a resource.";

function isPlainObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return isObject(value) && [Object.prototype, null].includes(Object.getPrototypeOf(value) as object);
}

/** The result of a function when the app is synthesized, or the value itself. */
export function produced(kind: PropKind): PropKind {
  const { allowed, called = allowed, accepts } = kind;
  const orFunction = (words: string): string => `${words}, or a function that returns it`;
  return {
    ...kind,
    allowed: orFunction(allowed),
    called: orFunction(called),
    accepts: (value) => typeof value === "function" || accepts(value),
  };
}

/** A list that may hold anything, but whose length must be known. */
export const knownList: PropKind = {
  ...any,
  eachItem: true,
  allowed: "a list",
  accepts: (value) => !isReference(value),
};

/** Refuses `new` of a class whose instances its static methods make: JavaScript knows no private constructors. */
export function refuseNew(className: string, { allowed, fix }: PropKind, isDirect: boolean): void {
  if (!isDirect) return;
  refuse([
    problem("config.wrong-type", className, "is made with `new`", {
      allowed,
      fix,
    }),
  ]);
}

export const text: PropKind = { allowed: "a string", accepts: (value) => typeof value === "string" };

/** A number, or a token that becomes one. */
export const number: PropKind = {
  allowed: "a number",
  accepts: (value) => typeof value === "number" || isReference(value),
};

/** Tokens are not accepted as booleans, because these decide which constructs are created. */
export const flag: PropKind = { allowed: "true or false", accepts: (value) => typeof value === "boolean" };

const isReference = (value: unknown): boolean => !Construct.isConstruct(value) && Token.isUnresolved(value);

/** A list that is made into lines and words here: its items may be tokens, and how many there are must be known. */
const list: PropKind = {
  allowed: "a list",
  fix: "Use a list: put even a single item in brackets.",
  accepts: Array.isArray,
  eachItem: true,
};

/** A list whose items are of one kind. */
export function listOf(kind: PropKind): PropKind {
  return {
    ...list,
    allowed: `${list.allowed}, each item ${kind.allowed}`,
    called: list.allowed,
    inside: (value, path) =>
      Array.isArray(value)
        ? value.flatMap((item, i) => valueProblems(`${path}[${i}]`, item, { ...kind, required: true }))
        : [],
  };
}

/** An object with names of the caller's, whose values are of one kind. */
export function recordOf(kind: PropKind): PropKind {
  return {
    allowed: `an object, each value ${kind.allowed}`,
    called: "an object",
    accepts: (value) => isObject(value) && !Construct.isConstruct(value),
    inside: (value, path) =>
      Object.entries(value as object).flatMap(([name, item]) =>
        valueProblems(`${path}.${name}`, item, { ...kind, required: true }),
      ),
  };
}

/** A function, in words such as `(place) => …`, that gives something of a kind when it is called with the argument. */
export function functionOf(words: string, kind: PropKind, argument: unknown): PropKind {
  return {
    allowed: `\`${words}\``,
    accepts: (value) => typeof value === "function",
    inside: (value, path) =>
      valueProblems(path, (value as (given: unknown) => unknown)(argument), { ...kind, required: true }),
  };
}

export const record: PropKind = { allowed: "an object", accepts: isObject, inside: constructsInside };

export function choice(...values: readonly (string | boolean)[]): PropKind {
  const allowed = values.map((value) => JSON.stringify(value)).join(", ");
  return {
    allowed,
    fix: values.length === 1 ? `Use ${allowed}.` : `Use one of ${allowed}.`,
    values: true,
    accepts: (value) => values.includes(value as string),
  };
}

/** An object with its own props. */
export function fields<P extends object>(table: PropTable<P>): PropKind {
  return {
    allowed: `an object with ${Object.keys(table).join(", ")}`,
    called: "an object",
    table,
    accepts: (value) => isObject(value) && !Construct.isConstruct(value),
    inside: (value, path) => propProblems(path, value, table),
  };
}

/**
 * An instance of a class. It is recognized by the name of the class: two copies of this package may be loaded, and an
 * instance of one is not an instance of the other.
 */
export function instance(className: string, allowed: string, fix?: string): PropKind {
  const isInstance = (value: unknown): boolean => classNames(value).includes(className);
  return { allowed, fix, isInstance, accepts: isInstance };
}

/** An instance of a class, or a construct of the user's that implements the interface of the class, by its members. */
export function implementing(members: readonly string[], kind: PropKind): PropKind {
  const hasMembers = (value: unknown): boolean =>
    Construct.isConstruct(value) && members.every((name) => name in value);
  return { ...kind, accepts: (value) => kind.accepts(value) || hasMembers(value) };
}

function classNames(value: unknown): string[] {
  const names: string[] = [];
  for (
    let at: unknown = isObject(value) ? Object.getPrototypeOf(value) : null;
    isObject(at);
    at = Object.getPrototypeOf(at)
  ) {
    names.push((at.constructor as { name: string }).name);
  }
  return names;
}

/** Either of two kinds; problems inside the value are those of the second. */
export function either(first: PropKind, second: PropKind): PropKind {
  return {
    allowed: `${first.allowed}, or ${second.allowed}`,
    called: `${first.called ?? first.allowed} or ${second.called ?? second.allowed}`,
    accepts: (value) => first.accepts(value) || second.accepts(value),
    isInstance: first.isInstance,
    eachItem: second.eachItem,
    table: second.table,
    inside: (value, path) => (first.accepts(value) ? [] : (second.inside?.(value, path) ?? [])),
  };
}

export function required(kind: PropKind): RequiredPropKind {
  return { ...kind, required: true };
}

/** Required; the model reports it if it is missing. */
export const judged: RequiredPropKind = { ...any, required: "model" };

/** The table without the props that a construct sets for its parts. */
export function without<P, K extends keyof P>(
  table: PropTable<P>,
  ...names: readonly K[]
): PropTable<Omit<P, K>> {
  const rest = Object.entries(table).filter(([name]) => !names.includes(name as K));
  return Object.fromEntries(rest) as unknown as PropTable<Omit<P, K>>;
}

/** The table with every prop optional. */
export function partial<P>(table: PropTable<P>): PropTable<Partial<P>> {
  const kinds = Object.entries<PropKind>(table);
  return Object.fromEntries(
    kinds.map(([name, kind]) => [name, { ...kind, required: undefined }]),
  ) as PropTable<Partial<P>>;
}
