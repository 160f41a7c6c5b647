import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { TerraformStack, Testing } from "cdktf";
import {
  type AccessPolicy,
  Action,
  Application,
  FrontEnd,
  Mode,
  TlsMaterial,
} from "../../src/constructs/index.js";
import { proxyConfigText } from "../../src/render/index.js";
import { freePorts } from "../../testkit/ports.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { runUnseen } from "../../testkit/unseen.js";
import { Place } from "../applications/frontEnd.js";
import { startProcess } from "../wire/processes.js";

/** Three sites of a household: files with WebDAV, a wiki that believes the portal's user, and the portal. */

/** Browsers take its names for this host (RFC 6761, 6.3). */
export const DOMAIN = "home.localhost";
const CREDENTIALS = { user: "sync", password: "password of the sync client" };

export interface HouseholdOptions {
  readonly portalUrl: string;
  readonly access: AccessPolicy;
  /** Path of the portal on each site, for one that needs that. */
  readonly portalPath?: string;
}

export class Household {
  /** What the wiki and the pages of the files got, the newest last. */
  readonly got: IncomingHttpHeaders[] = [];
  private readonly ends: (() => Promise<unknown> | void)[] = [];
  private place!: Place;
  port!: number;

  static async start(options: HouseholdOptions): Promise<Household> {
    const household = new Household();
    try {
      await household.begin(options);
    } catch (error) {
      await household.stop();
      throw error;
    }
    return household;
  }

  urlOf(site: "files" | "wiki", path = "/"): string {
    return `https://${site}.${DOMAIN}:${this.port}${path}`;
  }

  /** rclone copies a file there and back, with the credentials of the file server. */
  async sync(password = CREDENTIALS.password): Promise<string> {
    const { folder } = this.place;
    const [file, config] = [join(folder, "file"), join(folder, "rclone.conf")];
    writeFileSync(file, TEXT);
    const pass = execFileSync("rclone", ["obscure", password], { encoding: "utf8" }).trim();
    // A name that every resolver knows.
    const url = `https://localhost:${this.port}/dav`;
    const remote = `[it]\ntype = webdav\nurl = ${url}\nvendor = other\nuser = ${CREDENTIALS.user}\npass = ${pass}\n`;
    writeFileSync(config, remote, { mode: 0o600 });
    const rclone = (...args: readonly string[]): Promise<void> =>
      runUnseen("rclone", ["--config", config, "--no-check-certificate", "--retries", "1", ...args]);
    await rclone("copyto", file, "it:a folder/file");
    return execFileSync("rclone", ["--config", config, "--no-check-certificate", "cat", "it:a folder/file"], {
      encoding: "utf8",
    });
  }

  async stop(): Promise<void> {
    for (const end of this.ends.reverse()) await end();
  }

  private async begin({ portalUrl, access, portalPath }: HouseholdOptions): Promise<void> {
    const place = (this.place = await Place.make(`*.${DOMAIN}`));
    this.ends.push(() => place.remove());
    const wiki = await this.startPages();
    const dav = await this.startDav();
    const [httpPort, httpsPort] = (await freePorts(2)) as [number, number];
    const { folder, certificate, key } = place;
    const material = TlsMaterial.fromFiles({ certificate, key, dhparam: join(folder, "dh.pem") });
    const front = new FrontEnd(new TerraformStack(Testing.app(), "stack"), "front", {
      host: { address: "127.0.0.1", publicName: `auth.${DOMAIN}` },
      mode: Mode.tls({ address: "127.0.0.1", httpPort, httpsPort, material }),
      paths: { logDirectory: join(folder, "logs"), defaultPageDirectory: folder },
      // All clients are on this host, which a guard refuses unless a proxy may name them.
      proxy: { workers: 2, trustedProxies: ["127.0.0.1"] },
      service: { runtimeBundle: await sharedBundle() },
      passwordGuard: {},
    });
    front.addSite("auth", { serverNames: [`auth.${DOMAIN}`], application: Application.server(portalUrl) });
    const sites = [
      front.addSite("wiki", {
        serverNames: [`wiki.${DOMAIN}`],
        application: Application.server(wiki),
        access,
      }),
      front.addSite("files", {
        serverNames: [`files.${DOMAIN}`, "localhost"],
        application: files(wiki, dav),
        access,
      }),
    ];
    const portal = front.proxy.addUpstream("portal", { url: portalUrl });
    if (portalPath !== undefined)
      for (const site of sites)
        site.addRoute("portal", {
          path: portalPath,
          action: Action.proxy(portal, { hostHeader: "client" }),
          access: "open",
        });
    mkdirSync(join(folder, "logs"));
    const config = join(folder, "portico.json");
    writeFileSync(config, proxyConfigText(front.proxy.config));
    this.port = httpsPort;
    const command = [process.execPath, await sharedBundle(), "serve", config];
    this.ends.push((await startProcess({ command, ports: [httpsPort] })).stop);
  }

  private async startPages(): Promise<string> {
    const pages: Server = createServer(({ headers }, response) => {
      this.got.push(headers);
      response.writeHead(200, { "Content-Type": "text/html" }).end("<h1>inside</h1>");
    });
    pages.listen(0, "127.0.0.1");
    await once(pages, "listening");
    this.ends.push(() => {
      pages.close();
      pages.closeAllConnections();
    });
    return `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  }

  private async startDav(): Promise<string> {
    const [port] = await freePorts(1);
    const served = join(this.place.folder, "served");
    mkdirSync(served);
    const { user, password } = CREDENTIALS;
    const where = ["--addr", `127.0.0.1:${port}`, "--baseurl", "/dav", "--config", "/dev/null"];
    const command = ["rclone", "serve", "webdav", served, ...where, "--user", user, "--pass", password];
    // It ends by the signal, which its shell says by a code.
    const { stop } = await startProcess({ command, ports: [port!] });
    this.ends.push(() => stop().catch(() => undefined));
    return `http://127.0.0.1:${port}`;
  }
}

export const TEXT = "what the sync client has";

const files = (web: string, webdav: string): Application<object, object> =>
  Application.custom({
    name: "files",
    title: "Files",
    parts: {
      web: { title: "web interface", url: web, liveness: { path: "/", status: 200 } },
      webdav: { title: "WebDAV server", url: webdav, liveness: { path: "/dav/", status: 401 } },
    },
    main: "web",
    routes: () => ({
      web: { path: "/", action: { type: "proxy", upstream: "web" } },
      webdav: { path: "/dav", action: { type: "proxy", upstream: "webdav", hostHeader: "client" } },
    }),
    clients: {
      builtIn: [],
      withCredentials: ["/dav"],
      logIns: [{ path: "/dav", match: "segment", secret: "authorization", failed: [401] }],
    },
  }) as Application<object, object>;
