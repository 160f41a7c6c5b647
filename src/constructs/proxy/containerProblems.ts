import { portalUrls } from "../../model/config/forwardAuth.js";
import {
  isLoopback,
  type Problem,
  problem,
  type ProxyConfig,
  upstreamAddress,
  urlsOf,
} from "../../model/index.js";
import type { IContainerProxy } from "./proxyInterfaces.js";
import { proxyBehind } from "./proxyScope.js";

/** The place in which containers run, and what they have of its files. */
export interface ContainerPlace {
  /** The area of the codes. */
  readonly area: "kubernetes" | "compose";
  /** Directories and files of volumes and Secrets in the containers. */
  readonly mounted: readonly string[];
  readonly words: {
    /** The end of a sentence: `the pods do not have`. */
    readonly lacking: string;
    /** The machine that loopback means: `the pod itself`. */
    readonly itself: string;
    /** The URL of an upstream that is allowed. */
    readonly url: string;
    /** The paths that are allowed: `one of the \`volumes\``. */
    readonly volumes: string;
  };
}

/** Upstreams and files that a host has, and containers with a read-only root file system do not. */
export function containerProblems(
  proxy: IContainerProxy,
  config: ProxyConfig,
  { area, mounted, words }: ContainerPlace,
): Problem[] {
  const servers = proxy.virtualServers;
  const isMounted = (path: string): boolean => mounted.some((place) => `${path}/`.startsWith(`${place}/`));
  const isThere = (directory: string): boolean =>
    isMounted(directory) ||
    [...proxy.files.keys()].some((path) => path.startsWith(`${directory.replace(/\/$/, "")}/`));
  const asked = config.upstreams.flatMap((upstream, i) =>
    urlsOf(upstream).map(({ url, at }) => ({ url, path: `${proxy.upstreams[i]!.node.path}.${at}` })),
  );
  const portals = portalUrls(config).map(({ url, path }) => ({ url, path: `${proxy.node.path}.${path}` }));
  const upstreams = [...asked, ...portals].flatMap(({ url, path }) => {
    const leads = upstreamAddress(url);
    if ("host" in leads ? !isLoopback(leads.host) : isMounted(leads.path)) return [];
    const more = { received: url, allowed: words.url };
    return [problem(`${area}.loopback-upstream`, path, `leads to ${words.itself}`, more)];
  });
  const lost = (path: string, message: string, received: string, allowed: string, fix?: string): Problem =>
    problem(`${area}.no-volume`, path, message, { received, allowed, fix });
  const file = `is a file that ${words.lacking}`;
  const onVolume = `a file on ${words.volumes}`;
  const routes = config.virtualServers.flatMap(({ routes: all }, s) =>
    all.map((route, r) => ({ ...route, path: servers[s]!.routes[r]?.node.path ?? servers[s]!.node.path })),
  );
  const served = routes.flatMap(({ action, path }) => {
    if (action.type !== "staticFiles" || isThere(action.directory)) return [];
    const allowed = `a directory on ${words.volumes}, or one that contains a file of \`addFile\``;
    const message = `serves a directory that ${words.lacking}`;
    return [lost(`${path}.action`, message, action.directory, allowed)];
  });
  const credentials = proxyBehind(proxy)
    .credentialFiles.filter(([, path]) => !isMounted(path))
    .map(([at, path]) => lost(at, file, path, onVolume));
  const pages = servers
    .flatMap(({ errorPageFiles }) => errorPageFiles)
    .filter(([, path]) => !isMounted(path) && !proxy.files.has(path))
    .map(([at, path]) => {
      const fix = "Set the text of the page as `html`, or add the file to the proxy with `addFile`.";
      return lost(at, file, path, `${onVolume}, or a file of \`addFile\``, fix);
    });
  return [...upstreams, ...served, ...credentials, ...pages];
}
