import { writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type ListenerInput,
  parseConfig,
  type ProxyConfig,
  type ProxyConfigInput,
  type RouteInput,
} from "../src/model/index.js";
import type { Issued } from "./certificates.js";

/** Configs of one virtual server on 127.0.0.1, in which a test writes only what it is about. */

export interface OneServer extends Omit<ProxyConfigInput, "version" | "virtualServers"> {
  readonly routes: readonly RouteInput[];
  /** More of the virtual server. */
  readonly server?: Partial<ProxyConfigInput["virtualServers"][number]>;
}

/** The virtual server has all listeners, and every name unless `server` says otherwise. */
export function oneServer({ routes, server, ...config }: OneServer): ProxyConfigInput {
  const listeners = config.listeners.map(({ name }) => name);
  return {
    version: 1,
    workers: 1,
    ...config,
    virtualServers: [{ name: "only", serverNames: ["_"], default: true, listeners, routes, ...server }],
  };
}

/** The same as it is served, with its defaults. @throws Error with the problems of a config that is refused */
export function oneServerConfig(server: OneServer): ProxyConfig {
  const parsed = parseConfig(oneServer(server));
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
  return parsed.value;
}

/** A listener of https, if it has a certificate. */
export function loopback(name: string, port: number, tls?: ListenerInput["tls"]): ListenerInput {
  const at = { name, address: "127.0.0.1", port };
  return tls === undefined ? { ...at, protocol: "http" } : { ...at, protocol: "https", tls };
}

/** The route of all paths. */
export const everywhere = (action: RouteInput["action"]): RouteInput => ({
  name: "all",
  path: "/",
  match: "prefix",
  action,
});

export const fixed = (body: string): RouteInput => everywhere({ type: "respond", status: 200, body });

export const logsIn = (folder: string) => ({
  access: { path: join(folder, "access.log") },
  error: { path: join(folder, "error.log") },
});

/** Writes a key and its certificate. @returns where, for a listener */
export function writeCertificate(folder: string, { key, cert }: Pick<Issued, "key" | "cert">) {
  const files = { key: join(folder, "key.pem"), certificate: join(folder, "cert.pem") };
  writeFileSync(files.key, key, { mode: 0o600 });
  writeFileSync(files.certificate, cert);
  return files;
}
