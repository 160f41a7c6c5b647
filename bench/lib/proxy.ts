import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { start, stop } from "./children.js";
import { accepting } from "./ports.js";
import { familyOf } from "./processes.js";
import type { Site } from "./site.js";
import { type Upstreams, WEB_ADDRESSES } from "./upstreams.js";

/** What a proxy can be asked to do. */
export type Ability = "http1" | "tls" | "http2" | "static" | "upstreamTls";

/** How a proxy is to be set up for one item of work. */
export interface Setup {
  /** Service 4.1 or 4.3: `tls` serves on the https port what `plain` serves on the http port. */
  readonly mode: "plain" | "tls";
  readonly workers: number;
  /** CPUs of the proxy. */
  readonly cores: string;
  readonly site: Site;
  readonly upstreams: Upstreams;
  readonly port: number;
  /** The http port of `tls` mode, which only redirects. */
  readonly redirectPort: number;
  /** Folder of its own for config and logs. */
  readonly folder: string;
  /** How long idle connections of clients are kept. */
  readonly keepAliveSeconds: number;
  /** Requests on one client connection before it is closed; the default of nginx and Portico alike is 1000. */
  readonly requestsPerConnection: number;
  /** Further routes and virtual servers, that no request asks for. */
  readonly extraRoutes?: number;
  readonly extraServers?: number;
  /** Names of further sites, which have the same routes. */
  readonly furtherSites?: readonly string[];
  /** A command that runs the proxy's, in the same process. */
  readonly under?: readonly string[];
  /** The file server and the WebDAV daemon speak TLS. */
  readonly upstreamTls?: boolean;
  /** How many servers the application has; default 1. Portico, nginx and haproxy share requests out among them. */
  readonly applicationServers?: number;
  /** A step before each request, by its name in `requestSteps.ts`; only Portico has them. */
  readonly step?: string;
}

/** Where the application's servers listen: all have one port, on addresses of loopback. */
export const applicationServers = ({ upstreams, applicationServers: count = 1 }: Setup): readonly string[] =>
  WEB_ADDRESSES.slice(0, count).map((address) => `${address}:${upstreams.web}`);

/** Ports of the file server and the WebDAV daemon. */
export const bulkUpstreams = ({ upstreams, upstreamTls }: Setup): { files: number; dav: number } =>
  upstreamTls === true ? { files: upstreams.filesOverTls, dav: upstreams.davOverTls } : upstreams;

export interface ProxyKind {
  readonly name: string;
  /** `node`: runs on Node, and is one of the peers whose best is compared with; `bare`: Node without a proxy. */
  readonly family: "portico" | "nginx" | "native" | "node" | "bare";
  readonly abilities: readonly Ability[];
  /** Its version; undefined if it is not installed. */
  version(): string | undefined;
  /** Writes the config; returns how it is started. */
  prepare(setup: Setup): Launch;
}

export interface Launch {
  readonly command: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

export interface RunningProxy {
  readonly name: string;
  readonly family: ProxyKind["family"];
  readonly port: number;
  readonly mode: "plain" | "tls";
  /** CPUs it is pinned to. */
  readonly cores: string;
  /** `http://127.0.0.1:PORT` or https. */
  readonly origin: string;
  /** Its processes at this moment. */
  pids(): readonly number[];
  stop(): Promise<void>;
}

export async function startProxy(kind: ProxyKind, setup: Setup): Promise<RunningProxy> {
  const child = launch(kind, setup);
  const alive = (): boolean => child.exitCode === null && child.signalCode === null;
  if (!(await accepting(setup.port, alive))) {
    await stop(child);
    throw new Error(`${kind.name} does not start:\n${outputOf(setup)}`);
  }
  return {
    name: kind.name,
    family: kind.family,
    port: setup.port,
    mode: setup.mode,
    cores: setup.cores,
    origin: `${setup.mode === "tls" ? "https" : "http"}://127.0.0.1:${setup.port}`,
    pids: () => familyOf(child.pid!),
    stop: () => stop(child),
  };
}

/** Starts without waiting. */
export function launch(kind: ProxyKind, setup: Setup): ChildProcess {
  mkdirSync(path.join(setup.folder, "logs"), { recursive: true });
  const { command, env } = kind.prepare(setup);
  return start([...(setup.under ?? []), ...command], {
    cores: setup.cores,
    // systemd passes nobody's certificates on; Node would read them at its start.
    env: { NODE_EXTRA_CA_CERTS: undefined, ...env },
    output: outputFile(setup),
    cwd: setup.folder,
  });
}

/** What the proxy said, for an error message. */
export function outputOf(setup: Setup): string {
  const files = [outputFile(setup), path.join(setup.folder, "logs/error.log")];
  return files.map((file) => (existsSync(file) ? readFileSync(file, "utf8").slice(-2_000) : "")).join("");
}

const outputFile = (setup: Setup): string => path.join(setup.folder, "logs/output.log");
