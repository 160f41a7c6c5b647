import type { LogInConfig, PasswordGuardConfig } from "../config/guardChecks.js";
import type { ProxyConfig, VirtualServerConfig } from "../index.js";
import type { ReviewChange } from "./findings.js";

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
export function guardChanges(was: GuardedServer, is: GuardedServer): readonly ReviewChange[] {
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
