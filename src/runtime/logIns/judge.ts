/**
 * Who may try to log in: counts distinct wrong secrets of an address, not failures. A client that sends the same
 * credentials again guesses nothing, however often they are wrong.
 *
 * Knows hashes only. All tables are bounded; what was used longest ago is forgotten first.
 */

/** Limits of a guard: `passwordGuards` of the config. */
export interface GuardLimits {
  /** Distinct wrong secrets of an address, within the window, after which it is closed. */
  readonly wrongSecretsMax: number;
  /** Distinct wrong secrets after which a new one has to wait. */
  readonly slowAfter: number;
  /** The first wait; each further wrong secret doubles it. */
  readonly slowMs: number;
  /** How long a wrong secret counts. */
  readonly windowMs: number;
  /** How long an address stays closed. */
  readonly closeMs: number;
}

/** What a log-in tries, as keyed hashes. */
export interface Tried {
  /** The account with the secret. */
  readonly hash: string;
  /** Each alone, where the log-in tells them apart. */
  readonly secret?: string | undefined;
  readonly account?: string | undefined;
}

/** What a log-in came to. */
export interface LogInResult extends Tried {
  readonly address: string;
  readonly result: "wrong" | "good";
}

/** Why a log-in is refused: the address has to wait until the next new secret, or gets none tried for longer. */
export type GuardReason = "slowed" | "closed";

export interface GuardRefusal {
  readonly reason: GuardReason;
  readonly retryMs: number;
}

/** An address whose new secrets are refused. */
export interface Ban {
  readonly address: string;
  readonly reason: GuardReason;
  /** Distinct wrong secrets that count. */
  readonly wrong: number;
  /** Milliseconds from now. */
  readonly leftMs: number;
}

/** All that a judge knows, as JSON. */
export interface JudgeState {
  readonly addresses: readonly (readonly [address: string, AddressState])[];
  readonly sprayed: readonly (readonly [secret: string, accounts: readonly string[]])[];
}

interface AddressState {
  readonly secrets: readonly (readonly [hash: string, SecretState])[];
  readonly goodAt: number;
  readonly closedUntil: number;
}

interface SecretState {
  /** Since when it counts. */
  first: number;
  state: "pending" | "wrong" | "good";
  weight: number;
}

/** What is known of one address. */
class Address {
  /** Least recently used first. */
  readonly secrets: Map<string, SecretState>;
  goodAt: number;
  closedUntil: number;
  private toldSince = -Infinity;
  private told = 0;

  constructor({ secrets, goodAt, closedUntil }: AddressState = FRESH) {
    this.secrets = new Map(secrets);
    this.goodAt = goodAt;
    this.closedUntil = closedUntil;
  }

  /** Wrong secrets that count at this time; the last one; and those whose responses said so. */
  wrong(now: number, windowMs: number): { weight: number; last: number; sure: number } {
    const all = { weight: 0, last: -Infinity, sure: 0 };
    for (const { state, first, weight } of this.secrets.values()) {
      if (state === "good" || first <= now - windowMs) continue;
      // Whoever goes away before the response has tried all the same.
      if (state === "pending" && first > now - PENDING_MS) continue;
      all.weight += weight;
      all.last = Math.max(all.last, first);
      if (state === "wrong") all.sure += weight;
    }
    return all;
  }

  pending(now: number): number {
    let count = 0;
    for (const { state, first } of this.secrets.values())
      if (state === "pending" && first > now - PENDING_MS) count += 1;
    return count;
  }

  /** Puts it last. */
  use(hash: string, state: SecretState, max: number): void {
    this.secrets.delete(hash);
    this.secrets.set(hash, state);
    if (this.secrets.size > max) this.secrets.delete(this.spare());
  }

  /**
   * Whether other processes have to hear of one more that succeeded. They keep no more than these, and at a path that
   * checks no secret each request succeeds with another one.
   */
  mayTell(now: number): boolean {
    if (this.toldSince <= now - NEWS_MS) [this.toldSince, this.told] = [now, 0];
    this.told += 1;
    return this.told <= GOODS_MAX;
  }

