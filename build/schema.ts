import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { configJsonSchema } from "../src/model/index.js";
import { DIST } from "./paths.js";

/** Writes the JSON Schema of the config, which is deployed with the runtime. @returns its size in bytes */
export function buildSchema(): number {
  const text = `${JSON.stringify(configJsonSchema(), null, 2)}\n`;
  mkdirSync(DIST, { recursive: true });
  writeFileSync(join(DIST, "portico.schema.json"), text);
  return Buffer.byteLength(text);
}
