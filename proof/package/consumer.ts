import { spawnSync, type SpawnSyncReturns } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { NATIVE_TSC, NATIVE_TSC_ENVIRONMENT } from "../../build/paths.js";

const ROOT = resolve(__dirname, "../..");
const INSTALLED = join(ROOT, "node_modules");
const TSC = join(INSTALLED, "typescript/bin/tsc");
/** Peers that only some users install, and what is in the package, so that nobody has to install it. */
const LEFT_OUT = ["@cdktf/provider-kubernetes", "commander", "mrmime", "prom-client", "zod"];

/** A fresh project that has installed the packed tarball, with the packages of this repository beside it. */
export class Consumer {
  readonly folder = mkdtempSync(join(tmpdir(), "portico-consumer-"));

  constructor() {
    if (!existsSync(join(ROOT, "dist/lib/index.js")))
      throw new Error("dist/lib is missing: run `npm run build` first");
    const modules = join(this.folder, "node_modules");
    for (const name of packages().filter((one) => !LEFT_OUT.includes(one))) this.install(name);
    this.write("package.json", '{ "name": "consumer", "version": "1.0.0", "private": true }\n');
    const own = join(modules, "cdktf-portico");
    mkdirSync(own);
    const tarball = join(this.folder, "cdktf-portico.tgz");
    const packed = this.run("npm", [
      "pack",
      "--ignore-scripts",
      "--loglevel=error",
      "--pack-destination",
      this.folder,
      ROOT,
    ]);
    symlinkSync(join(this.folder, packed.trim().split("\n").at(-1)!), tarball);
    this.run("tar", ["-xzf", tarball, "-C", own, "--strip-components=1"]);
  }

  /** Installs an optional peer as well. */
  install(name: string): void {
    link(join(INSTALLED, name), join(this.folder, "node_modules", name));
  }

  write(name: string, text: string): void {
    const file = join(this.folder, name);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Fails with all that was said. */
  run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
    const { status, stdout, stderr } = this.spawn(command, args, env);
    if (status !== 0) throw new Error(`${command} ${args.join(" ")} exited ${status}\n${stdout}${stderr}`);
    return stdout;
  }

  spawn(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): SpawnSyncReturns<string> {
    const quiet = { CHECKPOINT_DISABLE: "1", DISABLE_VERSION_CHECK: "1" };
    return spawnSync(command, args, {
      cwd: this.folder,
      env: { ...process.env, ...quiet, ...env },
      encoding: "utf8",
    });
  }

  /**
   * What a compiler says of types: TypeScript 7, or the one before it, which takes four times as long. That one ends
   * before it would be worth it to optimize its code.
   */
  types(args: readonly string[], compiler: "tsc" | "tsc7" = "tsc7"): string {
    if (compiler === "tsc") return this.run(process.execPath, ["--no-opt", "--sparkplug", TSC, ...args]);
    return this.run(process.execPath, [NATIVE_TSC, ...args, "--checkers", "1"], NATIVE_TSC_ENVIRONMENT);
  }

  remove(): void {
    rmSync(this.folder, { recursive: true });
  }
}

function packages(): string[] {
  return readdirSync(INSTALLED)
    .filter((name) => !name.startsWith("."))
    .flatMap((name) =>
      name.startsWith("@") ? readdirSync(join(INSTALLED, name)).map((inner) => `${name}/${inner}`) : [name],
    );
}

function link(target: string, path: string): void {
  mkdirSync(dirname(path), { recursive: true });
  symlinkSync(target, path);
}