  /** Drops the oldest of more. */
  keepGoods(max: number): void {
    const goods = [...this.secrets].filter(([, { state }]) => state === "good");
    for (const [hash] of goods.slice(0, Math.max(0, goods.length - max))) this.secrets.delete(hash);
  }

  /** Those that succeeded first: otherwise a user of the application could push out what the user guessed. */
  private spare(): string {
    for (const [hash, { state }] of this.secrets) if (state === "good") return hash;
    return this.secrets.keys().next().value!;
  }
}

const FRESH: AddressState = { secrets: [], goodAt: -Infinity, closedUntil: -Infinity };

/** Judges the log-ins that one guard sees. All times are of one clock, which never goes back. */
export class LogInJudge {
  /** Least recently used first. */
  private readonly addresses = new Map<string, Address>();
  /** Accounts that a wrong secret was tried for, by secret; least recently used first. */
  private readonly sprayed = new Map<string, Set<string>>();

  /** @param bounds of its tables */
  constructor(
    public limits: GuardLimits,
    private readonly bounds: typeof BOUNDS = BOUNDS,
  ) {}

  /**
   * Why a log-in is refused; undefined if it is not, and then it counts as tried until its result is known.
   *
   * A secret that the address has tried before is never refused, nor is the first one of an address.
   */
  judge(address: string, { hash }: Pick<Tried, "hash">, now: number): GuardRefusal | undefined {
    const known = this.use(address);
    const before = known.secrets.get(hash);
    if (before !== undefined) {
      known.use(hash, before, this.bounds.secrets);
      return undefined;
    }
    const refusal = this.refusal(known, now, known.pending(now));
    if (refusal === undefined)
      known.use(hash, { first: now, state: "pending", weight: 1 }, this.bounds.secrets);
    return refusal;
  }

  /** The upstream's response tells nothing about the secret: it does not count. */
  undecided(address: string, { hash }: Pick<Tried, "hash">): void {
    const secrets = this.addresses.get(address)?.secrets;
    if (secrets?.get(hash)?.state === "pending") secrets.delete(hash);
  }

  /** Takes note of a result, whichever process saw it. @returns whether that is news for other processes */
  learn({ address, result, ...tried }: LogInResult, now: number): boolean {
    const known = this.use(address);
    const before = known.secrets.get(tried.hash);
    if (result === "good") {
      const isNews = before?.state !== "good" || known.goodAt <= now - NEWS_MS;
      if (isNews) known.goodAt = now;
      const mayTell = isNews && known.mayTell(now);
      known.use(tried.hash, { first: now, state: "good", weight: 1 }, this.bounds.secrets);
      if (before?.state !== "good") known.keepGoods(GOODS_MAX);
      return mayTell;
    }
    if (before?.state === "wrong") {
      known.use(tried.hash, before, this.bounds.secrets);
      return false;
    }
    const weight = this.isSprayed(tried) ? SPRAYED_WEIGHT : 1;
    known.use(tried.hash, { first: now, state: "wrong", weight }, this.bounds.secrets);
    this.counted(known, now);
    return true;
  }

  /** Addresses whose new secrets are refused at this time. */
  bans(now: number): readonly Ban[] {
    return [...this.addresses.keys()].flatMap((address) => this.ban(address, now) ?? []);
  }

  /** The same of one address; undefined if it is not refused. */
  ban(address: string, now: number): Ban | undefined {
    const known = this.addresses.get(address);
    const refusal = known && this.refusal(known, now, 0);
    if (refusal === undefined) return undefined;
    const wrong = known!.wrong(now, this.limits.windowMs).weight;
    return { address, wrong, reason: refusal.reason, leftMs: refusal.retryMs };
  }

  /** Forgets an address. @returns whether there was one */
  unban(address: string): boolean {
    return this.addresses.delete(address);
  }

  get state(): JudgeState {
    return {
      addresses: [...this.addresses].map(([address, { secrets, goodAt, closedUntil }]) => [
        address,
        // JSON has no infinity.
        { secrets: [...secrets], goodAt: Math.max(goodAt, -1e15), closedUntil: Math.max(closedUntil, -1e15) },
      ]),
      sprayed: [...this.sprayed].map(([secret, accounts]) => [secret, [...accounts]]),
    };
  }

