import { availableParallelism } from "node:os";
import path from "node:path";
import { BEYOND_LIMIT } from "../testkit/exitCodes.js";
import { ALL_CORES, type Bench, type Row } from "./lib/bench.js";
import { cleanUpOnExit, findProgram } from "./lib/children.js";
import { installPeers } from "./lib/dependencies.js";
import { judge, type Result, type Verdict } from "./lib/judge.js";
import { describeMachine } from "./lib/machine.js";
import { type Options, parseOptions, usage } from "./lib/options.js";
import { redraw, writeReport } from "./lib/report.js";
import { runMicro } from "./lib/runMicro.js";
import { createSite, FULL_BULK, QUICK_BULK } from "./lib/site.js";
import { digits, resultTable, summaryTable } from "./lib/table.js";
import { startUpstreams } from "./lib/upstreams.js";
import { PROXIES } from "./proxies/index.js";
import { buildPortico, porticoBefore } from "./proxies/portico.js";
import type { ProxyKind } from "./lib/proxy.js";
import { WORK } from "./work/index.js";
import { ABSOLUTE, BEFORE, NO_SLOWER, type Work } from "./lib/work.js";

/** `npm run bench`: Portico beside nginx and its peers, on the same work. Resolves with the exit code. */
async function main(): Promise<number> {
  const options = parseOptions(process.argv.slice(2), WORK);
  if (options.help) {
    console.log(usage(WORK));
    return 0;
  }
  if (options.redraw) {
    redraw();
    return 0;
  }
  cleanUpOnExit();
  if (options.micro) {
    await runMicro(coresFor(1).proxy);
    return 0;
  }
  requireTools();
  if (!options.quick) installPeers();
  const kinds = installedKinds(options);
  const bench = await prepare(options, kinds);
  const results: Result[] = [];
  for (const one of options.work) {
    const work = options.before === undefined ? one : { ...one, bars: [...one.bars, NO_SLOWER] };
    const result = await runWork(work, bench);
    results.push(result);
    note("");
    console.log(resultTable(result));
  }
  console.log(summaryTable(results));
  writeReport(results, describeMachine(PROXIES, options.node), options);
  return exitCode(results, options);
}

/** Programs without which nothing can be measured, and the Debian packages that have them. */
const TOOLS = {
  taskset: "util-linux",
  wrk: "wrk",
  h2load: "nghttp2-client",
  curl: "curl",
  openssl: "openssl",
};

function requireTools(): void {
  const missing = Object.entries(TOOLS).filter(([tool]) => findProgram(tool) === undefined);
  if (missing.length === 0) return;
  const packages = missing.map(([, name]) => name).join(" ");
  throw new Error(`${missing.map(([tool]) => tool).join(", ")} not found (apt-get install ${packages})`);
}

async function prepare(options: Options, kinds: readonly ProxyKind[]): Promise<Bench> {
  const bulk = options.quick ? QUICK_BULK : FULL_BULK;
  const site = await createSite(bulk);
  await buildPortico(site.folder, options.node);
  if (options.node !== process.execPath) note(`Portico runs on ${options.node}`);
  const cores = coresFor(options.workers);
  return {
    site,
    upstreams: await startUpstreams(site, cores.load),
    kinds,
    proxyCores: cores.proxy,
    loadCores: cores.load,
    workers: options.workers,
    rounds: options.rounds,
    quick: options.quick,
    bulk: { ...bulk, upload: path.join(site.media, bulk.name) },
    note,
  };
}

async function runWork(work: Work, bench: Bench): Promise<Result> {
  const run = (): Promise<Row[]> => work.run({ ...bench, note: (text) => note(`${work.name}: ${text}`) });
  try {
    let rows = await run();
    let result = judge(work, rows);
    // Something else may have kept the machine busy for all of its rounds: a verdict takes more than one attempt.
    for (let left = ATTEMPTS_MAX - 1; left > 0 && bench.quick && regressed(result); left--) {
      rows = joined(rows, await run());
      result = judge(work, rows);
    }
    return result;
  } catch (error) {
    return { ...judge(work, []), failure: (error as Error).message };
  }
}

