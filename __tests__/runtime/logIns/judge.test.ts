import { type GuardLimits, LogInJudge, type Tried } from "../../../src/runtime/logIns/judge.js";
import { Random, SEED, seedOf } from "../../../testkit/random.js";

const LIMITS: GuardLimits = {
  wrongSecretsMax: 20,
  slowAfter: 5,
  slowMs: 1_000,
  windowMs: 900_000,
  closeMs: 900_000,
};

const limitsOf = (random: Random): GuardLimits => ({
  wrongSecretsMax: 1 + random.upTo(7),
  slowAfter: 1 + random.upTo(7),
  slowMs: random.of(100, 1_000, 30_000),
  windowMs: 60_000 * (1 + random.upTo(4)),
  closeMs: random.of(900_000, 3_600_000),
});

const PLACES = 4;
const OWN = "192.0.2.1";

interface Attempt {
  readonly address: string;
  readonly tried: Tried;
  readonly result: "wrong" | "good" | "undecided" | "lost";
}

/** A judge with what happens to it besides log-ins; responses come later, in any order. */
class History {
  readonly judge: LogInJudge;
  now = 0;
  private readonly open: Attempt[] = [];

  constructor(
    readonly random: Random,
    readonly limits: GuardLimits,
    bounds?: ConstructorParameters<typeof LogInJudge>[1],
  ) {
    this.judge = new LogInJudge(limits, bounds);
  }

  /** @returns whether it was refused */
  attempt(attempt: Attempt): boolean {
    if (this.judge.judge(attempt.address, attempt.tried, this.now) !== undefined) return true;
    this.open.push(attempt);
    while (this.open.length > this.random.upTo(3)) this.respond();
    return false;
  }

  private respond(): void {
    const [{ address, tried, result }] = this.open.splice(this.random.pick(this.open.length), 1) as [Attempt];
    if (result === "undecided") this.judge.undecided(address, tried);
    else if (result !== "lost") this.judge.learn({ address, ...tried, result }, this.now);
  }
}

const TRIED: Tried = { hash: "own", secret: "summer", account: "own" };

/** A client that has one password, right or wrong or both in turn, while others guess. */
function refusesConstant(random: Random): boolean {
  const bounds = { addresses: 2 + random.upTo(3), secrets: 1 + random.upTo(3), sprayed: 1 + random.upTo(3) };
  const history = new History(random, limitsOf(random), bounds);
  for (let step = 0; step < 10; step += 1) {
    history.now += random.of(0, 1, 200, 9_999, 60_000, 1_000_000);
    // The same password as of those that spray.
    const others = {
      hash: `guess ${step}`,
      secret: random.of("summer", `${step}`),
      account: `account ${step}`,
    };
    const address = `198.51.100.${random.pick(PLACES)}`;
    if (random.is(0.5)) history.attempt({ address, tried: others, result: random.of("wrong", "good") });
    else if (
      history.attempt({ address: OWN, tried: TRIED, result: random.of("wrong", "good", "undecided", "lost") })
    )
      return true;
    if (random.is(0.05)) history.judge.unban(random.of(OWN, address));
    if (random.is(0.05)) history.judge.adopt(JSON.parse(JSON.stringify(history.judge.state)));
  }
  return false;
}

/** A client that guesses; it also repeats itself, and may have an account of its own. */
function guesses(random: Random): { passed: number; refused: number; allowed: number; tried: number } {
  const limits = limitsOf(random);
  const history = new History(random, limits);
  const ownAccount = random.is(0.3);
  const allowed = limits.wrongSecretsMax * (ownAccount ? 3 : 1) + limits.windowMs / 60_000 + 1;
  const seen = { passed: 0, refused: 0, allowed, tried: Math.ceil(allowed * 2) };
  const stepMs = limits.windowMs / (seen.tried + 1);
  for (let guess = 0; guess < seen.tried; guess += 1) {
    history.now += random.is(0.5) ? stepMs : 0;
    const tried = { hash: `guess ${guess}`, secret: `guess ${guess}`, account: "root" };
    const lost = random.is(0.1);
    if (history.attempt({ address: OWN, tried, result: lost ? "lost" : "wrong" })) seen.refused += 1;
    else seen.passed += 1;
    if (ownAccount && random.is(0.2))
      history.attempt({ address: OWN, tried: { hash: `own ${random.upTo(300)}` }, result: "good" });
    if (random.is(0.2))
      history.attempt({ address: OWN, tried: { hash: `guess ${random.upTo(guess)}` }, result: "wrong" });
  }
  return seen;
}

const HISTORIES = 100_000;

test("a client that always sends the same credentials is never refused, whatever they come to", () => {
  for (let index = 0; index < HISTORIES; index += 1)
    if (refusesConstant(new Random(seedOf(SEED, index)))) throw new Error(`history ${index} of seed ${SEED}`);
});

test("a client that guesses is refused, and gets no more tried than it is allowed", () => {
  for (let index = 0; index < HISTORIES; index += 1) {
    const { passed, refused, allowed } = guesses(new Random(seedOf(SEED, index)));
    if (refused === 0 || passed > allowed)
      throw new Error(`history ${index} of seed ${SEED}: ${passed} passed of ${allowed}, ${refused} refused`);
  }
});

