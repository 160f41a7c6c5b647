import { Agent } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { connectTo, isComplete } from "../../testkit/peers.js";
import { childrenOf } from "../../testkit/processes.js";
import { eventually } from "../../testkit/waiting.js";
import { type Asking, Tally } from "./client.js";
import { NAMES, recipe, type ServerName } from "./servers.js";
import { stageOf } from "./stage.js";

/** Connections that a server closes: because they were idle, because it restarts, because it is gone. */

const stage = stageOf(NAMES);
const KEEPING = NAMES.filter((name) => recipe(name).keepsConnections);
const GUNICORNS = NAMES.filter((name) => name.startsWith("gunicorn"));
/** Connections of a server that are idle for different times. */
const TIMES = 24;

/** Runs the same against several servers at once: most of it is waiting. */
async function each<T>(
  names: readonly ServerName[],
  does: (name: ServerName) => Promise<T>,
): Promise<Record<string, T>> {
  return Object.fromEntries(await Promise.all(names.map(async (name) => [name, await does(name)] as const)));
}

const problemsOf = ({ errors, foreign }: Tally): string[] => [...errors, ...foreign];
const none = (names: readonly ServerName[]): Record<string, string[]> =>
  Object.fromEntries(names.map((name) => [name, []]));

/**
 * Opens connections at once, and then asks on one after the other, each when it was idle for another time.
 *
 * @param ms how long a request takes: long enough that the next one finds another connection
 */
async function askWhenIdle(
  tally: Tally,
  idleMs: { from: number; to: number },
  ms: number,
  asking: () => Asking,
) {
  await Promise.all(Array.from({ length: TIMES }, () => tally.ask(ms)));
  const start = Date.now();
  const asked = [];
  for (let i = 0; i < TIMES; i++) {
    await sleep(start + idleMs.from + ((idleMs.to - idleMs.from) * i) / (TIMES - 1) - Date.now());
    asked.push(tally.ask(ms, asking()));
  }
  await Promise.all(asked);
}

test("a connection that the server closes while a request is on its way costs no request that may be sent again", async () => {
  const opened = await each(KEEPING, async (name) => {
    const agent = new Agent({ keepAlive: true });
    const tally = new Tally(stage().port, `${name}-kept`);
    const all = (ms: number): Promise<unknown> =>
      Promise.all(Array.from({ length: 8 }, () => tally.ask(ms, { agent })));
    await all(200);
    return { agent, tally, all };
  });
  // To the front end it is as if both came in the same moment, the request first.
  await stage().whileStopped(async () => {
    const asked = Object.values(opened).map(({ all }) => all(0));
    // Two seconds, and one more for gunicorn, which looks once a second, and for Node.
    await sleep(3_300);
    return asked;
  });
  const problems = each(KEEPING, async (name) => {
    const { agent, tally } = opened[name]!;
    agent.destroy();
    return problemsOf(tally);
  });
  expect(await problems).toEqual(none(KEEPING));
});

test("by default the front end closes idle connections first, so that no request is lost that may not be sent again", async () => {
  const tallies = await each(KEEPING, async (name) => {
    const tally = new Tally(stage().port, name);
    await askWhenIdle(tally, { from: 1_300, to: 2_100 }, 100, () => ({
      method: "POST",
      body: [Buffer.from("posted")],
    }));
    return problemsOf(tally);
  });
  expect(tallies).toEqual(none(KEEPING));
});

test("gunicorn starts its workers anew and no request that may be sent again is lost", async () => {
  const tallies = await each(GUNICORNS, async (name) => {
    const { pid } = stage().server(name);
    const before = new Set(childrenOf(pid));
    const tally = new Tally(stage().port, name);
    let isOver = false;
    const asking = tally.hammer(2, () => isOver);
    await sleep(100);
    process.kill(pid, "SIGHUP");
    await eventually(() => childrenOf(pid).every((child) => !before.has(child)), "for other workers", {
      everyMs: 100,
    });
    await sleep(100);
    isOver = true;
    await asking;
    // The front end sends nothing twice that may have reached a server on a new connection (decisions 4.5).
    return recipe(name).dropsAtReload === true ? tally.foreign : problemsOf(tally);
  });
  expect(tallies).toEqual(none(GUNICORNS));
});

test.each(NAMES)(
  "%s is killed: what it was sending is cut off, and once it is back all is well",
  async (name) => {
    const server = stage().server(name);
    const tally = new Tally(stage().port, name);
    let isOver = false;
    const asking = tally.hammer(2, () => isOver);
    const reader = await connectTo(stage().port);
    reader.send(`GET /${name}/pieces?count=1000&ms=20 HTTP/1.1\r\nHost: localhost\r\n\r\n`);
    await reader.receives("piece 2");
    await server.kill();
    await sleep(50);
    await server.begin();
    isOver = true;
    await asking;
    await reader.until(({ closed, ended }) => closed || ended);
    expect([isComplete(reader.received), tally.foreign]).toEqual([false, []]);
    // A request without a server gets 502, and a response that had begun is cut off.
    expect(tally.errors.filter((error) => error !== "502" && error !== "aborted")).toEqual([]);
    expect(tally.errors.length).toBeGreaterThan(0);

    const later = new Tally(stage().port, name);
    for (let i = 0; i < 5; i++) await later.ask(0);
    expect(problemsOf(later)).toEqual([]);
  },
);

test("nothing is left of it", () => stage().conserved());
