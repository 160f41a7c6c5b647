import { setTimeout as sleep } from "node:timers/promises";

/** Samples of `/metrics`, by their names with labels. */
export type Samples = ReadonlyMap<string, number>;

/** The sum of all samples of a metric whose labels have all of these texts. */
export function sumOf(samples: Samples, name: string, ...texts: readonly string[]): number {
  let sum = 0;
  for (const [key, value] of samples)
    if (key.split("{")[0] === name && texts.every((text) => key.includes(text))) sum += value;
  return sum;
}

/** Asks for metrics again and again, and notes every counter that falls. */
export class Scrapes {
  readonly fallen: string[] = [];
  count = 0;
  private before: Samples = new Map();
  private stopped = false;
  private turn: Promise<unknown> = Promise.resolve();
  private readonly running: Promise<void>;

  constructor(private readonly port: number) {
    this.running = this.run();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    await this.running;
  }

  async text(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${this.port}/metrics`);
    return response.text();
  }

  /** One after the other: of two at once, the first response could be read last. */
  scrape(): Promise<Samples> {
    const scraped = this.turn.then(() => this.scraped());
    this.turn = scraped.catch(() => undefined);
    return scraped;
  }

  private async scraped(): Promise<Samples> {
    const text = await this.text();
    const counters = new Set<string>();
    const samples = new Map<string, number>();
    for (const line of text.split("\n")) {
      const [, name, type] = /^# TYPE (\S+) (\w+)$/.exec(line) ?? [];
      if (type === "counter" || type === "histogram") counters.add(name!);
      const at = line.lastIndexOf(" ");
      if (line !== "" && !line.startsWith("#")) samples.set(line.slice(0, at), Number(line.slice(at + 1)));
    }
    this.compare(samples, counters);
    return samples;
  }

  private compare(samples: Samples, counters: ReadonlySet<string>): void {
    this.count++;
    for (const [key, was] of this.before) {
      const name = key.split("{")[0]!;
      if (!counters.has(name) && !counters.has(name.replace(/_(?:bucket|sum|count)$/, ""))) continue;
      const is = samples.get(key);
      if (is === undefined || is < was) this.fallen.push(`${key}: ${was}, then ${is}`);
    }
    this.before = samples;
  }

  private async run(): Promise<void> {
    while (!this.stopped) {
      // In a takeover the port may change hands.
      await this.scrape().catch(() => undefined);
      await sleep(100);
    }
  }
}