const wrong = (judge: LogInJudge, secret: string, now: number, address = OWN) => {
  const tried = { hash: `${address} ${secret}`, secret, account: address };
  const refusal = judge.judge(address, tried, now);
  if (refusal === undefined) judge.learn({ address, ...tried, result: "wrong" }, now);
  return refusal;
};

test("new secrets have to wait, longer each time, before the address is closed; the same one is no guess", () => {
  const judge = new LogInJudge(LIMITS);
  for (let guess = 0; guess < 5; guess += 1) expect(wrong(judge, `${guess}`, 0)).toBeUndefined();
  expect(wrong(judge, "5", 0)).toEqual({ reason: "slowed", retryMs: 1_000 });
  expect(wrong(judge, "4", 0)).toBeUndefined();
  expect(wrong(judge, "5", 1_000)).toBeUndefined();
  expect(wrong(judge, "6", 2_000)).toEqual({ reason: "slowed", retryMs: 1_000 });
  let now = 3_000;
  for (let guess = 6; guess < 20; guess += 1) {
    const refusal = wrong(judge, `${guess}`, now);
    now += refusal?.retryMs ?? 0;
    if (refusal !== undefined) expect(wrong(judge, `${guess}`, now)).toBeUndefined();
  }
  expect(wrong(judge, "20", now)).toEqual({ reason: "closed", retryMs: 900_000 });
  expect(judge.bans(now)).toEqual([{ address: OWN, reason: "closed", wrong: 20, leftMs: 900_000 }]);
  expect(wrong(judge, "19", now)).toBeUndefined();
  expect(wrong(judge, "20", now + 900_000)).toBeUndefined();
});

test("an address that somebody logged in from has a larger allowance", () => {
  const judge = new LogInJudge(LIMITS);
  judge.learn({ address: OWN, hash: "right", result: "good" }, 0);
  for (let guess = 0; guess < 15; guess += 1) expect(wrong(judge, `${guess}`, 0)).toBeUndefined();
  expect(wrong(judge, "15", 0)).toMatchObject({ reason: "slowed" });
});

test("log-ins at the same time are no way around: those without a result count", () => {
  const judge = new LogInJudge(LIMITS);
  const passed = Array.from({ length: 100 }, (_, n) => judge.judge(OWN, { hash: `${n}` }, 0)).filter(
    (one) => !one,
  );
  expect(passed).toHaveLength(20);
});

test("a secret that is tried for many accounts counts for more, from whichever addresses", () => {
  const judge = new LogInJudge(LIMITS);
  for (let account = 0; account < 10; account += 1) wrong(judge, "summer", 0, `198.51.100.${account}`);
  expect(wrong(judge, "summer", 0)).toBeUndefined();
  expect(wrong(judge, "a", 0)).toBeUndefined();
  expect(wrong(judge, "b", 0)).toBeUndefined();
  expect(wrong(judge, "c", 0)).toMatchObject({ reason: "slowed" });
});

test("an application that is slow to respond closes no address that many users share", () => {
  const judge = new LogInJudge(LIMITS);
  const users = Array.from({ length: 40 }, (_, n) => ({ hash: `user ${n}` }));
  const begun = users.filter((tried) => judge.judge(OWN, tried, 0) === undefined);
  expect(judge.judge(OWN, { hash: "late" }, 70_000)).toBeUndefined();
  expect(judge.judge(OWN, { hash: "later" }, 70_000)).toMatchObject({ reason: "slowed" });
  for (const tried of begun) judge.learn({ address: OWN, ...tried, result: "good" }, 90_000);
  expect(users.filter((tried) => judge.judge(OWN, tried, 90_000) !== undefined)).toEqual([]);
});

test("a forgotten address may log in at once", () => {
  const judge = new LogInJudge({ ...LIMITS, wrongSecretsMax: 1 });
  wrong(judge, "a", 0);
  expect(wrong(judge, "b", 0)).toMatchObject({ reason: "closed" });
  expect([judge.unban(OWN), judge.unban(OWN)]).toEqual([true, false]);
  expect(wrong(judge, "b", 0)).toBeUndefined();
});

test("an account of one's own does not push out what the user guessed before", () => {
  const bounds = { addresses: 2, secrets: 20, sprayed: 2 };
  const judge = new LogInJudge({ ...LIMITS, slowAfter: 1 }, bounds);
  for (let guess = 0; guess < 10; guess += 1)
    expect(wrong(judge, `${guess}`, guess * 60_000)).toBeUndefined();
  for (let own = 0; own < 100; own += 1)
    judge.learn({ address: OWN, hash: `own ${own}`, result: "good" }, 540_000);
  expect(judge.bans(541_000)).toEqual([{ address: OWN, reason: "slowed", wrong: 10, leftMs: 59_000 }]);
});

test("secrets without end that a path takes for right are no news without end", () => {
  const judge = new LogInJudge(LIMITS);
  const news = (from: number, now: number): number =>
    Array.from(
      { length: 1_000 },
      (_, n) => ({ address: OWN, hash: `${from + n}`, result: "good" }) as const,
    ).filter((one) => judge.learn(one, now)).length;
  expect([news(0, 0), news(1_000, 1_000), news(2_000, 60_000)]).toEqual([32, 0, 32]);
});
