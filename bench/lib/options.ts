import path from "node:path";
import { parseArgs } from "node:util";
import { numberOf } from "../../testkit/laboratory.js";
import type { Work } from "./work.js";

export interface Options {
  readonly help: boolean;
  readonly micro: boolean;
  readonly redraw: boolean;
  readonly quick: boolean;
  readonly requireNginx: boolean;
  readonly rounds: number;
  /** Node binary that runs the proxies which are Node programs. */
  readonly node: string;
  readonly workers: number;
  readonly work: readonly Work[];
  /** Names of the proxies that take part; undefined for all. */
  readonly proxies?: readonly string[];
  /** Bundle of an earlier build, that takes part beside the one of the sources. */
  readonly before?: string;
  /** Whether everything was run, so that the results may stand in the README. */
  readonly complete: boolean;
}

/** @throws Error with a text for the user */
export function parseOptions(argv: readonly string[], all: readonly Work[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      help: { type: "boolean", default: false },
      micro: { type: "boolean", default: false },
      redraw: { type: "boolean", default: false },
      quick: { type: "boolean", default: false },
      "require-nginx": { type: "boolean", default: false },
      rounds: { type: "string" },
      node: { type: "string", default: process.execPath },
      workers: { type: "string", default: "1" },
      only: { type: "string" },
      proxies: { type: "string" },
      before: { type: "string" },
    },
  });
  const quick = values.quick;
  return {
    help: values.help,
    micro: values.micro,
    redraw: values.redraw,
    quick,
    requireNginx: values["require-nginx"],
    rounds: numberOf("rounds", values.rounds ?? (quick ? "6" : "8")),
    node: path.resolve(values.node),
    workers: numberOf("workers", values.workers),
    work: selected(all, values.only, quick),
    before: values.before && path.resolve(values.before),
    proxies: values.proxies?.split(",") ?? (quick ? ["portico", "nginx"] : undefined),
    complete: values.only === undefined && values.proxies === undefined && !quick && values.workers === "1",
  };
}

export function usage(all: readonly Work[]): string {
  const width = Math.max(...all.map((work) => work.name.length));
  const items = all.map((work) => `  ${work.name.padEnd(width)}  ${work.what}`).join("\n");
  return `npm run bench -- [OPTION...]

  --only NAME[,NAME]     only these items; "download-*" for all that begin so
  --quick                under three minutes: what is judged by CPU time, and the start; Portico and nginx only.
                         Fails when a CPU ratio is more than 25 % over the highest seen
  --rounds N             rounds of each item (default 8; quick: 6)
  --workers N            workers of each proxy (default 1)
  --proxies NAME[,NAME]  only these proxies
  --node PATH            Node that runs Portico (default: the one that runs the benchmark)
  --before FILE          a portico.mjs of an earlier build takes part in the same rounds: what did a change cost?
  --require-nginx        fail when nginx is not installed
  --micro                micro-benchmarks of Portico's hot functions instead
  --redraw               the README's summary and pictures again, from the last complete run; measures nothing
  --help                 this text

Items:
${items}`;
}

function selected(all: readonly Work[], only: string | undefined, quick: boolean): readonly Work[] {
  if (only === undefined) return quick ? all.filter((work) => work.quick === true) : all;
  const chosen = only.split(",").flatMap((name) => {
    const found = name.endsWith("*")
      ? all.filter((work) => work.name.startsWith(name.slice(0, -1)))
      : all.filter((work) => work.name === name);
    if (found.length > 0) return found;
    throw new Error(`--only ${name}: there is no such item; see --help`);
  });
  return all.filter((work) => chosen.includes(work));
}
