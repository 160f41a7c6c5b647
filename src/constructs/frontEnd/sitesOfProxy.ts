import { Construct } from "constructs";
import { formatProblem, problem } from "../../model/index.js";
import { renderDefaultPage } from "../../render/index.js";
import type { AccessOption } from "../proxy/access.js";
import type { PasswordGuardOption } from "../proxy/passwordGuard.js";
import { Action } from "../proxy/action.js";
import type { Listener } from "../proxy/listener.js";
import type { Mode } from "../proxy/mode.js";
import { refuse } from "../props/checks.js";
import type { ReverseProxyBase } from "../proxy/reverseProxyBase.js";
import type { VirtualServer } from "../proxy/virtualServer.js";
import type { FrontEndListeners } from "./parts.js";
import { addDefaultServer, isPageServed, respondsToAnyName } from "./servers.js";
import { Site, takenNameProblems } from "./site.js";
import type { OwnSiteOptions, SiteProps } from "./siteProps.js";

/** The sites of a front end, on a host or in containers, and what responds for other names. */
export abstract class SitesOfProxy<
  Upstreams extends object,
  Routes extends object,
  Settings extends Construct,
> extends Construct {
  /** Whether clients use plain HTTP or TLS. */
  abstract readonly mode: Mode;
  /** The proxy that the sites belong to. */
  abstract readonly proxy: ReverseProxyBase;
  /** The listeners of the proxy for all sites. */
  abstract readonly listeners: FrontEndListeners;
  private readonly allSites: Site[] = [];
  private ownSite?: Site<Upstreams, Routes, Settings>;
  private ownDefault?: VirtualServer;

  /**
   * Adds a site with names of its own, and returns the site. Its upstreams, log files, expected responses, settings files
   * and rows of `portico doctor` have the site's id in their names. In containers, each server needs a URL that containers
   * reach.
   *
   * @param id name of the site; letters, digits, `.`, `_` and `-`
   */
  addSite<U extends object, R extends object, S extends Construct>(
    id: string,
    props: SiteProps<U, R, S>,
  ): Site<U, R, S> {
    return this.add(new Site(this, id, props));
  }

  /** The sites, in the order in which they were added; that of `application` is the first. */
  get sites(): readonly Site[] {
    return this.allSites;
  }

  /** The site of `application`, which on a host has the host's names. Throws without `application`. */
  get site(): Site<Upstreams, Routes, Settings> {
    const { ownSite, node } = this;
    if (ownSite === undefined) {
      const more = {
        allowed: "`site` of a front end with `application`",
        fix: "Use the site that `addSite` returns.",
      };
      const message = "does not exist: the front end has no `application`";
      refuse([problem("config.unknown-reference", `${node.path}.site`, message, more)]);
    }
    return ownSite!;
  }

  /** Responds for names that no site has. Throws where the application does so, and there is no HTTP port. */
  get defaultServer(): VirtualServer {
    const { ownDefault, node } = this;
    if (ownDefault === undefined) {
      const fix =
        "Use `site.virtualServer`, which responds to every name, or leave out `httpPort: false` of the mode.";
      const more = { allowed: "a front end with an HTTP port", fix };
      const path = `${node.path}.defaultServer`;
      refuse([problem("config.unknown-reference", path, "does not exist with `httpPort: false`", more)]);
    }
    return ownDefault!;
  }

  /** The HTTPS listener on IPv4, equal to `listeners.https`. Throws in plain mode. */
  get httpsListener(): Listener {
    const { listeners, node } = this;
    if (listeners.https === undefined) {
      const fix = "Use `listeners.http`, or set `mode: Mode.tls()` of the front end.";
      const more = { allowed: "a front end with `mode: Mode.tls()`", fix };
      const path = `${node.path}.httpsListener`;
      refuse([problem("config.unknown-reference", path, "does not exist in plain mode", more)]);
    }
    return listeners.https!;
  }

  /**
   * @internal Adds the default server, and the site of the front end's application, if there is one.
   *
   * @returns HTML of the default server's page; undefined where requests for other names get 404
   */
  protected addOwnSite(
    props: OwnSiteProps<Upstreams, Routes, Settings>,
    pageDirectory: string,
  ): string | undefined {
    const { application, defaultPage } = props;
    const { access, passwordGuard: guard } = props;
    if (access !== undefined) this.proxy.access = { name: "front end", access };
    if (guard !== undefined) this.proxy.guard = { name: "front end", guard };
    const page = Action.staticFiles(pageDirectory, { index: ["index.html"] });
    const hasPage = application !== undefined && respondsToAnyName({ application: application.definition });
    this.ownDefault = addDefaultServer(this.proxy, this.listeners, hasPage ? page : undefined);
    if (application === undefined) return undefined;
    const site = this.add(
      new Site(this, "Site", { ...props, application, access: undefined, passwordGuard: undefined }, page),
    );
    this.ownSite = site;
    this.node.addValidation({ validate: () => takenNameProblems(site, this.proxy).map(formatProblem) });
    const isServed = isPageServed({ ...props, application: application.definition, mode: this.mode });
    return isServed ? (defaultPage ?? renderDefaultPage(site.linked)) : undefined;
  }

  private add<U extends object, R extends object, S extends Construct>(site: Site<U, R, S>): Site<U, R, S> {
    this.allSites.push(site);
    return site;
  }
}

interface OwnSiteProps<
  Upstreams extends object,
  Routes extends object,
  Settings extends Construct,
> extends OwnSiteOptions<Upstreams, Routes, Settings> {
  readonly serverNames: readonly string[];
  readonly access?: AccessOption;
  readonly passwordGuard?: PasswordGuardOption;
}
