import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { codeBlocks } from "../kit/markdown.js";
import { runUnseen } from "../kit/unseen.js";

/** Each line of the page that installs what the unit tests need, by what it brings jest to read TypeScript. */
export const TRANSFORMERS: Readonly<Record<string, string>> = Object.fromEntries(
  codeBlocks("docs/unit-tests.md", "sh")[0]!
    .trim()
    .split("\n")
    .map((line) => [/\S+-jest\b|@swc\/jest/.exec(line)![0], line]),
);

/** Lines of a section's first commands that install something. */
const [DEPLOYMENT] = codeBlocks("README.md", "sh", "The smallest deployment");
const INSTALLS = DEPLOYMENT!.split("\n").filter((line) => line.startsWith("npm install"));

/** An empty folder, in which a user follows the README; what it installs is the packed tarball in the package's place. */
export class NewProject {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-new-project-"));

  /**
   * @param from where packages come from: npm's cache only, or also the registry
   */
  async install(transformer: string, from: "cache" | "registry"): Promise<void> {
    const packed = join(this.folder, "packed");
    mkdirSync(packed);
    await this.follow(`npm pack --ignore-scripts --pack-destination ${packed} ${ROOT}`);
    const lines = [...INSTALLS, TRANSFORMERS[transformer]!].map((line) =>
      line.replace(/ cdktf-portico /, ` ${packed}/*.tgz `),
    );
    await this.follow(lines.join("\n"), {
      npm_config_audit: "false",
      npm_config_fund: "false",
      [from === "cache" ? "npm_config_offline" : "npm_config_prefer_offline"]: "true",
    });
  }

  write(name: string, text: string): void {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Runs commands as a user would; what they said is the error's message if one of them fails. */
  async follow(commands: string, env: NodeJS.ProcessEnv = {}): Promise<void> {
    // What npm and jest set for their own children is nothing that a user has.
    const own = Object.entries(process.env).filter(([name]) => !/^npm_|^JEST_|^NODE_ENV$/.test(name));
    const kept = { npm_config_cache: process.env["npm_config_cache"], ...env };
    await runUnseen("sh", ["-euc", commands], {
      cwd: this.folder,
      env: { ...Object.fromEntries(own), CHECKPOINT_DISABLE: "1", ...kept },
    });
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Brings into npm's cache what a new project installs; the package itself need not be built yet. */
export async function prepareNewProjects(): Promise<void> {
  for (const transformer of Object.keys(TRANSFORMERS)) {
    const project = new NewProject();
    try {
      await project.install(transformer, "registry");
    } finally {
      project.remove();
    }
  }
}
