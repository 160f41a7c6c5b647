import { hashOf, scoreOf, serversOf, type UpstreamConfig } from "../src/model/index.js";
import type { Balancer, RequestFacts, ServerOrder } from "../src/runtime/upstream/balancer.js";
import type { Random } from "./random.js";

/** What the model knows of a server: only what the rules speak of. */
interface Known {
  order: ServerOrder;
  backAt: number;
  inProgress: number;
  failures: number;
  /** Left out since a failure; `again` is when a request may try it. */
  out: undefined | { again: number; ms: number; tried: undefined | "inTurn" | "lastResort"; silent: boolean };
}

/** Servers that a request may have: of those that requests failed at, none, some, or all. */
type Reach = "safe" | "trials" | "lastResort";

type Chosen = Pick<Balancer, "choose" | "order" | "begun" | "ended" | "responded" | "failed">;

/**
 * Servers go up, down, slow and into drains at random times, and requests come, get a response, fail and end between. Each
 * request's server has to be one that the rules allow. Some requests get no response from any server. The laws: a
 * request gets a server as long as one is neither drained nor down, and each server at most once.
 *
 * @returns the first step that broke a rule, in words; undefined if none did
 */
export function brokenRule(
  config: UpstreamConfig,
  balancer: Chosen,
  random: Random,
  steps: number,
): string | undefined {
  const servers = serversOf(config);
  const known = servers.map((): Known => ({
    order: UP,
    backAt: -Infinity,
    inProgress: 0,
    failures: 0,
    out: undefined,
  }));
  const running: number[] = [];
  let now = 0;
  const model = new Model(config, known);
  const turns: Record<number, () => string | undefined> = {
    0: () => {
      const i = random.pick(servers.length);
      const was = known[i]!.order;
      const order = { drained: random.is(0.2), down: random.is(0.2), passing: random.is(0.4) };
      known[i]!.order = order;
      if ((was.drained || was.down) && !order.drained && !order.down) known[i]!.backAt = now;
      const back = (one: Known) => (one.backAt === -Infinity ? undefined : now - one.backAt);
      balancer.order(
        known.map((one) => ({ ...one.order, backForMs: back(one) })),
        now,
      );
      return undefined;
    },
    1: () => {
      if (running.length === 0) return undefined;
      const [i] = running.splice(random.pick(running.length), 1) as [number];
      known[i]!.inProgress--;
      balancer.ended(i);
      return undefined;
    },
  };
  for (let step = 0; step < steps; step++) {
    now += random.of(0, 1, 50, 400, 3_000);
    const broken = (turns[random.pick(5)] ?? request)();
    if (broken !== undefined) return `step ${step}: ${broken}`;
  }
  return undefined;

  function request(): string | undefined {
    let facts: RequestFacts = {
      client: `10.0.0.${random.pick(50)}`,
      session: random.is(0.3) ? `s${random.pick(200)}` : undefined,
      bound: random.is(0.2) ? random.pick(servers.length) : undefined,
      repeatable: random.is(0.7),
    };
    const isFatal = random.is(0.2);
    const passedOver = new Set<number>();
    for (;;) {
      const chosen = balancer.choose(facts, passedOver, now);
      if (passedOver.has(chosen)) return `server ${chosen} twice`;
      const isLeft = ({ drained, down }: ServerOrder, i: number): boolean =>
        !drained && !down && !passedOver.has(i);
      if (chosen === -1 && known.some(({ order }, i) => isLeft(order, i)))
        return "no server, where one is left";
      const broken = model.judged(chosen, facts, passedOver, now);
      if (broken !== undefined || chosen === -1) return broken;
      model.sent(chosen, facts, passedOver, now);
      balancer.begun(chosen);
      const ends = isFatal
        ? "silent"
        : random.of("responded", "responded", "responded", "refused", "silent", "lasts");
      if (ends === "lasts") return void running.push(chosen);
      if (ends === "responded") {
        model.responded(chosen, now);
        balancer.responded(chosen, now);
        return void running.push(chosen);
      }
      model.failed(chosen, ends === "silent", now);
      balancer.failed(chosen, ends === "silent", now);
      known[chosen]!.inProgress--;
      balancer.ended(chosen);
      passedOver.add(chosen);
      if (ends === "silent" && !facts.repeatable) return undefined;
      // It may have been the cause, so it is sent once more and not twice.
      if (ends === "silent") facts = { ...facts, repeatable: false };
    }
  }
}

