import { Random, SEED } from "../../../testkit/random.js";
import { Pool } from "../pool.js";
import { Running } from "../running.js";
import type { Closing } from "./closed.js";
import type { Happening } from "./events.js";
import { judge, type Played, Sessions } from "./laws.js";
import { play } from "./play.js";
import { exchangeOf, type PlannedEvent, type Scene, sceneOf, scenes } from "./scene.js";
import { FEATURE_NAMES, FEATURES, type FeatureName, fit, PAGE_MARK, PAIRS, pairsOf } from "./table.js";

/** `npm run features` plays many scenes; here, that scenes are what they say, that the judge sees what is wrong, and one. */

function round(seed: number): Scene[] {
  const left = new Set(PAIRS);
  const all: Scene[] = [];
  for (const scene of scenes(seed)) {
    if (left.size === 0) break;
    for (const pair of pairsOf(scene.features)) left.delete(pair);
    all.push(scene);
  }
  return all;
}

describe("scenes", () => {
  test("of a round have two to four features that fit, and every pair", () => {
    for (const seed of [SEED, SEED + 1, SEED + 2]) {
      const all = round(seed);
      expect(all.length).toBeLessThan(PAIRS.length / 2);
      for (const { features } of all) {
        expect(fit(features)).toBe(true);
        expect(features.length).toBeGreaterThanOrEqual(2);
        expect(features.length).toBeLessThanOrEqual(4);
      }
    }
  });

  test("depend only on seed and number", () => {
    const [first, second] = round(SEED);
    expect(sceneOf(SEED, 1, second!.features)).toEqual(second);
    expect(sceneOf(SEED + 1, 0, first!.features)).not.toEqual(first);
  });

  test("leave out only what excludes each other", () => {
    const all = FEATURE_NAMES.flatMap((one, i) => FEATURE_NAMES.slice(i + 1).map((other) => [one, other]));
    const excluded = all.filter((pair) => !PAIRS.some((one) => one.join() === pair.join()));
    expect(excluded).toEqual([
      ["hold", "several"],
      ["hold", "sticky"],
      ["basic", "forwardAuth"],
    ]);
    expect(Object.keys(FEATURES)).toHaveLength(FEATURE_NAMES.length);
  });
});

