import path from "node:path";
import { DEFAULT_FILE, readDocument } from "../src/cli/document.js";
import { formatProblem, type ProxyConfig, type RouteConfig } from "../src/model/index.js";
import { type LaidOutFile, layOut } from "./layOut.js";
import { createMedia } from "./media.js";
import { type Mode, synthesize, type Synthesized } from "./synthesize.js";
import type { DaemonName } from "./upstreams/index.js";
import type { SitePaths } from "./upstreams/webUi.js";

/** A host laid out below a folder, ready to be served. */
export interface Host {
  readonly mode: Mode;
  /** Folder that takes the place of `/`. */
  readonly root: string;
  readonly configFile: string;
  readonly config: ProxyConfig;
  readonly files: readonly LaidOutFile[];
  /** Name in the config of each daemon's upstream. */
  readonly upstreamNames: Readonly<Record<DaemonName, string>>;
}

/** Loopback as the host's address, so that its URLs work in a browser on this machine as they are. */
const ADDRESS = "127.0.0.1";

/** From `main.ts` to folders that look like the deployed host in each mode. */
export async function prepareHosts(out: string): Promise<Readonly<Record<Mode, Host>>> {
  const [plain, tls] = await synthesize(["plain", "tls"], ADDRESS, out);
  return { plain: await prepareHost(plain!), tls: await prepareHost(tls!) };
}

/** Lays a host out, with some media files of the application. */
async function prepareHost({ mode, stackFile, hostRoot: root }: Synthesized): Promise<Host> {
  const files = await layOut(stackFile, root);
  const configFile = path.join(root, DEFAULT_FILE);
  const document = await readDocument(configFile);
  if (!document.ok) throw new Error(document.problems.map(formatProblem).join("\n"));
  const config = document.value;
  const media = route(config, "media").action;
  if (media.type === "staticFiles") await createMedia(path.join(root, media.directory));
  const upstreamNames = { web: "", fileServer: "", webdav: "" };
  for (const name of DAEMONS) upstreamNames[name] = upstream(config, name).name;
  return { mode, root, configFile, config, files, upstreamNames };
}

/** The public paths of the front end's parts. */
export function sitePaths(config: ProxyConfig): SitePaths {
  const at = (name: keyof SitePaths): string => route(config, name).path.replace(/\/$/, "");
  return { web: at("web"), fileServer: at("fileServer"), media: at("media"), webdav: at("webdav") };
}

/** The ports where the proxy expects the daemons. */
export function daemonPorts(config: ProxyConfig): Record<DaemonName, number> {
  const port = (name: DaemonName): number =>
    Number(/:(\d+)\/?$/.exec(upstream(config, name).url ?? "")?.[1] ?? 80);
  return { web: port("web"), fileServer: port("fileServer"), webdav: port("webdav") };
}

const DAEMONS: readonly DaemonName[] = ["web", "fileServer", "webdav"];

function upstream(config: ProxyConfig, name: DaemonName): ProxyConfig["upstreams"][number] {
  const { action } = route(config, name);
  const found = config.upstreams.find((u) => action.type === "proxy" && u.name === action.upstream);
  if (found === undefined) throw new Error(`route \`${name}\` of the application has no upstream`);
  return found;
}

function route(config: ProxyConfig, name: string): RouteConfig {
  const application = config.virtualServers.find((v) => v.name === "application");
  const found = application?.routes.find((r) => r.name === name);
  if (found === undefined)
    throw new Error(`main.ts has no route \`${name}\` on a virtual server \`application\``);
  return found;
}
