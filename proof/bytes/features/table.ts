import type { ProxyConfigInput, RouteInput, UpstreamInput } from "../../../src/model/index.js";
import type { Random } from "../../../testkit/random.js";
import type { Carrier } from "../case.js";
import { HOME, USER_FIELD } from "./closed.js";

/**
 * The features of the proxy that change what a request gets, or when. Each is data: what it changes in the config, which
 * servers it needs, and what happens meanwhile. `laws.ts` says what an exchange may get while something happens.
 */

export interface Parts {
  readonly upstream: Partial<UpstreamInput>;
  /** The route of the upstream. */
  readonly proxied: Partial<RouteInput>;
  /** Its action. */
  readonly action: { readonly rewrite?: string };
  /** The route of the files. */
  readonly files: Partial<RouteInput>;
  /** Its action. */
  readonly fileAction: { readonly precompressed?: ("zstd" | "br" | "gzip")[] };
  readonly server: Partial<ProxyConfigInput["virtualServers"][number]>;
  readonly config: Partial<ProxyConfigInput>;
  /** The access policy of both routes; its file of users and the URL of its portal are the stage's. */
  readonly policy: Partial<NonNullable<ProxyConfigInput["accessPolicies"]>[string]>;
}

export type EventKind = "outage" | "unanswered" | "quiesce" | "maintenance" | "reload" | "upgrade";

interface Feature {
  readonly needs?: readonly FeatureName[];
  readonly excludes?: readonly FeatureName[];
  readonly parts?: (chance: Random) => Partial<Parts>;
  /** What its servers are reached over; default: TCP. */
  readonly carrier?: Carrier;
  readonly event?: EventKind;
}

export const FEATURE_NAMES = [
  ...(["hold", "several", "sticky", "quiesce", "maintenance", "errorPages", "precompressed"] as const),
  ...([
    "rewrite",
    "https",
    "unix",
    "unanswered",
    "reload",
    "upgrade",
    "access",
    "basic",
    "forwardAuth",
  ] as const),
  "guard",
] as const;
export type FeatureName = (typeof FEATURE_NAMES)[number];

/** Longer than a server is away, on a busy machine too. */
const HOLD_MS = 8_000;
/** A part of the administrator's page that nothing else has. */
export const PAGE_MARK = "the-page-of-the-administrator";
export const SESSION = "sid";
export const REWRITTEN = "/in%20side/deep";

export const FEATURES: Readonly<Record<FeatureName, Feature>> = {
  hold: { excludes: ["several"], event: "outage", parts: () => ({ upstream: { holdMs: HOLD_MS } }) },
  several: {
    event: "outage",
    parts: (chance) => ({
      upstream: { balance: chance.of("roundRobin", "leastConnections", "clientAddress") },
    }),
  },
  sticky: {
    needs: ["several"],
    parts: (chance) => ({
      upstream: { sticky: chance.is(0.5) ? { cookie: SESSION } : { applicationCookie: SESSION } },
    }),
  },
  quiesce: { event: "quiesce" },
  maintenance: { event: "maintenance", parts: () => ({ config: { maintenance: { graceMs: LONG_MS } } }) },
  errorPages: {
    parts: () => ({
      server: {
        errorPages: [{ statuses: [502, 503, 504], html: `<p>${PAGE_MARK} {{status}} {{requestId}}</p>` }],
      },
    }),
  },
  precompressed: { parts: () => ({ fileAction: { precompressed: ["zstd", "br", "gzip"] } }) },
  rewrite: { parts: () => ({ action: { rewrite: REWRITTEN } }) },
  https: { carrier: "https" },
  unix: { carrier: "unix" },
  unanswered: { event: "unanswered" },
  reload: { event: "reload" },
  upgrade: { event: "upgrade" },
  access: {
    parts: () => ({ config: { trustedProxies: ["127.0.0.1"] }, policy: { allow: [HOME] } }),
  },
  basic: { parts: () => ({ policy: { basic: { usersFile: "", userField: USER_FIELD } } }) },
  forwardAuth: {
    excludes: ["basic"],
    parts: (chance) => ({
      policy: {
        forwardAuth: { url: "", copyFields: [USER_FIELD], convention: chance.of("traefik", "nginx") },
      },
    }),
  },
  // Each request may try a secret, and none is wrong: bodies are held, or pass as they are too long, and nothing is refused.
  guard: {
    parts: () => ({
      config: {
        trustedProxies: ["127.0.0.1"],
        passwordGuards: { all: { wrongSecretsMax: 40, slowAfter: 40 } },
      },
      server: {
        passwordGuard: "all",
        logIns: [{ path: "/web", match: "segment", secret: "body", failed: [418] }],
      },
    }),
  },
};

/** Tunnels stay open for so long. */
const LONG_MS = 60_000;

/** Whether features can be in one config; those that they need are added by {@link completed}. */
export const fit = (names: readonly FeatureName[]): boolean => {
  const all = completed(names);
  return all.every((name) => (FEATURES[name].excludes ?? []).every((other) => !all.includes(other)));
};

/** With the features that they need. */
export const completed = (names: readonly FeatureName[]): FeatureName[] => [
  ...new Set(names.flatMap((name) => [...(FEATURES[name].needs ?? []), name])),
];

export type Pair = readonly [FeatureName, FeatureName];

/** Every two features that can be in one config. */
export const PAIRS: readonly Pair[] = FEATURE_NAMES.flatMap((one, i) =>
  FEATURE_NAMES.slice(i + 1).flatMap((other) => (fit([one, other]) ? [[one, other] as const] : [])),
);

export const pairsOf = (names: readonly FeatureName[]): Pair[] =>
  PAIRS.filter(([one, other]) => names.includes(one) && names.includes(other));
