import { inspect } from "node:util";
import { laboratory, numberOf, replayedBy, seedOption } from "../../../testkit/laboratory.js";
import { Pool } from "../pool.js";
import { play } from "./play.js";
import { type Scene, sceneOf, scenes } from "./scene.js";
import { completed, FEATURE_NAMES, type FeatureName, fit, PAIRS, pairsOf } from "./table.js";

laboratory(
  `npm run features -- [OPTIONS]: every pair of features that change what a request gets, or when

The deployed proxy has two to four of ${FEATURE_NAMES.join(", ")}. Clients
over HTTP/1.1, TLS and HTTP/2 send random bytes both ways while servers end and return, pauses begin and end, and the proxy
reloads or is upgraded. Each byte has to be the one that was sent, nobody is refused without a rule, sessions stay, and
afterwards nothing is held.`,
  {
    scenes: [undefined, "how many are enough (default: until each pair was played)"],
    seconds: [undefined, "after how many seconds no other scene begins; each takes some (default: never)"],
    seed: [undefined, "which (default: another one in each run)"],
    case: [undefined, "only the scene of that number"],
    features: [undefined, "scenes of these features, separated by commas; as many as --scenes says, or 10"],
  },
  async (given) => {
    const seed = seedOption(given.seed);
    const pool = new Pool(seed);
    const left = new Set(PAIRS);
    const only = given.case === undefined ? undefined : numberOf("case", given.case, 0);
    const named = given.features === undefined ? undefined : featuresOf(given.features);
    const scenesGiven = given.scenes ?? (named === undefined ? undefined : "10");
    const count = scenesGiven === undefined ? undefined : numberOf("scenes", scenesGiven);
    const seconds = given.seconds === undefined ? Infinity : numberOf("seconds", given.seconds);
    const until = performance.now() + seconds * 1_000;
    const wrong: string[] = [];
    const again = replayedBy("features", seed);
    const asNamed = given.features === undefined ? "" : ` --features ${given.features}`;
    let next = 0;
    for (const drawn of named === undefined ? scenes(seed) : ofFeatures(seed, named)) {
      if (only !== undefined && drawn.number < only) continue;
      const isEnough = performance.now() > until || (count === undefined ? left.size === 0 : next++ >= count);
      if (only === undefined ? isEnough : drawn.number > only) break;
      if (only !== undefined) console.log(inspect(drawn, { depth: null, breakLength: 160 }));
      const { faults, exchanges, bytes, statuses } = await play(drawn, pool);
      for (const pair of pairsOf(drawn.features)) left.delete(pair);
      const figures = `${exchanges} exchanges, ${Math.round(bytes / 2 ** 20)} MiB, ${inspect(statuses)}`;
      console.log(`${drawn.number} ${drawn.features.join(", ")}: ${figures}, pairs left: ${left.size}`);
      if (faults.length > 0)
        wrong.push(
          `${drawn.features.join(", ")}:\n${faults.slice(0, FAULTS_MAX).join("\n")}\n${again(drawn.number)}${asNamed}`,
        );
    }
    return { wrong };
  },
);

const FAULTS_MAX = 12;

function* ofFeatures(seed: number, features: readonly FeatureName[]): Generator<Scene> {
  for (let number = 0; ; number++) yield sceneOf(seed, number, features);
}

function featuresOf(text: string): FeatureName[] {
  const names = text.split(",") as FeatureName[];
  const unknown = names.filter((name) => !FEATURE_NAMES.includes(name));
  if (unknown.length > 0) throw new Error(`--features: no feature ${unknown.join(", ")}`);
  if (!fit(names)) throw new Error(`--features ${text}: they cannot be together`);
  return completed(names);
}
