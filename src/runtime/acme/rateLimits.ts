import { DAY_MS, HOUR_MS, MINUTE_MS } from "../../model/text/duration.js";
import { join } from "node:path";
import { Queue } from "../queue.js";
import { AcmeError } from "./acmeError.js";
import { type Clock } from "./clock.js";
import { readJson, writeJson } from "./stateFiles.js";

/**
 * The rate limits of authorities that depend on this client (https://letsencrypt.org/docs/rate-limits). We stop a
 * little below them, because an authority refuses requests for hours or days once a limit is reached.
 */
const ORDERS = { most: 280, ms: 3 * HOUR_MS };
const FAILED_VALIDATIONS = { most: 4, ms: HOUR_MS };
const SAME_NAMES = { most: 4, ms: 7 * DAY_MS };

interface CountedOrders {
  readonly orders: readonly number[];
  /** The failures of each name. */
  readonly failures: Readonly<Record<string, readonly number[]>>;
  /** The certificates issued, by all names of a certificate. */
  readonly issued: Readonly<Record<string, readonly number[]>>;
}

type Limit = typeof ORDERS;

export class RateLimits {
  private readonly path: string;
  private counted: Promise<CountedOrders> | undefined;
  /** Writes wait for each other, so that no count of two certificates at once is lost. */
  private readonly writes = new Queue();

  constructor(
    directory: string,
    private readonly clock: Clock,
  ) {
    this.path = join(directory, "limits.json");
  }

  /**
   * Counts an order before it is made.
   *
   * @param exempt whether the authority itself asked for it
   * @throws AcmeError `rateLimited` if it has to wait
   */
  async order(names: readonly string[], exempt: boolean): Promise<void> {
    const { orders, failures, issued } = await this.read();
    const now = this.clock.now();
    const waits = [
      { what: `${ORDERS.most} orders in three hours`, until: room(orders, ORDERS, now) },
      ...names.map((name) => ({
        what: `${FAILED_VALIDATIONS.most} failed validations of ${name} in an hour`,
        until: room(timesOf(failures, name), FAILED_VALIDATIONS, now),
      })),
      {
        what: `${SAME_NAMES.most} certificates for the same names in seven days`,
        until: exempt ? 0 : room(timesOf(issued, sameNames(names)), SAME_NAMES, now),
      },
    ];
    const longest = waits.reduce((a, b) => (b.until > a.until ? b : a));
    if (longest.until > now) {
      const detail = `portico allows at most ${longest.what}, to stay below the authority's limit`;
      throw new AcmeError("rateLimited", detail, { retryAt: longest.until, notAsked: true });
    }
    await this.write((counted) => ({ ...counted, orders: [...counted.orders, now] }));
  }

  async failed(names: readonly string[]): Promise<void> {
    await this.add("failures", names);
  }

  async issued(names: readonly string[]): Promise<void> {
    await this.add("issued", [sameNames(names)]);
  }

  /** Reads it again when it is needed next. */
  forget(): void {
    this.counted = undefined;
  }

  private add(kind: "failures" | "issued", keys: readonly string[]): Promise<void> {
    const now = this.clock.now();
    return this.write((counted) => {
      const added = keys.map((key) => [key, [...timesOf(counted[kind], key), now]] as const);
      return { ...counted, [kind]: { ...counted[kind], ...Object.fromEntries(added) } };
    });
  }

  private read(): Promise<CountedOrders> {
    this.counted ??= readJson<CountedOrders>(this.path).then((read) => ({
      orders: timesIn(read?.orders),
      failures: Object(read?.failures) as CountedOrders["failures"],
      issued: Object(read?.issued) as CountedOrders["issued"],
    }));
    return this.counted;
  }

  private write(change: (counted: CountedOrders) => CountedOrders): Promise<void> {
    return this.writes.do(async () => {
      const changed = current(change(await this.read()), this.clock.now());
      this.counted = Promise.resolve(changed);
      await writeJson(this.path, changed);
    });
  }
}

const sameNames = (names: readonly string[]): string => [...names].sort().join(" ");

/** A host may be called `constructor`, which every object has. */
const timesOf = (all: CountedOrders["failures"], key: string): readonly number[] =>
  Object.hasOwn(all, key) ? timesIn(all[key]) : [];

const timesIn = (value: unknown): readonly number[] =>
  Array.isArray(value) ? value.filter((at) => typeof at === "number") : [];

/** When one more is allowed. Future times were recorded with a wrong clock. */
function room(times: readonly number[], { most, ms }: Limit, now: number): number {
  const counted = within(times, ms, now);
  return counted.length < most ? 0 : counted.at(-most)! + ms;
}

const within = (times: readonly number[], ms: number, now: number): number[] =>
  times.filter((at) => at > now - ms && at <= now + MINUTE_MS);

/** Removes the entries that no limit counts any more. */
function current({ orders, failures, issued }: CountedOrders, now: number): CountedOrders {
  const each = (all: CountedOrders["failures"], { ms }: Limit): CountedOrders["failures"] =>
    Object.fromEntries(
      Object.entries(all)
        .map(([key, times]) => [key, within(timesIn(times), ms, now)] as const)
        .filter(([, times]) => times.length > 0),
    );
  return {
    orders: within(orders, ORDERS.ms, now),
    failures: each(failures, FAILED_VALIDATIONS),
    issued: each(issued, SAME_NAMES),
  };
}
