import { Random, seedOf } from "../../../testkit/random.js";
import { type Carrier, CLIENTS, type Exchange, type Pieces, READERS, type Reader } from "../case.js";
import { POOL_BYTES } from "../pool.js";
import { SIZES } from "../sizes.js";
import {
  completed,
  type EventKind,
  type FeatureName,
  FEATURES,
  fit,
  PAIRS,
  pairsOf,
  type Parts,
} from "./table.js";
import { closingsOf, type Visitor } from "./closed.js";

/** What is played: features together, what happens, and who uses the proxy meanwhile. Plain data, made from a seed. */
export interface Scene {
  readonly number: number;
  readonly features: readonly FeatureName[];
  readonly parts: Parts;
  readonly workers: number;
  /** One for each server of the upstream. */
  readonly carriers: readonly Carrier[];
  readonly events: readonly PlannedEvent[];
  readonly sessions: readonly Session[];
}

export interface PlannedEvent {
  readonly kind: EventKind;
  /** Milliseconds after the beginning. */
  readonly at: number;
  readonly forMs: number;
  /** Of the server that is concerned. */
  readonly server: number;
  /** An outage of a Unix socket: connects fail, or its listen queue is full, as of a server that hangs. */
  readonly away: "refuses" | "full";
}

/** One client, which plays exchanges one after the other until the scene ends. */
export interface Session extends Visitor {
  readonly client: (typeof CLIENTS)[number];
  readonly isBrowser: boolean;
  readonly windowBytes: number;
}

/** So long clients begin exchanges. */
export const SCENE_MS = 1_800;
const SESSIONS = 9;

/** The scenes of a seed: in each round every pair of features is together in one of them at least. */
export function* scenes(seed: number): Generator<Scene> {
  for (let number = 0, round = 0; ; round++) {
    const chance = new Random(seedOf(seed, ~round));
    const left = new Set(chance.shuffled(PAIRS));
    for (const pair of left) {
      if (!left.has(pair)) continue;
      const features = withMore(chance, completed(pair), left);
      for (const covered of pairsOf(features)) left.delete(covered);
      yield sceneOf(seed, number++, features);
    }
  }
}

/** A scene of given features. */
export function sceneOf(seed: number, number: number, features: readonly FeatureName[]): Scene {
  const chance = new Random(seedOf(seed, number));
  const several = features.includes("several");
  const carriers = features.flatMap((name) => FEATURES[name].carrier ?? []);
  const servers = several ? chance.of(2, 3) : 1;
  return {
    number,
    features,
    parts: partsOf(chance, features),
    workers: chance.of(1, 2),
    carriers: Array.from({ length: servers }, (_, i) =>
      carriers.length === 0 ? "http" : i < carriers.length ? carriers[i]! : chance.of(...carriers, "http"),
    ),
    events: features.flatMap((name) => eventsOf(chance, FEATURES[name].event, servers)),
    sessions: Array.from({ length: SESSIONS }, (_, i) => ({
      client: CLIENTS[i % CLIENTS.length]!,
      isBrowser: chance.is(0.5),
      windowBytes: chance.of(65_535, 16_384, 1_048_576),
      seed: chance.pick(2 ** 30),
      keptOutBy: chance.is(0.4) ? chance.of(...closingsOf(features)) : undefined,
    })),
  };
}

function eventsOf(chance: Random, kind: EventKind | undefined, servers: number): PlannedEvent[] {
  if (kind === undefined) return [];
  const count = kind === "reload" || kind === "maintenance" ? chance.of(1, 2) : 1;
  const step = SCENE_MS / count;
  return Array.from({ length: count }, (_, i) => ({
    kind,
    at: Math.floor(step * i + chance.part() * step * 0.5),
    forMs: Math.floor(step * (0.1 + chance.part() * 0.4)),
    server: chance.pick(servers),
    away: chance.of("refuses", "full"),
  }));
}

function partsOf(chance: Random, features: readonly FeatureName[]): Parts {
  const parts: Record<keyof Parts, object> = {
    ...{
      upstream: {},
      proxied: {},
      action: {},
      files: {},
      fileAction: {},
      server: {},
      config: {},
      policy: {},
    },
  };
  for (const name of features)
    for (const [part, more] of Object.entries(FEATURES[name].parts?.(chance) ?? {}))
      parts[part as keyof Parts] = { ...parts[part as keyof Parts], ...(more as object) };
  return parts as unknown as Parts;
}

/** Up to two more features, those that make most pairs that are left. */
function withMore(
  chance: Random,
  features: readonly FeatureName[],
  left: ReadonlySet<unknown>,
): FeatureName[] {
  let all = [...features];
  for (let more = chance.of(0, 1, 2); more > 0 && all.length < FEATURES_MAX; more--) {
    const news = (names: readonly FeatureName[]): number =>
      pairsOf(names).filter((pair) => left.has(pair)).length;
    const others = chance
      .shuffled(Object.keys(FEATURES) as FeatureName[])
      .filter((name) => !all.includes(name) && fit([...all, name]))
      .map((name) => completed([...all, name]))
      .filter((names) => names.length <= FEATURES_MAX)
      .sort((a, b) => news(b) - news(a));
    all = others[0] ?? all;
  }
  return all;
}

const FEATURES_MAX = 4;

/** Bodies whose transfer is seen by what happens, and small ones. */
const LARGE = [1_048_576, 1_500_000];

/** The next exchange of a session. */
export function exchangeOf(chance: Random, client: Session["client"]): Exchange {
  const transfer = chance.of("download", "download", "upload", "upload", "both", "tunnel");
  const responder = transfer === "download" && chance.is(0.4) ? "file" : "http";
  const size = (): number =>
    chance.is(0.2) ? chance.of(...LARGE) : chance.of(chance.upTo(20_000), chance.of(...SMALL));
  const [up, down] = [transfer === "download" ? 0 : size(), transfer === "upload" ? 0 : size()];
  const at = (length: number): number => chance.pick(POOL_BYTES - length);
  const framing = transfer === "tunnel" ? "none" : chance.of("length", "chunked");
  // The reader of an upload is a server, which ends by an event or not at all.
  const readers = READERS.filter((reader) => reader !== "leaving" || transfer !== "upload");
  const reader: Reader = chance.of("fast", "fast", "fast", ...readers);
  const file = chance.of(...FILE_SIZES);
  return {
    ...{ client, responder, transfer, reader },
    framing: responder === "file" ? "length" : framing,
    ...{ up, upAt: at(up), leavesAt: chance.part(), pieces: piecesOf(chance, Math.max(up, down)) },
    ...(responder === "file" ? { down: file, downAt: 0 } : { down, downAt: at(down) }),
  };
}

const SMALL = SIZES.filter((size) => size <= 262_145);
export const FILE_SIZES = [3_000, 65_537, 600_000] as const;

function piecesOf(chance: Random, bytes: number): Pieces {
  const kind = chance.of("whole", "turn", "apart", "mixed");
  return { kind, bytes: Math.max(chance.of(1_000, 16_384, 65_536), Math.ceil(bytes / 300)) };
}
