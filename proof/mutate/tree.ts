import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "../../build/paths.js";
import type { Fault } from "./faults.js";
import { reachedFile, RECORD, withSwitches } from "./switches.js";

export type NumberedFault = Fault & { readonly id: number };

/** Tests of one file: those of these full names, or all of it. */
export interface AskedTests {
  readonly file: string;
  readonly names?: readonly string[] | undefined;
}

export interface FailedTest {
  readonly file: string;
  /** Its full name; `undefined` if the file failed before one did. */
  readonly name: string | undefined;
}

/** A copy of the repository with all faults of a run built in, each switched off. */
export class MutatedTree {
  readonly root = mkdtempSync(join(tmpdir(), "portico-mutate-"));
  /** Elsewhere, as the build refuses a bundle that names the folder it was made in. */
  private readonly switches = mkdtempSync(join(tmpdir(), "portico-faults-"));
  private readonly switchFile = join(this.switches, "on");
  /** How long tests take. */
  private readonly usualFile = join(this.switches, "usual.json");
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
    // Here, where it stays: what every tree would otherwise lack.
    execFileSync("npx", ["--no-install", "tsx", "proof/prepare.ts"], { cwd: ROOT, stdio: ["ignore", 2, 2] });
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

  /** Says how long each test of each file takes without a fault. */
  expect(usual: readonly (readonly [file: string, ms: ReadonlyMap<string, number>])[]): void {
    const text = usual.map(([file, ms]) => [join(this.root, file), Object.fromEntries(ms)]);
    writeFileSync(this.usualFile, JSON.stringify(Object.fromEntries(text)));
  }

  /** Has these faults and no others. */
  switchOn(faults: readonly NumberedFault[]): void {
    writeFileSync(this.switchFile, faults.map(({ id }) => id).join(" "), { mode: 0o644 });
  }

  /**
   * Runs one test file without a fault.
   *
   * @returns which tests of it reached which faults, in this process or in others; `undefined` if one failed
   */
  async reach(file: string): Promise<Reached | undefined> {
    writeFileSync(this.switchFile, RECORD, { mode: 0o644 });
    const reached = reachedFile(this.switchFile);
    writeFileSync(reached, "");
    // Other users' processes reach faults as well.
    chmodSync(reached, 0o666);
    const start = performance.now();
    const results = await this.jest([file], {
      inBand: true,
      env: { PORTICO_REACHED: reached },
      isOverdue: () => performance.now() - start > REACH_MS,
    });
    this.switchOn([]);
    if (results === undefined || results.some(({ status }) => status === "failed")) return undefined;
    const tests = results[0]!.assertionResults.map(
      ({ fullName, duration }) => [fullName, duration ?? 0] as const,
    );
    return { tests: new Map(tests), ms: performance.now() - start, byFault: readReached(reached) };
  }

  /**
   * Runs tests one after the other until one fails, or with `all` so many files side by side as there is room for.
   *
   * @returns which tests failed or came to no end, the first of each file
   */
  async test(asked: readonly AskedTests[], all: boolean): Promise<readonly FailedTest[]> {
    const cases = join(this.switches, "cases.json");
    const begun = join(this.switches, "begun");
    writeFileSync(begun, "");
    const named = asked.filter(({ names }) => names !== undefined);
    writeFileSync(
      cases,
      JSON.stringify(Object.fromEntries(named.map(({ file, names }) => [join(this.root, file), names]))),
    );
    const files = asked.map(({ file }) => file);
    const standsStill = (): boolean => Date.now() - statSync(begun).mtimeMs > STANDSTILL_MS;
    const results = await this.jest(files, {
      inBand: !all,
      env: { PORTICO_CASES: cases, PORTICO_BEGUN: begun, PORTICO_USUAL: this.usualFile },
      isOverdue: standsStill,
    });
    if (results === undefined && all) return files.map((file) => ({ file, name: undefined }));
    if (results === undefined) return [this.lastBegun(begun) ?? { file: files[0]!, name: undefined }];
    return results
      .filter(({ status }) => status === "failed")
      .map((file) => ({
        file: file.name.slice(this.root.length + 1),
        name: file.assertionResults.find(({ status }) => status === "failed")?.fullName,
      }));
  }

  private lastBegun(begun: string): FailedTest | undefined {
    const last = readFileSync(begun, "utf8").trim().split("\n").at(-1)!;
    if (last === "") return undefined;
    const { path, name } = JSON.parse(last) as { readonly path: string; readonly name?: string };
    return { file: path.slice(this.root.length + 1), name };
  }

  /** @returns undefined if the run itself came to no end */
  private async jest(
    files: readonly string[],
    { inBand, env, isOverdue }: { inBand: boolean; env: NodeJS.ProcessEnv; isOverdue: () => boolean },
  ): Promise<Report["testResults"] | undefined> {
    const report = join(this.root, ".report.json");
    rmSync(report, { force: true });
    const args = [
      "node_modules/jest/bin/jest.js",
      "--json",
      `--outputFile=${report}`,
      // A test that fails may leave open what its suite would have closed, and nothing would end the run.
      "--forceExit",
      `--env=${join(this.root, "proof/mutate/environment.js")}`,
      ...(inBand
        ? ["--bail=1", "--runInBand", `--testSequencer=${join(this.root, "proof/mutate/sequencer.js")}`]
        : []),
    ];
    const jest = spawn(process.execPath, [...args, "--runTestsByPath", ...files], {
      cwd: this.root,
      stdio: "ignore",
      detached: true,
      env: { ...process.env, ...env, CI: "true", PORTICO_SEED: "20261121" },
    });
    this.stop = () => process.kill(-jest.pid!, "SIGKILL");
    const watch = setInterval(() => isOverdue() && this.stop(), 1_000);
    await new Promise((done) => jest.once("close", done));
    clearInterval(watch);
    this.stop = () => undefined;
    try {
      return (JSON.parse(readFileSync(report, "utf8")) as Report).testResults;
    } catch {
      return undefined;
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
/** No test takes so long without a fault, also beside others. */
const STANDSTILL_MS = 100_000;

/** What a test file reached. */
export interface Reached {
  /** Each test by its full name, with its time. */
  readonly tests: ReadonlyMap<string, number>;
  readonly ms: number;
  /** Tests by the fault that they reached; `""` among them is what runs for all of them, such as a module when it loads. */
  readonly byFault: ReadonlyMap<number, ReadonlySet<string>>;
}

function readReached(path: string): Map<number, Set<string>> {
  const byFault = new Map<number, Set<string>>();
  let test = "";
  for (const line of readFileSync(path, "utf8").split("\n"))
    if (line.startsWith('"')) test = JSON.parse(line) as string;
    else
      for (const id of line
        .split(" ")
        .filter((word) => word !== "")
        .map(Number))
        byFault.set(id, (byFault.get(id) ?? new Set()).add(test));
  return byFault;
}

interface Report {
  readonly testResults: readonly {
    readonly name: string;
    readonly status: "passed" | "failed";
    readonly assertionResults: readonly {
      readonly fullName: string;
      readonly status: string;
      readonly duration?: number | null;
    }[];
  }[];
}
