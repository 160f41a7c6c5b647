import type { Construct } from "constructs";
import type { ApplicationDefinition, PublicPlace } from "../../applications/index.js";
import type { IHost } from "../host/host.js";
import type { Mode } from "../proxy/mode.js";
import type { IUpstream } from "../proxy/upstream.js";

/** @internal An application as one site has it. */
export interface SiteApplication<Settings> {
  readonly definition: ApplicationDefinition;
  /** Directories of the application that have its secrets. */
  readonly secretPlaces?: readonly string[];
  /** Whether the caller has chosen the URLs of all servers. */
  readonly hasGivenUrls?: boolean;
  /** Adds what the application has on the host: texts for its settings, and units. */
  readonly addSettings: (site: HostedSite) => Settings;
}

/** @internal A site on a host, for settings of its application. */
export interface HostedSite {
  readonly scope: Construct;
  readonly host: IHost;
  readonly mode: Mode;
  readonly serverNames: readonly [string, ...string[]];
  readonly place: PublicPlace;
  readonly upstreams: Readonly<Record<string, IUpstream>>;
  /** Directory on the host for the texts. */
  readonly directory: string;
  readonly unitDirectory: string;
}
