import { mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import type { Bench, Row, Sample } from "../lib/bench.js";
import { run } from "../lib/children.js";
import { ABSOLUTE, type Work } from "../lib/work.js";

/** What the package costs those who write stacks: to load, to pack and to install. */

const ROOT = path.resolve(__dirname, "../..");
const LIMIT_MS = 180_000;

/** CPU milliseconds of `require`, in a fresh process that has loaded cdktf, beside what cdktf takes on that machine. */
export const importing: Work = {
  name: "import",
  what: "import of the library, beyond cdktf",
  unit: "ms",
  by: "cpu",
  bars: [{ row: "cdktf-portico", to: "cdktf", limit: 0.75 }],
  quick: true,
  run: async (bench) => {
    const entries = { "cdktf-portico": "index.js", "with testing": "testing/index.js", cdktf: undefined };
    const samples = new Map(Object.keys(entries).map((name) => [name, [] as Sample[]]));
    for (let round = 0; round < bench.rounds; round++) {
      for (const [name, entry] of Object.entries(entries)) {
        bench.note(`${name}: round ${round + 1}`);
        samples.get(name)!.push(await timeToLoad(bench, entry));
      }
    }
    return [...samples].map(([proxy, all]): Row => {
      return { proxy, family: proxy === "cdktf" ? "native" : "portico", samples: all };
    });
  },
};

/** @param entry a module of the library; by default cdktf itself */
async function timeToLoad(bench: Bench, entry: string | undefined): Promise<Sample> {
  const files = entry === undefined ? [] : [path.join(ROOT, "dist/lib", entry)];
  const program = `
    const load = (files) => {
      const [cpu, at] = [process.cpuUsage(), performance.now()];
      files.forEach((file) => require(file));
      const { user, system } = process.cpuUsage(cpu);
      return { value: (user + system) / 1000, note: (performance.now() - at).toFixed(0) + " ms by the clock" };
    };
    const library = load(["cdktf"]);
    console.log(JSON.stringify(${entry === undefined ? "library" : `load(${JSON.stringify(files)})`}));`;
  const command = [process.execPath, "-e", program];
  const { stdout } = await run(command, { cores: bench.proxyCores, cwd: ROOT, limitMs: LIMIT_MS });
  return JSON.parse(stdout) as Sample;
}

/** What \`npm pack` makes. */
export const packing: Work = {
  name: "package",
  what: "the package, packed and unpacked",
  unit: "MB",
  by: "memory",
  bars: [{ row: "packed", to: ABSOLUTE, limit: 1.5 }],
  run: async (bench) => {
    const { size, unpackedSize, entryCount } = await pack(bench.site.folder);
    const row = (proxy: string, bytes: number, note: string): Row => {
      return { proxy, family: "portico", samples: [{ value: bytes / 1e6, note }] };
    };
    return [row("packed", size, `${entryCount} files`), row("unpacked", unpackedSize, "")];
  },
};

interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly unpackedSize: number;
  readonly entryCount: number;
}

async function pack(folder: string): Promise<Packed> {
  const command = ["npm", "pack", "--json", "--ignore-scripts", "--pack-destination", folder];
  const { stdout } = await run(command, { cwd: ROOT, limitMs: LIMIT_MS });
  return (JSON.parse(stdout) as Packed[])[0]!;
}

/**
 * A fresh project gets cdktf, and then the package. What npm has fetched before comes from its cache, as on a machine that
 * has seen cdktf: the network is not what is measured.
 */
export const installing: Work = {
  name: "install",
  what: "`npm install` of the package, where cdktf is installed",
  unit: "s",
  by: "clock",
  bars: [{ row: "cdktf-portico", to: ABSOLUTE, limit: 5 }],
  run: async (bench) => {
    const tarball = path.join(bench.site.folder, (await pack(bench.site.folder)).filename);
    const [own, library]: [Sample[], Sample[]] = [[], []];
    for (let round = 0; round < Math.min(bench.rounds, 3); round++) {
      bench.note(`round ${round + 1}`);
      const folder = path.join(bench.site.folder, `install-${round}`);
      mkdirSync(folder);
      writeFileSync(path.join(folder, "package.json"), '{ "private": true }\n');
      library.push(await install(folder, ["cdktf@0.21", "constructs@10"]));
      own.push(await install(folder, [tarball]));
      rmSync(folder, { recursive: true });
    }
    return [
      { proxy: "cdktf-portico", family: "portico", samples: own },
      { proxy: "cdktf, constructs", family: "native", samples: library },
    ];
  },
};

async function install(folder: string, packages: readonly string[]): Promise<Sample> {
  const [packagesBefore, bytesBefore] = contents(folder);
  const at = performance.now();
  const command = ["npm", "install", "--prefer-offline", "--no-audit", "--no-fund", ...packages];
  const { code, stderr } = await run(command, { cwd: folder, limitMs: LIMIT_MS });
  if (code !== 0) throw new Error(`npm install ${packages.join(" ")}: ${stderr}`);
  const value = (performance.now() - at) / 1000;
  const [packagesNow, bytesNow] = contents(folder);
  const megabytes = ((bytesNow - bytesBefore) / 1e6).toFixed(1);
  return { value, note: `${packagesNow - packagesBefore} packages, ${megabytes} MB` };
}

/** How many packages there are, and the bytes of their files. */
function contents(folder: string): [packages: number, bytes: number] {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((one) => one.isFile());
  const isManifest = /node_modules\/(?:@[^/]+\/)?[^/]+$/;
  return [
    files.filter((one) => one.name === "package.json" && isManifest.test(one.parentPath)).length,
    files.reduce((bytes, one) => bytes + statSync(path.join(one.parentPath, one.name)).size, 0),
  ];
}