/** Of an item of a quick run. */
const ATTEMPTS_MAX = 3;

const regressed = (result: Result): boolean =>
  result.verdicts.some((verdict) => isRegression(result, verdict));

/** Rounds of two runs of the same item. */
function joined(rows: readonly Row[], more: readonly Row[]): Row[] {
  return rows.map((row, i) => ({ ...row, samples: [...row.samples, ...more[i]!.samples] }));
}

function installedKinds({ proxies, requireNginx, before }: Options): ProxyKind[] {
  const all = before === undefined ? PROXIES : [...PROXIES, porticoBefore(before)];
  const wanted = all.filter(({ name }) => proxies === undefined || name === BEFORE || proxies.includes(name));
  const missing = wanted.filter((kind) => kind.version() === undefined);
  for (const { name, family } of missing) {
    if (family === "nginx" && requireNginx)
      throw new Error("nginx is not installed, and --require-nginx asks for it");
    const how = family === "node" ? "npm ci --prefix bench" : `apt-get install ${name}`;
    console.error(`${name} is not installed and left out (${how})`);
  }
  return wanted.filter((kind) => !missing.includes(kind));
}

/** The proxies have the first cores, one a worker, and everything else the next one; or all share what there is. */
function coresFor(workers: number): { proxy: string; load: string } {
  const cores = availableParallelism();
  if (cores < 2) return { proxy: "0", load: "0" };
  if (workers >= cores) return { proxy: ALL_CORES, load: ALL_CORES };
  return { proxy: workers === 1 ? "0" : `0-${workers - 1}`, load: String(workers) };
}

/** Other work on the machine moves CPU figures by some percent; a regression worth stopping for moves them by more. */
const QUICK_TOLERANCE = 1.25;

/**
 * What a quick run fails for; time by the clock is nothing to be judged where others work. With few rounds one happy
 * round of nginx moves the lowest, and one bad round of ours the median: code that became slower moves both.
 */
function isRegression({ by }: Result, { passed, reached, median, limit, worst = limit }: Verdict): boolean {
  return passed === false && by === "cpu" && Math.min(reached!, median!) > worst * QUICK_TOLERANCE;
}

/** Whoever shares the proxy's core empties its cache, which costs more where more is copied: that is not a verdict. */
const BUSY_SHARE = 0.2;

function wasBusy({ lines }: Result): boolean {
  return lines.some(({ othersShare }) => othersShare !== undefined && othersShare > BUSY_SHARE);
}

function exitCode(results: readonly Result[], { quick }: Options): number {
  const broken = results.filter(
    ({ failure, lines }) =>
      failure !== undefined || lines.some((l) => l.family === "portico" && l.failure !== undefined),
  );
  for (const { name, failure, lines } of broken) {
    console.error(`${name}: ${failure ?? lines.find((l) => l.failure !== undefined)!.failure}`);
  }
  const missed = results.flatMap((result) =>
    result.verdicts
      .filter((v) => (quick ? isRegression(result, v) : v.passed === false))
      .map(({ reached, limit, to }) => {
        const bar = `${limit}${to === ABSOLUTE ? "" : ` × ${to}`}`;
        const excused = quick && wasBusy(result);
        const text = `${result.name}: ${digits(reached)} against a bar of ${bar}`;
        console.error(excused ? `not judged, the proxy's core was shared: ${text}` : `missed: ${text}`);
        return excused;
      }),
  );
  if (broken.length > 0) return 1;
  return missed.includes(false) ? BEYOND_LIMIT : 0;
}

/** What is being done, on one line that the next overwrites; nothing where nobody watches. */
function note(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text.slice(0, 100)}`);
}

main().then(
  (code) => process.exit(code),
  (error: Error) => {
    console.error(`bench: ${error.message}`);
    process.exit(2);
  },
);