const UP: ServerOrder = { drained: false, down: false };

class Model {
  private readonly servers;
  private readonly hashes;

  constructor(
    private readonly config: UpstreamConfig,
    private readonly known: readonly Known[],
  ) {
    this.servers = serversOf(config);
    this.hashes = this.servers.map(({ url }) => hashOf(url));
  }

  judged(
    chosen: number,
    facts: RequestFacts,
    passedOver: ReadonlySet<number>,
    now: number,
  ): string | undefined {
    const { bound, session } = facts;
    const { may } = this.reached(facts, passedOver, now);
    if (may.length === 0) return chosen === -1 ? undefined : `a server, ${chosen}, where none may be`;
    if (bound !== undefined && may.includes(bound))
      return chosen === bound ? undefined : `not the server ${bound} that the cookie names, but ${chosen}`;
    const first = may.filter((i) => !this.servers[i]!.backup);
    return this.among(first.length > 0 ? first : may, chosen, session, facts.client, now);
  }

  /** How far a request has to go to find a server, and the servers that it finds. */
  private reached(
    { repeatable }: RequestFacts,
    passedOver: ReadonlySet<number>,
    now: number,
  ): { readonly reach: Reach; readonly may: number[] } {
    const isIn = (i: number, reach: Reach): boolean => {
      const { order, out } = this.known[i]!;
      if (passedOver.has(i) || order.drained || order.down) return false;
      const isOut = out !== undefined && !(out.silent && order.passing === true);
      if (!isOut || reach === "lastResort") return true;
      return now >= out.again + (out.silent && reach === "safe" ? 10_000 : 0);
    };
    const all = [...this.known.keys()];
    for (const reach of repeatable ? (["trials"] as const) : (["safe", "trials"] as const)) {
      const may = all.filter((i) => isIn(i, reach));
      if (may.length > 0) return { reach, may };
    }
    return { reach: "lastResort", may: all.filter((i) => isIn(i, "lastResort")) };
  }

  sent(i: number, facts: RequestFacts, passedOver: ReadonlySet<number>, now: number): void {
    const one = this.known[i]!;
    one.inProgress++;
    if (one.out === undefined) return;
    if (this.reached(facts, passedOver, now).reach === "lastResort") one.out.tried ??= "lastResort";
    else one.out = { ...one.out, again: now + 5_000, tried: "inTurn" };
  }

  responded(i: number, now: number): void {
    const one = this.known[i]!;
    one.failures = 0;
    if (one.out?.tried !== undefined) [one.out, one.backAt] = [undefined, now];
  }

  failed(i: number, connected: boolean, now: number): void {
    const one = this.known[i]!;
    one.failures++;
    const { out } = one;
    if (out !== undefined && out.tried !== "inTurn") return;
    if (out === undefined && connected && (one.failures < 3 || one.order.passing === true)) return;
    if (connected && one.order.passing === true)
      return void (one.out = { ...out!, tried: undefined, silent: true });
    const ms = Math.min(Math.max(2 * (out?.ms ?? 0), 1_000), 10_000);
    one.out = { again: now + ms, ms, tried: undefined, silent: connected };
  }

  private among(may: number[], chosen: number, session: string | undefined, client: string, now: number) {
    if (!may.includes(chosen)) return `${chosen}, where only ${may.join()} may be`;
    const { balance } = this.config;
    const key = session ?? (balance === "clientAddress" ? client : undefined);
    if (key !== undefined) {
      const score = (i: number): number => scoreOf(hashOf(key), this.hashes[i]!, this.servers[i]!.weight);
      const best = may.reduce((a, b) => (score(b) > score(a) ? b : a));
      return chosen === best ? undefined : `not the server ${best} of ${key}, but ${chosen}`;
    }
    if (balance !== "leastConnections") return undefined;
    const load = (i: number): number => (this.known[i]!.inProgress + 1) / this.share(i, now);
    const least = may.find((i) => load(i) < load(chosen));
    return least === undefined ? undefined : `${chosen}, where ${least} has fewer requests for its weight`;
  }

  private share(i: number, now: number): number {
    const age = now - this.known[i]!.backAt;
    const { slowStartMs } = this.config;
    return this.servers[i]!.weight * (age >= slowStartMs ? 1 : Math.max(age / slowStartMs, 0.1));
  }
}
