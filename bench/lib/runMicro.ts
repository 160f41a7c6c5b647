import { mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { build } from "esbuild";
import { ROOT } from "../../build/paths.js";
import { ownFolder, runChecked } from "./children.js";
import { digits, markdown } from "./table.js";

interface MicroResult {
  readonly name: string;
  readonly median: number;
  readonly lowest: number;
}

/** Runs `micro.ts` as Portico runs: bundled, on Node itself, pinned like the proxy. */
export async function runMicro(cores: string): Promise<void> {
  const folder = ownFolder(tmpdir());
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, "micro.mjs");
  await build({
    absWorkingDir: ROOT,
    entryPoints: ["bench/micro.ts"],
    outfile: file,
    bundle: true,
    format: "esm",
    platform: "node",
    target: "node20",
    minifySyntax: true,
    charset: "utf8",
    logLevel: "warning",
  });
  const output = await runChecked([process.execPath, file], { cores, limitMs: 180_000 });
  const { results } = JSON.parse(output) as { results: MicroResult[] };
  const rows = results.map(({ name, median, lowest }) => [name, digits(median), digits(lowest)]);
  console.log(markdown(["function", "ns/op", "lowest"], rows));
  mkdirSync(path.join(ROOT, "bench/results"), { recursive: true });
  writeFileSync(path.join(ROOT, "bench/results/micro.json"), `${JSON.stringify(results, null, 2)}\n`);
}
