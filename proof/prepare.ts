import { spawnSync } from "node:child_process";
import { relative } from "node:path";
import { ROOT } from "../build/paths.js";
import { buildPebble } from "./acme/pebble/programs.js";
import { prepareApplication } from "./application/application.js";
import { prepareCopyparty } from "./applications/copyparty.js";
import { prepareRadicale } from "./applications/radicale.js";
import { buildSftpgo } from "./applications/sftpgo.js";
import { prepareCrowdSec } from "./bans/crowdsec.js";
import { prepareImages } from "./hosts/harness/image.js";
import { prepareCompose } from "./package/podmanCompose.js";
import { prepareNewProjects } from "./package/newProject.js";
import { prepareProviders } from "./terraform/providers/providers.js";
import { buildOauth2Proxy } from "./portals/oauth2Proxy.js";
import { prepareServers } from "./upstreams/servers.js";

/**
 * `tsx proof/prepare.ts [ARGUMENTS OF JEST]`: makes ready what the tests of these arguments need and what takes longer
 * than a test may: what is compiled, and what comes from a registry. `npm test` runs it before the tests.
 *
 * Progress goes to the error stream. Printed are the folders of tests that have to be left out, one a line; in CI there
 * are none, and what cannot be made ready is a failure.
 */
interface Preparation {
  readonly name: string;
  /** Folders of the tests that need it. */
  readonly tests: readonly string[];
  readonly make: () => Promise<unknown>;
  /** Whether it builds programs in Go. */
  readonly compiles?: true;
}

const PREPARATIONS: readonly Preparation[] = [
  {
    name: "Pebble",
    tests: ["proof/acme/", "proof/hosts/", "proof/package/composeSites."],
    make: buildPebble,
    compiles: true,
  },
  {
    name: "Terraform's providers",
    tests: ["proof/terraform/", "proof/hosts/"],
    make: prepareProviders,
    compiles: true,
  },
  { name: "Django", tests: ["proof/application/"], make: prepareApplication },
  { name: "packages of a new project", tests: ["proof/package/newProject."], make: prepareNewProjects },
  {
    name: "podman-compose",
    tests: ["proof/package/compose.", "proof/package/composeSites."],
    make: prepareCompose,
  },
  { name: "copyparty", tests: ["proof/applications/real."], make: prepareCopyparty },
  { name: "Radicale", tests: ["proof/applications/real."], make: prepareRadicale },
  { name: "SFTPGo", tests: ["proof/applications/real."], make: buildSftpgo, compiles: true },
  { name: "oauth2-proxy", tests: ["proof/portals/"], make: buildOauth2Proxy, compiles: true },
  { name: "upstream servers", tests: ["proof/upstreams/"], make: prepareServers, compiles: true },
  { name: "CrowdSec", tests: ["proof/bans/crowdsec."], make: prepareCrowdSec },
  { name: "Debian for the test hosts", tests: ["proof/hosts/"], make: prepareImages },
];

/** Test files that jest would run; jest.config.js leaves out those whose programs are missing. */
function testFiles(args: readonly string[]): string[] {
  // Watching has no end.
  const once = args.filter((arg) => !arg.startsWith("--watch"));
  const jest = [require.resolve("jest/bin/jest"), "--listTests", "--passWithNoTests", ...once];
  const { stdout } = spawnSync(process.execPath, jest, { cwd: ROOT, encoding: "utf8" });
  // In lines, or in JSON if the arguments ask for it. What is wrong with them Jest says itself when it is to run.
  return (stdout.match(/\/[^\n"]+\.test\.ts/g) ?? []).map((file) => relative(ROOT, file));
}

/** How often it is said what is still being done. */
const PROGRESS_MS = 15_000;

const say = (text: string): unknown => process.stderr.write(`${text}\n`);

/** Whether it is ready now. */
async function isReady({ name, make }: Preparation): Promise<boolean> {
  const start = performance.now();
  const seconds = (): number => Math.round((performance.now() - start) / 1000);
  const progress = setInterval(() => say(`${name}: being made ready (${seconds()} s)`), PROGRESS_MS);
  try {
    await make();
    if (seconds() > 0) say(`${name}: ready after ${seconds()} s`);
    return true;
  } catch (error) {
    say(`${name} cannot be made ready:\n${(error as Error).message}`);
    return false;
  } finally {
    clearInterval(progress);
  }
}

/** One build in Go after the other: each takes all cores, and two at once would both compile what they have in common. */
function inOrder(preparations: readonly Preparation[]): Promise<boolean[]> {
  let compiled: Promise<unknown> = Promise.resolve();
  return Promise.all(
    preparations.map((one) => {
      if (one.compiles !== true) return isReady(one);
      const ready = compiled.then(() => isReady(one));
      compiled = ready;
      return ready;
    }),
  );
}

async function main(): Promise<void> {
  const files = testFiles(process.argv.slice(2));
  const concerned = ({ tests }: Preparation): string[] =>
    tests.filter((folder) => files.some((file) => file.startsWith(folder)));
  const needed = PREPARATIONS.filter((one) => concerned(one).length > 0);
  const ready = await inOrder(needed);
  const failed = needed.filter((_, i) => !ready[i]);
  if (process.env["CI"] === undefined) console.log([...new Set(failed.flatMap(concerned))].join("\n"));
  else if (failed.length > 0) process.exitCode = 1;
}

void main();
