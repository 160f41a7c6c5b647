import fc from "fast-check";
import { SEED } from "./random.js";

/** fast-check with the seed of the run; imported where it is used, because loading it takes every other suite longer. */
fc.configureGlobal({ seed: SEED });
export default fc;
