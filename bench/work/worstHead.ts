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
  bars: [{ to: ABSOLUTE, limit: 10, worst: 10 }],
  quick: true,
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

interface Suspect {
  readonly feature: Feature;
  readonly version: Version;
  readonly field: HostileField;
  readonly ratio: number;
}

interface Measured extends Suspect {
  readonly ratios: readonly number[];
  readonly microseconds: number;
}

/**
 * In three steps, each of which looks longer at fewer heads: all names, each with all patterns together; the patterns of
 * those that cost most; and the worst of these.
 */
export async function search(
  site: HeadSite,
  bench: Pick<Bench, "note" | "rounds">,
  names = fieldNames(),
): Promise<Measured[]> {
  const suspects: Suspect[] = [];
  for (const version of ["1.1", "2.0"] as const) {
    for (const feature of FEATURES) {
      bench.note(`${feature.name}, HTTP/${version}`);
      const lab = await HeadLab.open(site, feature, version);
      suspects.push(...(await suspectsOf(lab, names)));
      lab.close();
    }
  }
  suspects.sort((a, b) => b.ratio - a.ratio);
  const measured: Measured[] = [];
  for (const [i, suspect] of suspects.slice(0, MEASURED).entries()) {
    bench.note(`measurement ${i + 1} of ${MEASURED}`);
    measured.push(await measure(site, suspect, bench.rounds));
  }
  return measured.sort((a, b) => Math.min(...b.ratios) - Math.min(...a.ratios));
}

/** Heads that are measured at length. */
const MEASURED = 16;
/** Names of each feature whose patterns are measured one by one. */
const NAMES = 3;
/** Requests at a time. */
const FEW = 6;
const MANY = 48;

/** For each of the dearest names the pattern that costs most. */
async function suspectsOf(lab: HeadLab, names: readonly string[]): Promise<Suspect[]> {
  const { feature, version } = lab;
  const usual = await lab.usual(FEW, 5);
  const costs: { name: string; microseconds: number }[] = [];
  for (const name of names) {
    const { microseconds } = await lab.cost(hostileFields(name, version, SAMPLE));
    costs.push({ name, microseconds });
  }
  costs.sort((a, b) => b.microseconds - a.microseconds);
  const suspects: Suspect[] = [];
  for (const { name } of costs.slice(0, NAMES)) {
    let worst: Suspect | undefined;
    for (const field of hostileFields(name, version, ALL)) {
      const { microseconds } = await lab.cost(new Array<HostileField>(FEW).fill(field));
      const ratio = microseconds / usual;
      if (worst === undefined || ratio > worst.ratio) worst = { feature, version, field, ratio };
    }
    suspects.push(worst!);
  }
  return suspects;
}

async function measure(site: HeadSite, suspect: Suspect, rounds: number): Promise<Measured> {
  const lab = await HeadLab.open(site, suspect.feature, suspect.version);
  const fields = new Array<HostileField>(MANY).fill(suspect.field);
  const costs: number[] = [];
  let usual = Infinity;
  for (let round = 0; round < Math.max(3, rounds); round++) {
    usual = Math.min(usual, await lab.usual(MANY, 1));
    costs.push((await lab.cost(fields)).microseconds);
  }
  lab.close();
  // Other work can only add to the time of either: the least usual request is the one to compare with.
  const ratios = costs.map((microseconds) => microseconds / usual);
  return { ...suspect, ratios, microseconds: Math.min(...costs) };
}

/** Sends heads of one feature over one version of HTTP, and tells what each costs the proxy. */
class HeadLab {
  private constructor(
    private readonly site: HeadSite,
    readonly feature: Feature,
    readonly version: Version,
    private client: HeadClient,
  ) {}

  static async open(site: HeadSite, feature: Feature, version: Version): Promise<HeadLab> {
    const lab = new HeadLab(site, feature, version, await HeadLab.connect(site, feature, version));
    await lab.usual(FEW, 3);
    return lab;
  }

  private static connect(site: HeadSite, feature: Feature, version: Version): Promise<HeadClient> {
    const port = version === "1.1" ? site.http : site.https;
    return HeadClient.connect(version, port, ADDRESSES[feature.trusted === true ? 1 : 0]);
  }

  close(): void {
    this.client.close();
  }

  /** Microseconds of a usual request; the least of some batches. */
  async usual(count: number, batches: number): Promise<number> {
    let least = Infinity;
    for (let i = 0; i < batches; i++) {
      const { microseconds } = await this.cost(new Array<undefined>(count).fill(undefined));
      least = Math.min(least, microseconds);
    }
    return least;
  }

  /** Microseconds of CPU for each of the requests. After a refusal that closes the connection, the rest is sent anew. */
  async cost(fields: readonly (HostileField | undefined)[]): Promise<{ microseconds: number }> {
    let nanoseconds = 0;
    for (let sent = 0; sent < fields.length;) {
      if (this.client.closed) this.client = await HeadLab.connect(this.site, this.feature, this.version);
      const left = fields.slice(sent);
      const batch = this.feature.responds === true ? left.slice(0, runOf(left)) : left;
      const requests = batch.map((field) => this.request(field));
      const before = await this.settled();
      const over = await this.client.send(requests);
      nanoseconds += (await this.settled()) - before;
      sent += this.client.closed ? Math.max(1, over) : batch.length;
    }
    return { microseconds: nanoseconds / 1000 / fields.length };
  }

  private request(field: HostileField | undefined): HeadRequest {
    const { request, responds } = this.feature;
    if (responds !== true) return { ...request, hostile: field };
    this.site.upstream.lines =
      field === undefined ? "" : `${field.name}: ${field.value}\r\n`.repeat(field.times);
    return request;
  }

  /** CPU nanoseconds of the worker, when it has nothing more to do: of a thread that runs the kernel tells too few. */
  private async settled(): Promise<number> {
    const folder = `/proc/${this.site.worker}`;
    for (let idle = 0, looks = 0; idle < 2 && looks < LOOKS_MAX; looks++) {
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

const LOOKS_MAX = 100_000;

/** How many of the first fields are the same: an upstream sends one at a time. */
function runOf(fields: readonly (HostileField | undefined)[]): number {
  const other = fields.findIndex((field) => field !== fields[0]);
  return other === -1 ? fields.length : other;
}
