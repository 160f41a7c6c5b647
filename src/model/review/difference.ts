import { canonicalAddress, isIpv6, isWildcard } from "../net/address.js";
import {
  CATCH_ALL,
  endpoint,
  isWildcardName,
  type ListenerConfig,
  type ProxyConfig,
  type VirtualServerConfig,
} from "../index.js";
import { Collected, type Door, type ReviewFinding, type ReviewChange } from "./findings.js";
import { listenerChanges } from "./listenerChanges.js";
import { settingChanges } from "./settingChanges.js";
import { wayChanges } from "./wayChanges.js";
import { ANY_NAME, OTHER_NAME, Reach } from "./ways.js";
import type { LogInConfig, PasswordGuardConfig } from "../config/guardChecks.js";

/**
 * The differences between two configs: paths that are opened, closed or lead elsewhere, and settings that trust or
 * allow more than before.
 *
 * Requests are divided into classes within which each config treats all requests alike: by address and port, by server
 * name, and by path. Both routers get one request of each class, so that no difference is missed, and changes of names
 * or of the order in the document are not reported.
 */
export function differences(old: ProxyConfig, now: ProxyConfig): readonly ReviewFinding[] {
  const found = new Collected();
  for (const change of settingChanges(old, now)) found.add(change);
  const [before, after] = [new Reach(old), new Reach(now)];
  const changes = wayChanges(before, after);
  for (const { at, was, is } of placesOf(old, now)) {
    const place = (listener: ListenerConfig, config: ProxyConfig): string =>
      `listeners[${config.listeners.indexOf(listener)}]`;
    const said = (listener: ListenerConfig | undefined): string | undefined =>
      listener === undefined ? undefined : `${listener.protocol} ${at}`;
    if (is === undefined) {
      found.add({ id: "listener.closed", place: place(was!, old), document: "old", old: said(was) });
      continue;
    }
    for (const change of was === undefined ? [] : listenerChanges(was, is, place(is, now))) found.add(change);
    const opened = { id: "listener.opened", place: place(is, now), new: said(is) } as const;
    if (was === undefined) found.add(opened);
    for (const { name, asked } of namesOf(was === undefined ? [] : serversOf(old, was), serversOf(now, is))) {
      const server = after.server(is, asked);
      const former = was === undefined ? undefined : before.server(was, asked);
      const door = { scheme: is.protocol, at, name };
      const guarded =
        former === undefined ? [] : guardChanges({ config: old, server: former }, { config: now, server });
      for (const change of guarded) found.add(change, { ...door, path: "/*" });
      if (former?.versionTokens === false && server.versionTokens)
        found.add(
          {
            id: "version.shown",
            place: `virtualServers[${now.virtualServers.indexOf(server)}].versionTokens`,
            old: "false",
            new: "true",
          },
          { ...door, path: "/*" },
        );
      for (const { path, pattern } of pathsOf([...(former?.routes ?? []), ...server.routes])) {
        const [from, to] = [
          was === undefined ? undefined : before.taken(was, asked, path),
          after.taken(is, asked, path),
        ];
        const here: Door = { ...door, path: pattern };
        if (was !== undefined) for (const change of changes(from, to)) found.add(change, here);
        else if (to !== undefined) found.add(opened, here);
      }
    }
  }
  return found.findings();
}

interface ListenerPair {
  readonly at: string;
  readonly was: ListenerConfig | undefined;
  readonly is: ListenerConfig | undefined;
}

/** Each address and port that one of the configs tells apart, with the listener that takes its connections in both. */
function placesOf(old: ProxyConfig, now: ProxyConfig): readonly ListenerPair[] {
  const all = [...now.listeners, ...old.listeners];
  const places = new Map(
    all.map(({ address, port }) => [endpoint({ host: canonicalAddress(address), port }), { address, port }]),
  );
  return [...places].map(([at, { address, port }]) => {
    const taking = ({ listeners }: ProxyConfig): ListenerConfig | undefined => {
      const there = listeners.filter((one) => one.port === port && isIpv6(one.address) === isIpv6(address));
      const exact = there.find((one) => canonicalAddress(one.address) === canonicalAddress(address));
      return exact ?? there.find((one) => isWildcard(one.address));
    };
    return { at, was: taking(old), is: taking(now) };
  });
}

const serversOf = (
  { virtualServers }: ProxyConfig,
  { name }: ListenerConfig,
): readonly VirtualServerConfig[] => virtualServers.filter(({ listeners }) => listeners.includes(name));

