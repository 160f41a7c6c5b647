import { sharedFile } from "./sharedFile.js";

/** The bundle of the sources as they are, the same file for all tests of a run; to build it takes longer than most tests. */
export const sharedBundle = (): Promise<string> =>
  sharedFile("portico.mjs", async (file) => (await import("../../build/bundle.js")).buildBundle(file));
