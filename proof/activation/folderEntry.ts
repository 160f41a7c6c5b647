import { activate, deactivate } from "../../src/host/activation/index.js";

/**
 * `portico activate` and `portico deactivate` below a folder, without the command line, which would take most of the time
 * of a start: `activate|deactivate|purge ROOT INCOMING`.
 */
const [, , what, root = "", incoming] = process.argv;
const options = { root, lockSeconds: 10, report: () => undefined };

async function run(): Promise<void> {
  if (what === "activate") {
    await activate({ ...options, incoming, dryRun: false, signal: new AbortController().signal });
  } else {
    const { removed, problems } = await deactivate({ ...options, purge: what === "purge" });
    if (removed === "nothing" || problems.length > 0) process.exitCode = 1;
  }
}

void run();
