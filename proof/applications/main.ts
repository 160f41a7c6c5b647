import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { laboratory, numberOf } from "../../testkit/laboratory.js";
import type { RealApplication } from "./clients.js";
import { REAL, tryReal } from "./real.js";

laboratory(
  "Runs a real application behind its entry and uses it: npm run real-application -- --name openCloud --folder DIRECTORY",
  {
    name: [undefined, `which one: ${Object.keys(REAL).join(", ")}`],
    folder: [undefined, "directory with its programs, as they were built or installed"],
    mebibytes: ["1024", "size of the file that is uploaded"],
  },
  async ({ name = "", folder = "", mebibytes }) => {
    const real = (REAL as Readonly<Record<string, RealApplication>>)[name];
    if (real === undefined) throw new Error(`--name ${name}: give one of ${Object.keys(REAL).join(", ")}`);
    const missing = real.needs.filter((program) => !existsSync(join(folder, program)));
    if (missing.length > 0) throw new Error(`--folder ${folder}: has no ${missing.join(", ")}`);
    const seen = await tryReal(real, resolve(folder), numberOf("mebibytes", mebibytes) * 1_048_576);
    console.log([`${real.title}:`, ...seen].join("\n  "));
    return { wrong: [] };
  },
);