interface NameClass {
  /** The name for a reader. */
  readonly name: string;
  /** A name of this class, which is in no other class. */
  readonly asked: string;
}

function namesOf(...servers: readonly (readonly VirtualServerConfig[])[]): readonly NameClass[] {
  const all = servers.flat().flatMap(({ serverNames }) => serverNames);
  const names = [...new Set(all)].filter((name) => name !== CATCH_ALL);
  return [
    // No name of a config has a control character, so this one is covered by the wildcard and is no other.
    ...names.map((name) => ({ name, asked: isWildcardName(name) ? name.replace("*", NONE) : name })),
    { name: names.length === 0 ? ANY_NAME : OTHER_NAME, asked: "" },
  ];
}

interface PathClass {
  readonly path: string;
  readonly pattern: string;
}

/**
 * The classes of paths, each with an example. Which routes match a path depends on the longest of their paths that it begins
 * with, and on whether it ends there, continues with `/`, or continues otherwise.
 */
function pathsOf(routes: readonly { readonly path: string }[]): readonly PathClass[] {
  return [...new Set(routes.map(({ path }) => path))].flatMap((path) =>
    path.endsWith("/")
      ? [
          { path, pattern: path },
          { path: path + NONE, pattern: `${path}*` },
        ]
      : [
          { path, pattern: path },
          { path: `${path}/${NONE}`, pattern: `${path}/*` },
          { path: path + NONE, pattern: `${path}[^/]*` },
        ],
  );
}

/** A text that no name and no path of a config contains. */
const NONE = "\0";

/** Which way a number has to go so that a guard lets a client guess more. */
const MORE_GUESSES = {
  wrongSecretsMax: "up",
  slowAfter: "up",
  slowMs: "down",
  windowMs: "down",
  closeMs: "down",
  ipv6Prefix: "up",
} as const satisfies Record<keyof PasswordGuardConfig, "up" | "down">;

/** A virtual server of a config, with the JSON path of the server. */
interface GuardedServer {
  readonly config: ProxyConfig;
  readonly server: VirtualServerConfig;
}

/** Whether clients may guess more or fewer passwords of a virtual server. */
function guardChanges(was: GuardedServer, is: GuardedServer): readonly ReviewChange[] {
  const [from, to] = [guardOf(was), guardOf(is)];
  const place = `virtualServers[${is.config.virtualServers.indexOf(is.server)}]`;
  const at = `${place}.passwordGuard`;
  if (from === undefined || to === undefined) {
    if (from === to) return [];
    const id = to === undefined ? "guard.weaker" : "guard.stronger";
    return [
      { id, place: at, old: was.server.passwordGuard ?? "none", new: is.server.passwordGuard ?? "none" },
    ];
  }
  const numbers = Object.entries(MORE_GUESSES).flatMap(([name, direction]) => {
    const [old, now] = [from[name as keyof typeof MORE_GUESSES], to[name as keyof typeof MORE_GUESSES]];
    if (old === now) return [];
    const id = now > old === (direction === "up") ? "guard.weaker" : "guard.stronger";
    return [{ id, place: `${at}.${name}`, old: String(old), new: String(now) } as const];
  });
  const [old, now] = [was, is].map(({ server }) => (server.logIns ?? []).map(textOf)) as [string[], string[]];
  const logIns = `${place}.logIns`;
  return [
    ...numbers,
    ...old
      .filter((rule) => !now.includes(rule))
      .map((rule) => ({ id: "guard.weaker", place: logIns, old: rule, new: "none" }) as const),
    ...now
      .filter((rule) => !old.includes(rule))
      .map((rule) => ({ id: "guard.stronger", place: logIns, old: "none", new: rule }) as const),
  ];
}

const guardOf = ({ config, server }: GuardedServer): PasswordGuardConfig | undefined =>
  server.passwordGuard === undefined ? undefined : config.passwordGuards?.[server.passwordGuard];

/** All of a rule: another status of failures makes another rule. */
function textOf({ method, path, match, ...more }: LogInConfig): string {
  const others = Object.entries(more).flatMap(([name, value]) =>
    value === undefined || (Array.isArray(value) && value.length === 0)
      ? []
      : [`${name} ${typeof value === "string" ? value : JSON.stringify(value)}`],
  );
  return `${method ?? "any method"} ${path}${match === "segment" ? "/*" : ""}, ${others.join(", ")}`;
}
