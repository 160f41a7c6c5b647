import type { UpstreamConfig } from "../../src/model/index.js";
import fc from "../../testkit/property.js";
import { ClientShares, type ConnectionUser } from "../../src/runtime/upstream/clientShares.js";

/** What each client may have of an upstream's connections and of the queue for them, and whose turn it is. */

const limits = (more: Partial<UpstreamConfig> = {}): UpstreamConfig =>
  ({
    connectionsMax: 8,
    queuedRequestsMax: 8,
    clientSharePercent: 75,
    queueTimeoutMs: 1_000,
    ...more,
  }) as UpstreamConfig;

/** An upstream's connections without the connections. */
class Play {
  readonly shares: ClientShares<string>;
  readonly refusals: string[] = [];
  readonly inUse: { user: ConnectionUser | undefined; name: string }[] = [];

  constructor(private readonly config: UpstreamConfig) {
    this.shares = new ClientShares(config);
  }

  /** A client's request. @returns whether it has a connection, waits, or is refused */
  ask(address: string, name: string, now = 0): "used" | "waits" | "refused" {
    const user = this.shares.userAt(address);
    if (this.shares.mayUse(user) && this.inUse.length < this.config.connectionsMax)
      return this.use(user, name);
    const refusal = this.shares.enqueue(user, name, now + this.config.queueTimeoutMs);
    if (refusal !== undefined) this.refusals.push(refusal);
    return refusal === undefined ? "waits" : "refused";
  }

  /** The first request that has a connection gets a response. @returns who has one in its place */
  respond(name = this.inUse[0]?.name): string | undefined {
    const at = this.inUse.findIndex((one) => one.name === name);
    const [done] = this.inUse.splice(at, 1);
    this.shares.unused(done!);
    const next = this.inUse.length < this.config.connectionsMax ? this.shares.next() : undefined;
    if (next === undefined) return undefined;
    this.shares.served(next);
    this.use(next.user, next.taker);
    return next.taker;
  }

  private use(user: ConnectionUser, name: string): "used" {
    const connection = { user: undefined, name };
    this.shares.used(connection, user);
    this.inUse.push(connection);
    return "used";
  }
}

test.each<[limits: Partial<UpstreamConfig>, used: number, waits: number]>([
  [{}, 6, 6],
  [{ clientSharePercent: 100 }, 8, 8],
  [{ connectionsMax: 1 }, 1, 6],
  [{ connectionsMax: 2, queuedRequestsMax: 1 }, 1, 1],
  [{ connectionsMax: 3, queuedRequestsMax: 0 }, 2, 0],
  [{ clientSharePercent: 1 }, 1, 1],
])("of %j one client has %i connections, and %i places in the queue", (more, used, waits) => {
  const play = new Play(limits(more));
  const outcomes = Array.from({ length: 20 }, (_, i) => play.ask("192.0.2.1", `a${i}`));
  const count = (what: string): number => outcomes.filter((outcome) => outcome === what).length;
  expect([count("used"), count("waits")]).toEqual([used, waits]);
});

test("a network of IPv6 addresses is one client, and its refusals say what it has", () => {
  const play = new Play(limits());
  const outcomes = Array.from({ length: 13 }, (_, i) => play.ask(`2001:db8:1:${i + 1}::1`, `a${i}`));
  expect(outcomes.at(-1)).toBe("refused");
  expect(play.refusals).toEqual([
    "the client uses its share of the connections to upstream (6 of 8), and its share of the queue is full",
  ]);
  expect(play.ask("2001:db8:2:1::1", "b")).toBe("used");
});

test("clients take turns, each in its own order", () => {
  const play = new Play(limits({ connectionsMax: 1, clientSharePercent: 100 }));
  play.ask("192.0.2.1", "a0");
  for (const name of ["a1", "a2", "a3", "a4"]) play.ask("192.0.2.1", name);
  for (const name of ["b1", "b2"]) play.ask("192.0.2.2", name);
  play.ask("192.0.2.3", "c1");
  const served = Array.from({ length: 8 }, () => play.respond());
  expect(served).toEqual(["a1", "b1", "c1", "a2", "b2", "a3", "a4", undefined]);
});

test("a client that has its share does not hold up who waits behind it", () => {
  const play = new Play(limits({ connectionsMax: 4, clientSharePercent: 50 }));
  for (const name of ["a0", "a1", "a2"]) play.ask("192.0.2.1", name);
  for (const name of ["b0", "b1", "b2"]) play.ask("192.0.2.2", name);
  play.ask("192.0.2.3", "c0");
  expect([play.respond("b0"), play.respond("b1")]).toEqual(["b2", "c0"]);
  expect(play.respond("a0")).toBe("a2");
});

test("whoever has waited too long is refused, with the time, and nobody else", () => {
  const play = new Play(limits({ connectionsMax: 1 }));
  play.ask("192.0.2.1", "a0");
  play.ask("192.0.2.1", "a1", 0);
  play.ask("192.0.2.2", "b1", 500);
  const refused: string[] = [];
  const sweep = (now: number): void =>
    play.shares.sweep(now, (name, reason) => refused.push(`${name}: ${reason}`));
  sweep(999);
  expect(refused).toEqual([]);
  sweep(1_000);
  sweep(1_000);
  expect(refused).toEqual([
    "a1: all 1 connections to upstream are in use, and no connection became free within 1000 ms",
  ]);
  sweep(1_500);
  expect([refused.length, play.shares.queued]).toEqual([2, 0]);
});

test("whatever clients do, nobody has more than a share, nobody waits while there is room, and all is given back", () => {
  const step = fc.tuple(fc.constantFrom("ask", "respond", "leave", "sweep"), fc.nat(5), fc.nat(30));
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const config = limits({ connectionsMax: 5, queuedRequestsMax: 6, clientSharePercent: 60 });
      const play = new Play(config);
      const waiting = new Map<string, string>();
      const respond = (): void => {
        const next = play.respond();
        if (next !== undefined) waiting.delete(next);
      };
      let now = 0;
      for (const [i, [what, client, time]] of steps.entries()) {
        const address = `192.0.2.${client}`;
        const name = `${client}:${i}`;
        if (what === "ask" && play.ask(address, name, now) === "waits") waiting.set(name, address);
        if (what === "respond" && play.inUse.length > 0) respond();
        const [leaves] = waiting;
        if (what === "leave" && leaves !== undefined) {
          play.shares.leave(...leaves);
          waiting.delete(leaves[0]);
        }
        now += time;
        if (what === "sweep") play.shares.sweep(now, (late) => waiting.delete(late));
        expect(play.shares.queued).toBe(waiting.size);
        for (let c = 0; c <= 5; c++) {
          const used = play.inUse.filter((one) => one.name.startsWith(`${c}:`)).length;
          expect(used).toBeLessThanOrEqual(3);
          const waits = [...waiting.values()].includes(`192.0.2.${c}`);
          if (waits) expect(used === 3 || play.inUse.length === 5).toBe(true);
        }
      }
      while (play.inUse.length > 0) respond();
      expect([play.shares.queued, waiting.size]).toEqual([0, 0]);
    }),
  );
});
