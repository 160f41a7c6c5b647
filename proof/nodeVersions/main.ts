import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../../build/paths.js";
import { PIECES, WITHOUT } from "../../src/runtime/sockets/node/pieces.js";

/**
 * `npm run node-versions`: the runtime's tests on other versions of Node, and without what Node has no public name for.
 * The binaries are npm packages that npm fetches and checks by the lock file here.
 */
const USAGE = `npm run node-versions -- [OPTION...] [TEST FILE...]

  --node LINE[,LINE]   only these lines (default: all of proof/nodeVersions/package.json)
  --without none       with all pieces of src/runtime/sockets/node (default); the whole runtime suite
  --without each       without each piece alone, and without all; tests that they concern
  --without NAME,...   without these
  --path               prints the binary's path, and runs nothing`;

const CACHE = join(ROOT, ".cache/node");
/** The line that `NodeRuntime.pinned` deploys. */
const DEPLOYED = "24";

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
}

/** What is run with all pieces. */
const RUNTIME = ["__tests__/runtime/", "proof/processes/"];
/** What is run without pieces: every way in and out, and the processes. */
const CONCERNED = [
  "proof/processes/lifecycle",
  "__tests__/runtime/proxying",
  "__tests__/runtime/http2Exchange",
  "__tests__/runtime/staticFiles",
  "proof/transfer/largeTransfer",
  "proof/bytes/bytes",
];

function main(): void {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      help: { type: "boolean", default: false },
      node: { type: "string" },
      without: { type: "string", default: "none" },
      path: { type: "boolean", default: false },
    },
  });
  if (values.help) return console.log(USAGE);
  const lines = values.node?.split(",") ?? known();
  const unknown = lines.filter((line) => !known().includes(line));
  if (unknown.length > 0) throw new Error(`--node ${unknown.join(",")}: known are ${known().join(", ")}`);
  install(lines);
  if (values.path) return console.log(binary(lines[0]!));
  const { without } = values;
  const variants =
    without === "none" ? [""] : without === "each" ? [...Object.keys(PIECES), "all"] : [without];
  const tests =
    positionals.length > 0
      ? positionals
      : without === "none"
        ? RUNTIME
        : CONCERNED.map((name) => `${name}.test.ts`);
  const runs = lines.flatMap((line) => variants.map((pieces) => run(line, pieces, tests)));
  const failed = runs.filter(({ passed }) => !passed);
  for (const { name, seconds, passed } of runs)
    console.log(`${name}: ${passed ? "passed" : "failed"} in ${seconds} s`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function manifest(): Manifest {
  return JSON.parse(readFileSync(join(__dirname, "package.json"), "utf8")) as Manifest;
}

function known(): string[] {
  const { dependencies, devDependencies } = manifest();
  return Object.keys({ ...dependencies, ...devDependencies })
    .map((name) => name.replace("node-", ""))
    .sort();
}

function binary(line: string): string {
  return join(CACHE, `node_modules/node-${line}/bin/node`);
}

/** Fetches what is missing: of the deployed version alone where no other is asked for. */
function install(lines: readonly string[]): void {
  const current = (file: string): string => readFileSync(join(__dirname, file), "utf8");
  const cached = join(CACHE, "package-lock.json");
  const fresh = existsSync(cached) && readFileSync(cached, "utf8") === current("package-lock.json");
  if (fresh && lines.every((line) => existsSync(binary(line)))) return;
  mkdirSync(CACHE, { recursive: true });
  for (const file of ["package.json", "package-lock.json", ".npmrc"])
    cpSync(join(__dirname, file), join(CACHE, file));
  const omit = lines.every((line) => line === DEPLOYED) ? ["--omit=dev"] : [];
  const { status } = spawnSync("npm", ["ci", "--ignore-scripts", "--loglevel=error", ...omit], {
    cwd: CACHE,
    stdio: ["ignore", process.stderr, process.stderr],
  });
  if (status !== 0) throw new Error("the versions of Node could not be installed");
}

interface Run {
  readonly name: string;
  readonly passed: boolean;
  readonly seconds: number;
}

function run(line: string, pieces: string, tests: readonly string[]): Run {
  const node = binary(line);
  const name = `Node ${line}${pieces === "" ? "" : ` without ${pieces}`}`;
  console.log(`==> ${name}`);
  const env: NodeJS.ProcessEnv = { ...process.env, PATH: dirname(node) + delimiter + process.env["PATH"] };
  delete env[WITHOUT];
  if (pieces !== "") env[WITHOUT] = pieces;
  const from = Date.now();
  const { status } = spawnSync(node, [join(ROOT, "node_modules/jest/bin/jest.js"), ...tests], {
    cwd: ROOT,
    env,
    stdio: "inherit",
  });
  return { name, passed: status === 0, seconds: Math.round((Date.now() - from) / 1000) };
}

main();
