import type { Construct } from "constructs";
import type { ApplicationDefinition, PublicPlace } from "../../applications/index.js";
import { type Problem, problem } from "../../model/index.js";
import type { SiteApplication } from "../application/siteApplication.js";
import type { Mode } from "../proxy/mode.js";
import { refuse } from "../props/checks.js";
import { isKnown } from "../props/tokens.js";
import { ReverseProxy } from "../proxy/reverseProxy.js";
import type { ReverseProxyBase } from "../proxy/reverseProxyBase.js";
import type { Upstream } from "../proxy/upstream.js";
import type { ActivatedApplication } from "./activation.js";
import type { UpstreamChanges } from "./servers.js";

/** @internal An application where a front end has it: at a site, or below a path of a site. */
export interface PlacedApplication {
  /** Path of the construct that has the application. */
  readonly at: string;
  readonly upstreams: Readonly<Record<string, Upstream>>;
  /** Upstreams whose URL is the application's default. */
  readonly defaultUrls: readonly Upstream[];
  /** The application as the front end's activation needs it. */
  readonly activated: ActivatedApplication;
}

interface PlaceInput<Settings> {
  /** The application as its author made it. */
  readonly own: SiteApplication<Settings>;
  /** The same, with its names on this host. */
  readonly application: ApplicationDefinition;
  readonly upstreams: UpstreamChanges | undefined;
  readonly serverNames: readonly [string, ...string[]];
  readonly made: {
    readonly place: PublicPlace;
    readonly upstreams: Readonly<Record<string, Upstream>>;
  };
  /** Name of a further site. */
  readonly site: string | undefined;
  /** Folder of the settings' texts in that of the host; undefined for that of the host. */
  readonly directory: string | undefined;
}

/** @internal What a placed application belongs to. */
export interface PlacedScope {
  readonly mode: Mode;
  readonly proxy: ReverseProxyBase;
  readonly sites: readonly { readonly placed: readonly PlacedApplication[] }[];
}

/** @internal Adds what an application has beside its servers, and refuses what another application has already. */
export function placeApplication<Settings>(
  scope: Construct,
  { mode, proxy, sites }: PlacedScope,
  { own, application, upstreams, serverNames, made, site, directory }: PlaceInput<Settings>,
): { readonly settings?: Settings; readonly placed: PlacedApplication } {
  const isGiven = (name: string): boolean =>
    own.hasGivenUrls === true ||
    upstreams?.[name]?.url !== undefined ||
    upstreams?.[name]?.servers !== undefined;
  const onHost = proxy instanceof ReverseProxy ? proxy : undefined;
  const settings =
    onHost &&
    own.addSettings({
      ...{ scope, host: onHost.host, mode, serverNames, ...made },
      unitDirectory: onHost.paths.unitDirectory,
      directory: [onHost.paths.settingsDirectory, ...(directory === undefined ? [] : [directory])].join("/"),
    });
  const placed: PlacedApplication = {
    at: scope.node.path,
    upstreams: made.upstreams,
    defaultUrls: Object.entries(made.upstreams).flatMap(([name, one]) => (isGiven(name) ? [] : [one])),
    // The service's files have values that its settings make.
    activated: { site, application, settings: application.settings?.(made.place) },
  };
  const files = (placed.activated.settings ?? []).map(({ path }) => path);
  onHost?.privateFiles.push(...(own.secretPlaces ?? []), ...files);
  refuse(sites.flatMap((one) => one.placed).flatMap((other) => sharedProblems(placed, other)));
  return { settings, placed };
}

/** @internal Throws: a front end in containers edits and prints no settings. */
export function refuseSettings(scope: Construct): never {
  const fix = "Set the public URL in the application: docs/applications.md describes its settings.";
  const more = { allowed: "a site of a `FrontEnd`", fix };
  const path = `${scope.node.path}.settings`;
  return refuse([problem("config.unknown-reference", path, "does not exist in containers", more)]) as never;
}

/** What only one application on a host can have: the address of a server, a settings file, a unit. */
const sharedProblems = (one: PlacedApplication, other: PlacedApplication): Problem[] => [
  ...sameAddress(one, other),
  ...same(one, other, {
    of: ({ settings = [] }) => settings.map(({ path }) => path),
    message: "edits a settings file that %s edits as well",
    fix: "Give each application its own directory.",
  }),
  ...same(one, other, {
    of: ({ application: { daemons = [] } }) => daemons.map(({ unit }) => unit),
    message: "restarts a unit that %s restarts as well",
    fix: "Give each application its own units.",
  }),
];

/** Two URLs that somebody chose may be the same; one that an application has by default is another server's by accident. */
function sameAddress(one: PlacedApplication, other: PlacedApplication): Problem[] {
  const rivals = Object.entries(other.upstreams);
  return Object.entries(one.upstreams).flatMap(([name, upstream]) => {
    const [rivalName, rival] = rivals.find(([, { url }]) => isKnown(url) && url === upstream.url) ?? [];
    if (rival === undefined) return [];
    if (!one.defaultUrls.includes(upstream) && !other.defaultUrls.includes(rival)) return [];
    const more = {
      received: upstream.url,
      allowed: "an address that no other application listens at",
      fix: `Give one of the two applications another port, and set it: \`upstreams: { ${name}: { url: "http://127.0.0.1:PORT" } }\`.`,
    };
    const message = `is also the address of \`${rivalName}\` of ${other.at}`;
    return [problem("config.duplicate-name", `${one.at}.upstreams.${name}.url`, message, more)];
  });
}

interface Sharing {
  readonly of: (activated: ActivatedApplication) => readonly string[];
  readonly message: string;
  readonly fix: string;
}

function same(one: PlacedApplication, other: PlacedApplication, { of, message, fix }: Sharing): Problem[] {
  const taken = of(other.activated);
  return of(one.activated)
    .filter((wanted) => isKnown(wanted) && taken.includes(wanted))
    .map((received) => {
      const more = { received, allowed: "what no other application has", fix };
      return problem("config.duplicate-name", `${one.at}.application`, message.replace("%s", other.at), more);
    });
}
