import { readdirSync, readFileSync } from "node:fs";
import { setImmediate as turn } from "node:timers/promises";
import type { Bench, Row, Sample } from "../lib/bench.js";
import { HeadClient, type HeadRequest, type Version } from "../lib/headClients.js";
import { ADDRESSES, type Feature, FEATURES, type HeadSite, startHeadSite } from "../lib/headSite.js";
import { ALL, described, fieldNames, type HostileField, hostileFields, SAMPLE } from "../lib/hostileHeads.js";
import { ABSOLUTE, type Work } from "../lib/work.js";
import { porticoCommand } from "../proxies/portico.js";

/**
 * Searches the head that costs the proxy most, compared with a usual request of the same feature over the same version
 * of HTTP. A head of any kind may be sent as often as a usual one, and HPACK makes it as short.
 */
export const worstHead: Work = {
  name: "worst-head",
  what: "the dearest heads that a client or an upstream can send",
  unit: "× a usual head",
  by: "cpu",
  // 27 KB that nothing reads cost 8 to 11.6 times as much over HTTP/1.1 as the shortest requests, many in one read: that
  // is 3 ns a byte, and the shortest requests take 7 µs.
  bars: [{ to: ABSOLUTE, limit: 12, worst: 15 }],
  run: async (bench) => {
    const site = await startHeadSite(bench.site, bench.proxyCores, porticoCommand());
    try {
      return rowsOf(await search(site, bench));
    } finally {
      await site.stop();
    }
  },
};

/** Rows by rank, so that a second attempt adds its samples to the same ones. */
function rowsOf(found: readonly Measured[]): Row[] {
  return found.slice(0, SHOWN).map((one, i): Row => {
    const note = `${one.microseconds.toFixed(0)} µs: ${one.feature.name}, HTTP/${one.version}, ${described(one.field)}`;
    const samples = one.ratios.map((value): Sample => ({ value, note }));
    return { proxy: i === 0 ? "portico" : `portico, worst but ${i}`, family: "portico", samples };
  });
}

const SHOWN = 10;

/** A head of which the cost was measured once or twice. */
interface Suspect {
  readonly lab: HeadLab;
  readonly name: string;
  readonly fields: readonly HostileField[];
  /** Cost of one of the fields, compared with a usual head. */
  readonly ratio: number;
}

interface Measured {
  readonly feature: Feature;
  readonly version: Version;
  readonly field: HostileField;
  readonly ratios: readonly number[];
  readonly microseconds: number;
}

/** Names of each feature and version that are looked at again, and of which all patterns are tried. */
const [LOOKED_AT_AGAIN, BY_PATTERN] = [6, 2];
/** Heads that are measured at length. */
const MEASURED = 12;
/** Requests at a time. */
const FEW = 4;
const MANY = 48;
/** Requests after which V8 has compiled the code that all of them need. */
const WARM_UP = 1_500;

/**
 * Each step looks longer at fewer heads: all names, each once with some patterns together; those that cost most, again,
 * because other work and the compiler add to what is measured once; all patterns of the dearest names; the dearest heads of
 * all features.
 */
export async function search(
  site: HeadSite,
  { note, rounds, quick }: Pick<Bench, "note" | "rounds" | "quick">,
  names = fieldNames(),
): Promise<Measured[]> {
  const labs = FEATURES.flatMap((feature) => VERSIONS.map((version) => new HeadLab(site, feature, version)));
  const heads: Suspect[] = [];
  for (const [i, lab] of labs.entries()) {
    note(`${lab.feature.name}, HTTP/${lab.version}`);
    await lab.warmUp(i < VERSIONS.length ? WARM_UP : WARM_UP / 5);
    const seen: Suspect[] = [];
    for (const name of names)
      seen.push(await lab.suspect(name, hostileFields(name, lab.version, quick ? SAMPLE : ALL)));
    for (const { name } of dearest(await lookAgain(dearest(seen, LOOKED_AT_AGAIN)), BY_PATTERN)) {
      const patterns: Suspect[] = [];
      for (const field of hostileFields(name, lab.version, ALL))
        patterns.push(await lab.suspect(name, new Array<HostileField>(FEW).fill(field)));
      heads.push(...dearest(await lookAgain(dearest(patterns, FEW)), 1));
    }
  }
  const measured: Measured[] = [];
  for (const suspect of dearest(heads, MEASURED)) {
    note(`measurement ${measured.length + 1} of ${MEASURED}`);
    measured.push(await measure(suspect, Math.max(3, rounds)));
  }
  for (const lab of labs) lab.close();
  return measured.sort((a, b) => Math.min(...b.ratios) - Math.min(...a.ratios));
}

const VERSIONS = ["1.1", "2.0"] as const;

const dearest = (suspects: readonly Suspect[], count: number): Suspect[] =>
  [...suspects].sort((a, b) => b.ratio - a.ratio).slice(0, count);

/** The lesser of two measurements counts. */
async function lookAgain(suspects: readonly Suspect[]): Promise<Suspect[]> {
  const again: Suspect[] = [];
  for (const { lab, name, fields, ratio } of suspects) {
    const second = await lab.suspect(name, fields);
    again.push(second.ratio < ratio ? second : { ...second, ratio });
  }
  return again;
}

