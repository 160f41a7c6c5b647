import { createRequire } from "node:module";
import path from "node:path";
import { ROOT } from "../build/paths.js";

/**
 * Runs `main.ts` for each set of variables of the argument, a JSON list. One process does it for all: to load cdktf takes
 * longer than everything else.
 */
const require = createRequire(__filename);
const main = path.join(ROOT, "main.ts");

for (const variables of JSON.parse(process.argv[2]!) as NodeJS.ProcessEnv[]) {
  Object.assign(process.env, variables);
  delete require.cache[main];
  try {
    require(main);
  } catch (error) {
    console.error(`in ${variables["PORTICO_MODE"]} mode:`);
    throw error;
  }
}
