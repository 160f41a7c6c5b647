import { copyFile } from "node:fs/promises";
import { buildBundle } from "../../build/bundle.js";
import { sharedFile } from "./sharedFile.js";

/** A bundle of the sources as a file of the test's own, which it may change; built once for all tests of a run. */
export async function copyOfBundle(to: string): Promise<string> {
  await copyFile(await sharedFile("portico.mjs", buildBundle), to);
  return to;
}
