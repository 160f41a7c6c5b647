import { createRequire } from "node:module";
import path from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../build/paths.js";
import type * as Demo from "./run.js";

const HELP = `npm start [-- OPTIONS]: the whole front end on this machine, without Terraform, root or network

Synthesizes main.ts in both modes, lays the files out below out/, starts small stand-ins for the three daemons, serves
each mode with the bundled proxy on loopback and checks every expected response. Then goes on serving TLS mode until
Ctrl-C. Nothing is touched outside out/, dist/ and a temporary folder.

  --once      end after the checks; the exit code is 0 if all of them pass
  --out DIR   lay the hosts out below another folder than out/
  --help      print this
`;

/** Undoes what was done so far. */
let cleanUp = (): Promise<void> => Promise.resolve();

async function main(): Promise<number> {
  const options = readOptions();
  if (typeof options === "number") return options;
  // Whoever asks for help does not wait until all of this is loaded.
  const demo = createRequire(__filename)("./run.js") as typeof Demo;
  cleanUp = demo.cleanUp;
  return demo.runDemo(options);
}

function readOptions(): Demo.DemoOptions | number {
  try {
    const { values } = parseArgs({
      options: { once: { type: "boolean" }, out: { type: "string" }, help: { type: "boolean", short: "h" } },
    });
    if (values.help === true) {
      console.log(HELP.trimEnd());
      return 0;
    }
    return { once: values.once === true, out: path.resolve(values.out ?? path.join(ROOT, "out")) };
  } catch (error) {
    console.error(`${(error as Error).message}\n\n${HELP}`);
    return 2;
  }
}

let finishing = false;

/** Ends the demo once, with the first reason there was: stopping the proxy must not count as its failure. */
async function finish(code: number, message: string): Promise<void> {
  if (finishing) return;
  finishing = true;
  if (message !== "") (code === 0 ? console.log : console.error)(message);
  await cleanUp();
  process.exit(code);
}

// Being stopped is the expected end of a demo.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => void finish(0, "\nStopping the proxy and the daemons."));
}
main().then(
  (code) => finish(code, ""),
  (error: Error) => finish(1, `\nThe demo failed. ${error.message}`),
);
