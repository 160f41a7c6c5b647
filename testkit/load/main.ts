import { createLoadUpstream } from "./loadUpstream.js";
import { type LoadOptions, SteadyLoad } from "./steadyLoad.js";

/**
 * Load and upstream as processes of their own, for machines and namespaces that are not the tests':
 * `upstream PORT` serves until it is killed; `load OPTIONS` says `loading` once every kind had a response, runs until its
 * standard input ends, and prints the report.
 */
const [, , command, argument = ""] = process.argv;

if (command === "upstream") {
  createLoadUpstream().listen(Number(argument), "127.0.0.1", () => process.stdout.write("listening\n"));
} else {
  const load = new SteadyLoad(JSON.parse(argument) as LoadOptions);
  const timer = setInterval(() => {
    if (Object.values(load.report().responses).some((count) => count === 0)) return;
    clearInterval(timer);
    process.stdout.write("loading\n");
  }, 20);
  process.stdin.resume().on("end", () => {
    clearInterval(timer);
    void load
      .stop()
      .then((report) => process.stdout.write(`${JSON.stringify(report)}\n`, () => process.exit(0)));
  });
}
