import fc from "fast-check";
import { SEED } from "./random.js";

/**
 * fast-check with the seed of the run; imported where it is used, because loading it takes every other suite longer. Lists
 * become as long as `maxLength` allows: by default a list of up to 200 steps has four on average, too few for a queue.
 */
fc.configureGlobal({ seed: SEED, defaultSizeToMaxWhenMaxSpecified: true });
export default fc;
