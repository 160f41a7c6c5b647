import { readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { ROOT } from "./paths.js";

/** `npm version` runs it: the version of `package.json`, where the code can read it. */

const FILE = path.join(ROOT, "src/model/text/version.ts");

const { version } = JSON.parse(readFileSync(path.join(ROOT, "package.json"), "utf8")) as { version: string };
const text = readFileSync(FILE, "utf8");
writeFileSync(FILE, text.replace(/(?<=VERSION = )".*"/, JSON.stringify(version)));
