import fc from "fast-check";
import { SEED } from "./random.js";

/**
 * fast-check with the seed of the run; imported where it is used, because loading it takes every other suite longer. A
 * length that is allowed is generated too: without that a list of up to 200 steps has four on average, and most laws of
 * what is held, queued or full are asked of nothing.
 */
fc.configureGlobal({ seed: SEED, defaultSizeToMaxWhenMaxSpecified: true });
export default fc;
