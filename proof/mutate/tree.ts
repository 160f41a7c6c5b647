import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import type { Fault } from "./faults.js";
import { reachedFile, RECORD, withSwitches } from "./switches.js";

export type NumberedFault = Fault & { readonly id: number };

/** What became of a run of tests. */
export interface Verdict {
  /** Test files that failed; `undefined` if the run itself came to no end. */
  readonly failed: readonly string[] | undefined;
}

/** A copy of the repository with all faults of a run built in, each switched off. */
export class MutatedTree {
  readonly root = mkdtempSync(join(tmpdir(), "portico-mutate-"));
  /** Elsewhere, as the build refuses a bundle that names the folder it was made in. */
  private readonly switches = mkdtempSync(join(tmpdir(), "portico-faults-"));
  private readonly switchFile = join(this.switches, "on");
  /** Ends the tests that run now. */
  private stop = (): void => undefined;

  constructor(faults: readonly NumberedFault[]) {
    try {
      this.build(faults);
    } catch (error) {
      this.remove();
      throw error;
    }
  }

  private build(faults: readonly NumberedFault[]): void {
    // Other users run some of the processes.
    for (const folder of [this.root, this.switches]) chmodSync(folder, 0o755);
    cpSync(ROOT, this.root, { recursive: true, filter: (path) => !NOT_COPIED.test(path.slice(ROOT.length)) });
    for (const shared of ["node_modules", ".cache"].filter((name) => existsSync(join(ROOT, name))))
      execFileSync("cp", ["-al", join(ROOT, shared), join(this.root, shared)]);
    this.switchOn([]);
    for (const file of new Set(faults.map((fault) => fault.file))) {
      const path = join(this.root, file);
      const own = faults.filter((fault) => fault.file === file);
      writeFileSync(path, withSwitches(readFileSync(path, "utf8"), own, this.switchFile));
    }
    this.npx("tsx", "build/build.ts");
  }

  /** Has these faults and no others. */
  switchOn(faults: readonly NumberedFault[]): void {
    writeFileSync(this.switchFile, faults.map(({ id }) => id).join(" "), { mode: 0o644 });
  }

  /**
   * Runs one test file without a fault.
   *
   * @returns the faults that it reached, in this process or in others, and its time; `undefined` if it failed
   */
  async reach(file: string): Promise<Reached | undefined> {
    writeFileSync(this.switchFile, RECORD, { mode: 0o644 });
    const reached = reachedFile(this.switchFile);
    writeFileSync(reached, "");
    // Other users' processes reach faults as well.
    chmodSync(reached, 0o666);
    const start = performance.now();
    const { failed } = await this.test([file], { bail: true, ms: REACH_MS });
    this.switchOn([]);
    if (failed === undefined || failed.length > 0) return undefined;
    const ids = readFileSync(reached, "utf8").split(" ").slice(0, -1).map(Number);
    return { ids: new Set(ids), ms: performance.now() - start };
  }

  /** Runs test files: one after the other until one fails, or all of them side by side. */
  async test(files: readonly string[], { bail, ms }: { bail: boolean; ms: number }): Promise<Verdict> {
    const report = join(this.root, ".report.json");
    rmSync(report, { force: true });
    const args = [
      "node_modules/jest/bin/jest.js",
      "--json",
      `--outputFile=${report}`,
      ...(bail
        ? ["--bail=1", "--runInBand", `--testSequencer=${join(this.root, "proof/mutate/sequencer.js")}`]
        : []),
    ];
    const jest = spawn(process.execPath, [...args, "--runTestsByPath", ...files], {
      cwd: this.root,
      stdio: "ignore",
      detached: true,
      env: { ...process.env, CI: "true", PORTICO_SEED: "20261121" },
    });
    this.stop = () => process.kill(-jest.pid!, "SIGKILL");
    const overdue = setTimeout(this.stop, ms);
    await new Promise((done) => jest.once("close", done));
    clearTimeout(overdue);
    this.stop = () => undefined;
    try {
      const { testResults } = JSON.parse(readFileSync(report, "utf8")) as Report;
      const failed = testResults.filter(({ status }) => status === "failed");
      return { failed: failed.map(({ name }) => name.slice(this.root.length + 1)) };
    } catch {
      return { failed: undefined };
    }
  }

  remove(): void {
    this.stop();
    for (const folder of [this.root, this.switches])
      rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }

  private npx(...command: string[]): void {
    execFileSync("npx", ["--no-install", ...command], {
      cwd: this.root,
      stdio: ["ignore", 2, 2],
    });
  }
}

/** What is not a source; the large ones are linked. */
const NOT_COPIED = /^\/(?:\.git|\.cache|dist|out|cdktf\.out)(?:\/|$)|\/node_modules(?:\/|$)/;

const REACH_MS = 600_000;

/** What a test file reached. */
export interface Reached {
  readonly ids: ReadonlySet<number>;
  readonly ms: number;
}

interface Report {
  readonly testResults: readonly { readonly name: string; readonly status: "passed" | "failed" }[];
}
