import { type Problem, problem, type ProxyConfigInput } from "../../model/index.js";

/** A field of a config that is set, or deleted by `undefined`, after all constructs have rendered. */
export interface ConfigOverride {
  /** Field path: `virtualServers[0].routes[1].sendTimeoutMs`, or with names, `upstreams[web].url`. */
  readonly path: string;
  readonly value: unknown;
}

/** Credentials are made from the prop itself. */
const FOLLOWED_SECRET = /^(?:ticketKeys(?:\.file)?|notifications(?:\.targets.*)?)$/;

/** Sockets, credentials and the firewall are made from the listeners themselves. */
const FOLLOWED = /^listeners(?:\[[\w.-]+\](?:\.(?:address|port|protocol|tls(?!\.policy)).*)?)?$/;

/** Problems of the path of an override, whatever the config. */
export function overridePathProblems(at: string, path: string): Problem[] {
  if (!/^\w+(?:\.[\w$-]+|\[[\w.-]+\])*$/.test(path)) {
    const allowed =
      "names of fields joined by dots, with items of lists by name or index in brackets, such as `virtualServers[application].routes[web].sendTimeoutMs`";
    const more = { received: path, allowed, fix: "Correct the path." };
    return [problem("config.unknown-field", at, "is not the path of a field", more)];
  }
  const secret = FOLLOWED_SECRET.test(path);
  if (!secret && !FOLLOWED.test(path)) return [];
  const fix = secret
    ? `Set \`${path.split(".")[0]}\` of the proxy instead: the service's credentials are made from it.`
    : "Set the option of the Listener instead: sockets, credentials and the firewall are made from it.";
  const message = "cannot be overridden: it affects more than the config";
  return [problem("config.unknown-field", at, message, { received: path, fix })];
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

/** A field by its name, or an item of a list by its index or name. */
type PathStep = string | { readonly item: string };

const steps = (path: string): PathStep[] =>
  [...path.matchAll(/\[([\w.-]+)\]|[^.[\]]+/g)].map(([name, item]) => (item === undefined ? name : { item }));

/** A name goes before an index, since a name may have digits only; -1 if there is none. */
function indexOf(list: readonly unknown[], item: string): number {
  const named = list.findIndex((one) => (one as { name?: unknown } | null)?.name === item);
  return named === -1 && /^\d+$/.test(item) ? Number(item) : named;
}

/** The path with indexes in place of names, as problems of the config have it. */
export function indexedPath(config: ProxyConfigInput, path: string): string {
  let node: unknown = config;
  return steps(path)
    .map((step) => {
      const key = typeof step === "string" || !Array.isArray(node) ? step : indexOf(node, step.item);
      node = typeof key === "object" ? undefined : (node as Record<string, unknown> | undefined)?.[key];
      return typeof key === "number" ? `[${key}]` : typeof key === "string" ? `.${key}` : `[${key.item}]`;
    })
    .join("")
    .slice(1);
}

/** A copy with one value set; undefined if a list is too short for it, or a text or number is in the way. */
function set(node: unknown, [step, ...rest]: readonly PathStep[], value: unknown): unknown {
  if (step === undefined) return value;
  if (typeof step === "object") {
    if (!Array.isArray(node)) return undefined;
    const index = indexOf(node, step.item);
    if (index === -1 || index > node.length || (index === node.length && rest.length > 0)) return undefined;
    if (rest.length === 0 && value === undefined) return node.filter((_, i) => i !== index);
    const item = set(node[index], rest, value);
    return item === undefined ? undefined : Object.assign([...(node as unknown[])], { [index]: item });
  }
  if (node !== undefined && (typeof node !== "object" || node === null || Array.isArray(node)))
    return undefined;
  const { [step]: old, ...others } = (node ?? {}) as Record<string, unknown>;
  if (rest.length === 0) return value === undefined ? others : { ...node, [step]: value };
  const inner = set(old, rest, value);
  return inner === undefined ? undefined : { ...node, [step]: inner };
}
