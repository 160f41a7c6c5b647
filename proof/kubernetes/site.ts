import { Action, Application, ContainerFrontEnd, Mode } from "../../src/index.js";
import type { Construct } from "constructs";
import { APPLICATION } from "./application.js";

/** Where the site's media is in the pods. */
export const MEDIA_DIRECTORY = "/srv/media";
/** An image in it. */
export const MEDIA_PATH = "logo.svg";
export const SITE_HOST = "files.example.org";
/** Name that the load asks for over plain HTTP, where the site itself only redirects. */
export const LOAD_HOST = "load.example.org";

export interface SiteOptions {
  /** In a field of every response of the application, so that clients see which config they reached. */
  readonly revision: string;
  /** Addresses that name their clients by the PROXY protocol. */
  readonly announcedFrom?: readonly string[];
}

/** The file-sync service in containers, and paths for the load and its questions. */
export function site(scope: Construct, { revision, announcedFrom }: SiteOptions): ContainerFrontEnd {
  const { host, webPort, filesPort } = APPLICATION;
  const files = { url: `http://${host}:${filesPort}` };
  const sync = new ContainerFrontEnd(scope, "sync", {
    mode: Mode.tls(announcedFrom === undefined ? {} : { proxyProtocol: { from: announcedFrom } }),
    serverNames: [SITE_HOST],
    upstreams: { web: { url: `http://${host}:${webPort}` }, webdav: files, fileServer: files },
    application: Application.fileSync({ mediaDirectory: MEDIA_DIRECTORY }),
    responseHeaders: { set: { "X-Revision": revision } },
    proxy: { workers: 1 },
  });
  const load = sync.proxy.addVirtualServer("load", {
    serverNames: [LOAD_HOST],
    listeners: [sync.listeners.http!],
  });
  for (const server of [load, sync.site.virtualServer])
    server.addRoute("load", {
      path: LOAD_PATH,
      match: "segment",
      action: Action.proxy(sync.site.upstreams.fileServer, {
        hostHeader: "upstream",
        forwarded: { realIp: true, for: true, proto: true },
      }),
      requestBodyBytesMax: 0,
    });
  return sync;
}

export const LOAD_PATH = "/load";