  /** Knows this from now on, in place of what it knew. */
  adopt({ addresses, sprayed }: JudgeState): void {
    this.addresses.clear();
    this.sprayed.clear();
    for (const [address, state] of addresses) this.addresses.set(address, new Address(state));
    for (const [secret, accounts] of sprayed) this.sprayed.set(secret, new Set(accounts));
  }

  private refusal(known: Address, now: number, pending: number): GuardRefusal | undefined {
    const { wrongSecretsMax, slowAfter, slowMs } = this.limits;
    const factor = this.factor(known, now);
    const { weight, last } = this.counted(known, now);
    if (now < known.closedUntil) return { reason: "closed", retryMs: known.closedUntil - now };
    // Log-ins at the same time: each is judged before the results of the others are known.
    if (pending > 0 && weight + pending >= wrongSecretsMax * factor)
      return { reason: "slowed", retryMs: slowMs };
    const steps = weight - Math.min(slowAfter, wrongSecretsMax) * factor;
    if (steps < 0) return undefined;
    const longest = Math.max(SLOW_MS_MAX, slowMs);
    const isUsedUp = weight >= wrongSecretsMax * factor;
    const until = last + (isUsedUp ? longest : Math.min(slowMs * 2 ** Math.min(steps, STEPS_MAX), longest));
    return now < until ? { reason: "slowed", retryMs: until - now } : undefined;
  }

  /**
   * What counts against an address; closes it if that is too much. An application that is slow to respond, as after its
   * start, closes no address that many users share.
   */
  private counted(known: Address, now: number): ReturnType<Address["wrong"]> {
    const { wrongSecretsMax, windowMs, closeMs } = this.limits;
    const counted = known.wrong(now, windowMs);
    if (counted.sure >= wrongSecretsMax * this.factor(known, now))
      known.closedUntil = Math.max(known.closedUntil, counted.last + closeMs);
    return counted;
  }

  /** An address from which users log in has a larger allowance: people mistype. */
  private factor(known: Address, now: number): number {
    return known.goodAt > now - GOOD_MS ? GOOD_FACTOR : 1;
  }

  /** Whether one wrong secret is tried for many accounts, from whichever addresses. */
  private isSprayed({ secret, account }: Tried): boolean {
    if (secret === undefined || account === undefined) return false;
    const accounts = this.sprayed.get(secret) ?? new Set();
    this.sprayed.delete(secret);
    this.sprayed.set(secret, accounts);
    if (accounts.size < SPRAYED_ACCOUNTS) accounts.add(account);
    if (this.sprayed.size > this.bounds.sprayed) this.sprayed.delete(this.sprayed.keys().next().value!);
    return accounts.size >= SPRAYED_ACCOUNTS;
  }

  private use(address: string): Address {
    const known = this.addresses.get(address) ?? new Address();
    this.addresses.delete(address);
    this.addresses.set(address, known);
    if (this.addresses.size > this.bounds.addresses)
      this.addresses.delete(this.addresses.keys().next().value!);
    return known;
  }
}

/** A wait is never longer than this, unless the first one is. */
const SLOW_MS_MAX = 60_000;
const STEPS_MAX = 20;
/** A log-in without a result for so long counts as wrong. */
const PENDING_MS = 60_000;
/** How long a log-in that succeeded raises the allowance, and by what. */
const GOOD_MS = 24 * 60 * 60 * 1_000;
const GOOD_FACTOR = 3;
/** A success is passed on again after this. */
const NEWS_MS = 60_000;
/**
 * Credentials of an address that a closed address may still use. Few, because some paths take any for right: what was
 * "right" there would be tried elsewhere.
 */
const GOODS_MAX = 32;
/** So many accounts make a wrong secret one that is sprayed, and then it counts for so many. */
const SPRAYED_ACCOUNTS = 10;
const SPRAYED_WEIGHT = 3;

/**
 * Bounds of the tables: at most about 50 MB, if so many addresses guess at once. `secrets`, those of an address, is more
 * than the largest allowance.
 */
export const BOUNDS = { addresses: 4_096, secrets: 192, sprayed: 4_096 };
