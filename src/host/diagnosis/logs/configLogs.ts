import { join } from "node:path";
import type { ProxyConfig, RouteConfig, VirtualServerConfig } from "../../../model/index.js";

/** A log file of a config, and the servers and routes that write to it. */
export interface ConfigLog {
  readonly kind: "access" | "error";
  readonly path: string;
  /** Undefined for an error log. */
  readonly format: "combined" | "json" | undefined;
  /** Routes whose lines it has; lines of no route are in the main logs. */
  readonly routes: readonly LoggedRoute[];
}

export interface LoggedRoute {
  readonly server: VirtualServerConfig;
  readonly route: RouteConfig;
}

/** Logs of a config that are not files. */
export interface Unfiled {
  readonly streams: readonly string[];
  /** Whether some requests are logged nowhere. */
  readonly off: boolean;
}

/**
 * The log files of a config, each once.
 *
 * @param root directory that the host's files are in
 */
export function logsOfConfig(
  config: ProxyConfig,
  root = "/",
): { readonly logs: readonly ConfigLog[] } & Unfiled {
  const found = new Map<string, ConfigLog & { readonly routes: LoggedRoute[] }>();
  const streams = new Set<string>();
  let off = false;
  type Log = ProxyConfig["logs"]["access"] | ProxyConfig["logs"]["error"];
  const add = (kind: ConfigLog["kind"], log: Log, by?: LoggedRoute): void => {
    if (log === "off") {
      off ||= kind === "access";
      return;
    }
    if ("stream" in log) return void streams.add(log.stream);
    const format =
      kind === "access" ? ((log as { format?: "combined" | "json" }).format ?? "combined") : undefined;
    const path = join(root, log.path);
    const key = `${kind} ${path}`;
    if (!found.has(key)) found.set(key, { kind, path, format, routes: [] });
    if (by !== undefined) found.get(key)!.routes.push(by);
  };
  add("access", config.logs.access);
  add("error", config.logs.error);
  for (const server of config.virtualServers) {
    for (const route of server.routes) {
      add("access", route.accessLog ?? config.logs.access, { server, route });
      add("error", route.errorLog ?? config.logs.error, { server, route });
    }
  }
  return { logs: [...found.values()], streams: [...streams], off };
}
