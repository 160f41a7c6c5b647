import { appendFileSync, existsSync, readFileSync, truncateSync } from "node:fs";
import { text } from "./tables.js";
import type { NumberedFault, Reached } from "./tree.js";

/** With the nearest tests, or with all. */
export type Round = "near" | "rest";

type Entry =
  | { readonly faults: readonly string[] }
  | {
      readonly test: string;
      /** `null` if it fails without a fault. */
      readonly reached: {
        readonly ms: number;
        readonly tests: readonly (readonly [name: string, ms: number])[];
        readonly byFault: readonly (readonly [id: number, names: readonly string[]])[];
      } | null;
    }
  | { readonly round: Round; readonly id: number; readonly by: string | null };

/** What a run has found so far, a line of a file each: it takes an hour or two, and goes on from there if it was cut off. */
export class Progress {
  private readonly tests = new Map<string, Reached | undefined>();
  private readonly verdicts = new Map<string, string | undefined>();

  /** @param file without one, nothing is kept */
  constructor(
    private readonly file: string | undefined,
    faults: readonly NumberedFault[],
  ) {
    const own = JSON.stringify({ faults: faults.map(text) });
    if (file === undefined || !existsSync(file)) {
      this.append(own);
      return;
    }
    const kept = readFileSync(file, "utf8");
    const [first, ...lines] = kept.split("\n").slice(0, -1);
    if (first !== own)
      throw new Error(`${file} is the progress of a run of other faults, or of other sources`);
    for (const line of lines) this.take(JSON.parse(line) as Entry);
    // The last line may not be whole, where it was cut off.
    truncateSync(file, Buffer.byteLength(kept.slice(0, kept.lastIndexOf("\n") + 1)));
  }

  private take(entry: Entry): void {
    if ("round" in entry) this.verdicts.set(`${entry.round} ${entry.id}`, entry.by ?? undefined);
    if (!("test" in entry)) return;
    const { test, reached } = entry;
    const byFault = new Map(reached?.byFault.map(([id, names]) => [id, new Set(names)]));
    this.tests.set(
      test,
      reached === null ? undefined : { ...reached, tests: new Map(reached.tests), byFault },
    );
  }

  /** What a test file reached, as it was found earlier or is found now. */
  async reached(test: string, find: () => Promise<Reached | undefined>): Promise<Reached | undefined> {
    if (this.tests.has(test)) return this.tests.get(test);
    const found = await find();
    const reached = found && {
      ms: found.ms,
      tests: [...found.tests],
      byFault: [...found.byFault].map(([id, names]) => [id, [...names]] as const),
    };
    this.add({ test, reached: reached ?? null });
    return found;
  }

  /** Which test noticed a fault, as it was found earlier or is found now. */
  async noticed(
    round: Round,
    { id }: NumberedFault,
    find: () => Promise<string | undefined>,
  ): Promise<string | undefined> {
    const key = `${round} ${id}`;
    if (this.verdicts.has(key)) return this.verdicts.get(key);
    const by = await find();
    this.add({ round, id, by: by ?? null });
    return by;
  }

  private add(entry: Entry): void {
    this.append(JSON.stringify(entry));
  }

  private append(line: string): void {
    if (this.file !== undefined) appendFileSync(this.file, `${line}\n`);
  }
}