describe("the judge", () => {
  const pool = new Pool(SEED);
  const upload = {
    ...exchangeOf(new Random(1), "http"),
    responder: "http",
    transfer: "upload",
    framing: "length",
  } as const;
  const whole = { ...upload, reader: "fast", up: 100, upAt: 5, down: 0, downAt: 0 } as const;

  interface Shown {
    readonly status?: number;
    readonly fields?: Record<string, string | string[]>;
    readonly text?: string;
    readonly arrivals?: readonly string[];
    /** Fields that the upstream got. */
    readonly got?: Record<string, string>;
    readonly cookie?: string;
    readonly isBrowser?: boolean;
    readonly keptOutBy?: Closing;
    readonly times?: readonly [number, number];
  }

  function played({ status, fields = {}, text = "", times = [100, 200], ...more }: Shown): Played {
    const running = new Running("1", whole, pool, 16_384);
    const [begun, over] = times;
    if (status !== undefined) running.head = { status, fields, at: over, text };
    if (status === 200) running.up.take(pool.part(5, 100));
    running.up.ended = true;
    if (status !== undefined && status !== 200) running.faults.push(`status ${status}`);
    const places = more.arrivals ?? (status === 503 ? [] : ["server0"]);
    for (const server of places)
      running.arrivals.push({ server, target: "/web/1", at: begun + 1, fields: more.got ?? {} });
    const session = {
      client: "http",
      isBrowser: more.isBrowser === true,
      keptOutBy: more.keptOutBy,
      windowBytes: 1,
      seed: 1,
    } as const;
    return { running, session, path: "/web/1", file: undefined, cookie: more.cookie, begun, over };
  }

  const happening = (kind: PlannedEvent["kind"], times: Partial<Happening> = {}): Happening => ({
    event: { kind, at: 0, forMs: 0, server: 0, away: "refuses" },
    ...{ mayFrom: 50, mayUntil: 300, mustFrom: 60, mustUntil: 290, ...times },
  });
  const own = { "content-location": "http://h/web/1" };
  const paused = { "retry-after": "10", vary: "Accept", "cache-control": "no-store" };
  const features = (...names: FeatureName[]): Scene => sceneOf(SEED, 0, names);

  test.each<[string, Shown, Happening[], Scene, RegExp[]]>([
    ["a response", { status: 200, fields: own }, [], features("reload"), []],
    [
      "a refusal without a reason",
      { status: 503, fields: paused },
      [],
      features("reload"),
      [/^status 503/, /^upload: cut/],
    ],
    [
      "a refusal in time",
      { status: 503, fields: paused },
      [happening("maintenance")],
      features("maintenance"),
      [],
    ],
    [
      "a refusal before that",
      { status: 503, fields: paused },
      [happening("maintenance", { mayFrom: 201 })],
      features("maintenance"),
      [/^status 503/, /^upload: cut/],
    ],
    [
      "a response in that time",
      { status: 200, fields: own },
      [happening("quiesce")],
      features("quiesce"),
      [/^200 during quiesce/, /got a write/],
    ],
    ["a 502 of an end", { status: 502 }, [happening("outage", { mayFrom: 150 })], features("hold"), []],
    [
      "a 502 while it is away",
      { status: 502 },
      [happening("outage", { mayFrom: -500 })],
      features("hold"),
      [/^status 502/, /^upload: cut/],
    ],
    [
      "an upload that was sent twice",
      { status: 200, fields: own, arrivals: ["server0", "server1"] },
      [],
      features("several"),
      [/^sent 2 times/],
    ],
    [
      "the target of a rewrite",
      { status: 200, fields: own },
      [],
      features("rewrite"),
      [/^the upstream got \/web\/1 for/],
    ],
    [
      "another page",
      { status: 503, fields: paused, isBrowser: true },
      [happening("maintenance")],
      features("maintenance", "errorPages"),
      [/^503 with another page/],
    ],
    [
      "the page for a program",
      { status: 503, fields: paused, text: `${PAGE_MARK} 503` },
      [happening("maintenance")],
      features("maintenance", "errorPages"),
      [/^503 with the page/],
    ],
    [
      "the refusal of a stranger, in a maintenance too",
      { status: 403, keptOutBy: "access", arrivals: [] },
      [happening("maintenance")],
      features("access", "maintenance"),
      [],
    ],
    [
      "a stranger that came in",
      { status: 200, fields: own, keptOutBy: "access" },
      [],
      features("access"),
      [/^200 for a stranger/, /^server0 got/],
    ],
    [
      "a password that reaches the upstream, and a name that the client made up",
      {
        status: 200,
        fields: own,
        got: { "remote-user": "alice", remote_user: "mallory", authorization: "x" },
      },
      [],
      features("basic"),
      [/^the upstream got the user alice,mallory for alice/, /a password$/],
    ],
    [
      "the portal's cookie of another request",
      {
        status: 200,
        fields: { ...own, "set-cookie": ["portal=user1; Path=/web/2"] },
        got: { "remote-user": "user1" },
      },
      [],
      features("forwardAuth"),
      [/^200 with the portal's cookies portal=user1; Path=\/web\/2/],
    ],
  ])("of %s", (_, shown, happenings, scene, faults) => {
    const found = judge(played(shown), happenings, scene);
    expect(found).toEqual(faults.map((fault) => expect.stringMatching(fault)));
  });

  test("of a session that moves, though its server has not ended", () => {
    const sessions = new Sessions(features("sticky"));
    const at = (server: string) => played({ status: 200, cookie: "a", arrivals: [server] });
    expect(sessions.judge(at("server1"), [])).toEqual([]);
    expect(sessions.judge(at("server0"), [])).toEqual([
      expect.stringMatching(/^a session of server1 is at server0/),
    ]);
    expect(sessions.judge(at("server1"), [])).toEqual([]);
    const outage = happening("outage");
    const ended = { ...outage, event: { ...outage.event, server: 1 } };
    expect(sessions.judge(at("server0"), [ended])).toEqual([]);
  });
});

test("a scene breaks no law", async () => {
  const [scene] = round(SEED);
  const { faults, exchanges } = await play(scene!, new Pool(SEED));
  expect([scene!.features, faults]).toEqual([scene!.features, []]);
  expect(exchanges).toBeGreaterThan(9);
}, 120_000);