async function measure({ lab, fields }: Suspect, rounds: number): Promise<Measured> {
  const { feature, version } = lab;
  const field = fields[0]!;
  const costs: Cost[] = [];
  lab.begin();
  for (let round = 0; round < rounds; round++) {
    await lab.lookAtUsual(2);
    costs.push(await lab.cost(new Array<HostileField>(MANY / 2).fill(field)));
  }
  const microseconds = Math.min(...costs.map((cost) => cost.microseconds));
  return { feature, version, field, ratios: costs.map((cost) => lab.ratio(cost)), microseconds };
}

interface Cost {
  readonly microseconds: number;
  /** Whether each request had a connection of its own, because the proxy closes it. */
  readonly alone: boolean;
}

const CLOSE: HostileField = { name: "connection", value: "close", times: 1 };

/** Sends heads of one feature over one version of HTTP, and tells what each costs the proxy. */
class HeadLab {
  /** Microseconds of a usual head, the least so far: other work on the machine can only add to them. */
  private usual = Infinity;
  /** The same of a head after whose response the proxy closes the connection. */
  private usualAlone = Infinity;
  private client: HeadClient | undefined = undefined;
  /** CPU nanoseconds of the worker after the last measurement. */
  private after: number | undefined = undefined;

  constructor(
    private readonly site: HeadSite,
    readonly feature: Feature,
    readonly version: Version,
  ) {}

  close(): void {
    this.client?.close();
  }

  /** The worker has served other features since. */
  begin(): void {
    this.after = undefined;
  }

  async warmUp(requests: number): Promise<void> {
    this.begin();
    await this.cost(new Array<undefined>(requests).fill(undefined));
    await this.lookAtUsual(3);
  }

  async lookAtUsual(batches: number): Promise<void> {
    for (let i = 0; i < batches; i++) {
      const { microseconds } = await this.cost(new Array<undefined>(MANY).fill(undefined));
      this.usual = Math.min(this.usual, microseconds);
      const alone = await this.cost(new Array<HostileField>(FEW).fill(CLOSE));
      this.usualAlone = Math.min(this.usualAlone, alone.microseconds);
    }
  }

  ratio({ microseconds, alone }: Cost): number {
    return microseconds / (alone ? this.usualAlone : this.usual);
  }

  async suspect(name: string, fields: readonly HostileField[]): Promise<Suspect> {
    return { lab: this, name, fields, ratio: this.ratio(await this.cost(fields)) };
  }

  /**
   * What one of the requests costs. If the proxy closes the connection after one of them, it has received those behind in
   * vain: then each is sent alone. What a new connection costs does not count.
   */
  async cost(fields: readonly (HostileField | undefined)[]): Promise<Cost> {
    let nanoseconds = 0;
    let alone = false;
    let before: number | undefined;
    for (let sent = 0; sent < fields.length;) {
      const isNew = this.client === undefined || this.client.closed;
      const client = await this.connected();
      // Between two measurements on a connection the worker has nothing to do.
      before ??= isNew || this.after === undefined ? await this.settled() : this.after;
      const batch = this.batchOf(fields, sent, alone ? 1 : MANY);
      await client.send(batch.map((field) => this.request(field)));
      if (client.closed && !alone) {
        [nanoseconds, sent, alone, before] = [0, 0, true, undefined];
        this.after = undefined;
        continue;
      }
      sent += batch.length;
      if (!alone && sent < fields.length) continue;
      this.after = await this.settled();
      nanoseconds += this.after - before;
      before = undefined;
    }
    return { microseconds: nanoseconds / 1000 / fields.length, alone };
  }

  private async connected(): Promise<HeadClient> {
    if (this.client !== undefined && !this.client.closed) return this.client;
    const port = this.version === "1.1" ? this.site.http : this.site.https;
    const from = ADDRESSES[this.feature.trusted === true ? 1 : 0];
    return (this.client = await HeadClient.connect(this.version, port, from));
  }

  /** What is sent in one write from an index on: an upstream sends one kind of head at a time. */
  private batchOf<T>(fields: readonly T[], from: number, count: number): readonly T[] {
    const batch = fields.slice(from, from + count);
    const other = this.feature.responds === true ? batch.findIndex((field) => field !== batch[0]) : -1;
    return other === -1 ? batch : batch.slice(0, other);
  }

  private request(field: HostileField | undefined): HeadRequest {
    const { request, responds } = this.feature;
    if (responds !== true) return { ...request, hostile: field };
    this.site.upstream.lines =
      field === undefined ? "" : `${field.name}: ${field.value}\r\n`.repeat(field.times);
    return request;
  }

  /**
   * CPU nanoseconds of the worker, when it has nothing more to do: of a thread that runs the kernel tells too few. Of one
   * that waits for a core it tells all, so a busy machine is not waited for.
   */
  private async settled(): Promise<number> {
    const folder = `/proc/${this.site.worker}`;
    const end = performance.now() + SETTLED_MS;
    for (let idle = 0; idle < 2 && performance.now() < end;) {
      await turn();
      const state = /\) (\S)/.exec(readFileSync(`${folder}/stat`, "latin1"))?.[1];
      idle = state === "S" ? idle + 1 : 0;
    }
    return readdirSync(`${folder}/task`).reduce((sum, thread) => {
      const [ran] = readFileSync(`${folder}/task/${thread}/schedstat`, "latin1").split(" ");
      return sum + Number(ran);
    }, 0);
  }
}

const SETTLED_MS = 20;
