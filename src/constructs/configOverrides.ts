import { type Problem, problem, type ProxyConfigInput } from "../model/index.js";

/** A field of a config that is set, or deleted by `undefined`, after all constructs have rendered. */
export interface ConfigOverride {
  /** Field path as in error messages: `virtualServers[0].routes[1].sendTimeoutMs`. */
  readonly path: string;
  readonly value: unknown;
}

/** Credentials are made from the prop itself. */
const FOLLOWED_SECRET = /^ticketKeys(?:\.file)?$/;

/** Sockets, credentials and the firewall are made from the listeners themselves. */
const FOLLOWED = /^listeners(?:\[\d+\](?:\.(?:address|port|protocol|tls(?!\.policy)).*)?)?$/;

/** What is wrong with the path of an override, whatever the config. */
export function overridePathProblems(at: string, path: string): Problem[] {
  if (!/^\w+(?:\.[\w$-]+|\[\d+\])*$/.test(path)) {
    const allowed =
      "field names with dots, indexes of lists in brackets: virtualServers[0].routes[1].sendTimeoutMs";
    return [problem("config.unknown-field", at, "is not the path of a field", { received: path, allowed })];
  }
  const secret = FOLLOWED_SECRET.test(path);
  if (!secret && !FOLLOWED.test(path)) return [];
  const fix = secret
    ? "Give it as the proxy's `ticketKeys`: the service's credentials follow it."
    : "Give it to the Listener: sockets, credentials and the firewall follow it.";
  return [problem("config.unknown-field", at, "concerns more than the config", { received: path, fix })];
}

/** The config with the overrides; an override whose path leads through a missing part is left out. */
export function overridden(config: ProxyConfigInput, overrides: readonly ConfigOverride[]): ProxyConfigInput {
  return overrides.reduce<unknown>(
    (document, { path, value }) => set(document, steps(path), value) ?? document,
    config,
  ) as ProxyConfigInput;
}

/** Overrides that lead nowhere. */
export function lostOverrides(
  config: ProxyConfigInput,
  overrides: readonly ConfigOverride[],
): ConfigOverride[] {
  return overrides.filter(({ path }, i) => {
    const before = overridden(config, overrides.slice(0, i));
    return set(before, steps(path), null) === undefined;
  });
}

type Step = string | number;

const steps = (path: string): Step[] =>
  [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map(([name, index]) =>
    index === undefined ? name : Number(index),
  );

/** A copy with one value set; undefined if a list is too short for it, or a text or number is in the way. */
function set(node: unknown, [step, ...rest]: readonly Step[], value: unknown): unknown {
  if (step === undefined) return value;
  if (typeof step === "number") {
    if (!Array.isArray(node) || step > node.length || (step === node.length && rest.length > 0))
      return undefined;
    if (rest.length === 0 && value === undefined) return node.filter((_, i) => i !== step);
    const item = set(node[step], rest, value);
    return item === undefined ? undefined : Object.assign([...(node as unknown[])], { [step]: item });
  }
  if (node !== undefined && (typeof node !== "object" || node === null || Array.isArray(node)))
    return undefined;
  const { [step]: old, ...others } = (node ?? {}) as Record<string, unknown>;
  if (rest.length === 0) return value === undefined ? others : { ...node, [step]: value };
  const inner = set(old, rest, value);
  return inner === undefined ? undefined : { ...node, [step]: inner };
}
