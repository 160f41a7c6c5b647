import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { ROOT } from "../../build/paths.js";
import { codeBlocks } from "../../testkit/markdown.js";
import { runUnseen } from "../../testkit/unseen.js";

/**
 * Each line of the page that installs what the unit tests need, by what it brings jest to read TypeScript. The last one of
 * the page comes first: it takes the newest compiler, and the next one an older compiler in its place.
 */
export const TRANSFORMERS: ReadonlyMap<string, string> = new Map(
  codeBlocks("docs/unit-tests.md", "sh")[0]!
    .trim()
    .split("\n")
    .map((line): [string, string] => [/\S+-jest\b|@swc\/jest/.exec(line)![0], line])
    .reverse(),
);

/** Lines of a section's first commands that install something. */
const [DEPLOYMENT] = codeBlocks("README.md", "sh", "The smallest deployment");
const INSTALLS = DEPLOYMENT!.split("\n").filter((line) => line.startsWith("npm install"));

/** An empty folder, in which a user follows the README; what it installs is the packed tarball in the package's place. */
export class NewProject {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-new-project-"));

  /** @param from where packages come from: npm's cache only, or also the registry */
  constructor(private readonly from: "cache" | "registry") {}

  async install(): Promise<void> {
    const packed = join(this.folder, "packed");
    mkdirSync(packed);
    await this.follow(`npm pack --ignore-scripts --pack-destination ${packed} ${ROOT}`);
    await this.#npm(INSTALLS.map((line) => line.replace(/ cdktf-portico /, ` ${packed}/*.tgz `)).join("\n"));
  }

  /** In place of one that is there. */
  async installTransformer(name: string): Promise<void> {
    await this.#npm(TRANSFORMERS.get(name)!);
  }

  async #npm(lines: string): Promise<void> {
    await this.follow(lines, {
      npm_config_audit: "false",
      npm_config_fund: "false",
      [this.from === "cache" ? "npm_config_offline" : "npm_config_prefer_offline"]: "true",
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
  const project = new NewProject("registry");
  try {
    await project.install();
    for (const name of TRANSFORMERS.keys()) await project.installTransformer(name);
  } finally {
    project.remove();
  }
}
