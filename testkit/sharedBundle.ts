import { copyFile } from "node:fs/promises";
import { sharedFile } from "./sharedFile.js";

/** The bundle of the sources as they are, the same file for all tests of a run; to build it takes longer than most tests. */
export const sharedBundle = (): Promise<string> =>
  sharedFile("portico.mjs", async (file) => (await import("../build/bundle.js")).buildBundle(file));

/** The same as a file of the test's own, which it may change. */
export async function copyOfBundle(to: string): Promise<string> {
  await copyFile(await sharedBundle(), to);
  return to;
}

/** For the environment of a proxy: memory that was given back is filled, so that its bytes are seen if they are still used. */
export const FILLED_MEMORY = "PORTICO_FILL_SPENT_MEMORY=1";
