import { activate } from "../../src/host/activation/index.js";
import { formatProblem, ProblemError } from "../../src/model/index.js";

/** `portico activate` below the folder `PORTICO_TEST_ROOT`, with the arguments that the script of a delivery gives it. */
const option = (name: string): string => process.argv[process.argv.indexOf(`--${name}`) + 1]!;
const report = (line: string): void => console.log(line);

activate({
  root: process.env["PORTICO_TEST_ROOT"]!,
  incoming: option("incoming"),
  document: option("document"),
  identity: { id: option("identity"), construct: option("construct") },
  dryRun: false,
  lockSeconds: 60,
  signal: new AbortController().signal,
  report,
}).catch((error: unknown) => {
  const texts = error instanceof ProblemError ? error.problems.map(formatProblem) : [String(error)];
  console.log(texts.join("\n"));
  process.exitCode = 1;
});
