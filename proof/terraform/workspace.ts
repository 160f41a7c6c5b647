import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findProviders } from "./providers/providers.js";

const providers = findProviders();

/** Whether Terraform and its providers can be run here. In CI they must be; elsewhere what is left out is named. */
export function terraformIsHere(): boolean {
  if (providers.from !== undefined) return true;
  if (process.env.CI !== undefined) throw new Error(`${providers.reason}, and in CI nothing is skipped`);
  process.stderr.write(`Tests of Terraform are left out: ${providers.reason}\n`);
  return false;
}

/** Apps that this test file has run. */
const synthesized = new Set<string>();

export interface PlannedChange {
  readonly address: string;
  readonly action: string;
}

/** The changes among the messages of `-json`; a change of an output is none of a resource. */
function plannedChanges(messages: string): PlannedChange[] {
  return messages
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .filter(({ type }) => type === "planned_change")
    .map(({ change: { resource, action } }) => ({ address: resource.addr, action }));
}

/** A stack of `main.ts`'s kind in a folder of its own, and the real Terraform to apply it. */
export class Workspace {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-terraform-"));
  /** Where the files land. */
  readonly root = join(this.folder, "host");
  /** Where Terraform runs. */
  readonly stack = join(this.folder, "cdktf.out/stacks/portico");
  /** What Terraform runs with. */
  readonly environment: NodeJS.ProcessEnv;

  constructor() {
    // Half of what a plan costs Go is collecting garbage of a process that ends soon anyway.
    this.environment = { ...process.env, CHECKPOINT_DISABLE: "1", TF_IN_AUTOMATION: "1", GOGC: "400" };
    // The variable may name a file that is not there, which Terraform warns of at every call.
    delete this.environment.TF_CLI_CONFIG_FILE;
    if (providers.from !== undefined && providers.configFile !== undefined) {
      this.environment.TF_CLI_CONFIG_FILE = providers.configFile;
    }
  }

  /**
   * Synthesizes an app (`main.ts` or a test's own) with `PORTICO_ROOT` set to this workspace's root. It runs in this
   * process: another would need longer to load and translate the modules than for the stack. With modules of its own,
   * an app can run again.
   */
  synthesize(app: string, variables: Record<string, string> = {}): void {
    const { env } = process;
    process.env = {
      ...this.environment,
      PORTICO_ADDRESS: "127.0.0.1",
      PORTICO_ROOT: this.root,
      CDKTF_OUTDIR: join(this.folder, "cdktf.out"),
      ...variables,
    };
    try {
      if (synthesized.has(app)) jest.isolateModules(() => void jest.requireActual(app));
      else jest.requireActual(app);
      synthesized.add(app);
    } finally {
      process.env = env;
    }
    const file = join(this.stack, "cdk.tf.json");
    const json = JSON.parse(readFileSync(file, "utf8"));
    json.terraform.backend.local.path = join(this.folder, "terraform.tfstate");
    writeFileSync(file, JSON.stringify(json, undefined, 2));
  }

  terraform(...args: string[]): string {
    return this.run("terraform", args, { cwd: this.stack, env: this.environment });
  }

  /** What an apply would change; an empty list means the plan is empty. */
  plan(): PlannedChange[] {
    return plannedChanges(this.terraform("plan", "-input=false", "-json"));
  }

  /** Applies, and returns what it planned to change. */
  apply(): PlannedChange[] {
    return plannedChanges(this.terraform("apply", "-input=false", "-auto-approve", "-json"));
  }

  start(command: string, args: string[]): ChildProcess {
    return spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env: this.environment });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }

  private run(command: string, args: string[], options: { cwd: string; env: NodeJS.ProcessEnv }): string {
    const { status, stdout, stderr } = spawnSync(command, args, { ...options, encoding: "utf8" });
    if (status !== 0) throw new Error(`${command} ${args.join(" ")} exited ${status}\n${stdout}\n${stderr}`);
    return stdout;
  }
}
