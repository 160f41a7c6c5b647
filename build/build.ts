import { spawnSync } from "node:child_process";
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { buildBundle } from "./bundle.js";
import { buildModules } from "./modules.js";
import { buildSchema } from "./schema.js";
import { DIST, NATIVE_TSC, NATIVE_TSC_ENVIRONMENT, ROOT } from "./paths.js";

/**
 * `npm run build`: the bundle first (everything else waits for it), then the schema, the man page and the library.
 * With `--bundle [FILE]` the bundle alone; with `--library` all but the bundle, which is there.
 */
async function main(): Promise<void> {
  const [option, file] = process.argv.slice(2);
  if (option !== "--library")
    await step("dist/portico.mjs", async () => kilobytes((await buildBundle(file)).bytes));
  if (option === "--bundle") return;
  await step("dist/portico.schema.json", () => kilobytes(buildSchema()));
  await step("dist/portico.1", buildManPage);
  await step("dist/lib", buildLibrary);
}

async function step(target: string, run: () => string | Promise<string>): Promise<void> {
  const started = performance.now();
  const outcome = await run();
  const seconds = ((performance.now() - started) / 1000).toFixed(2);
  console.log(`${target.padEnd(26)} ${outcome.padStart(12)} ${seconds.padStart(7)} s`);
}

async function buildManPage(): Promise<string> {
  const { manPage } = await import("./manPage.js");
  const text = await manPage();
  writeFileSync(path.join(DIST, "portico.1"), text);
  return kilobytes(Buffer.byteLength(text));
}

/**
 * Compiles the library; files of sources that are gone must not stay behind in the package. It takes its place as a whole: two
 * builds may run at once, and others use what is there.
 */
async function buildLibrary(): Promise<string> {
  const place = path.join(DIST, "lib");
  const lib = path.join(DIST, `lib.${process.pid}`);
  try {
    const outcome = await compileLibrary(lib);
    takePlace(lib, place);
    return outcome;
  } finally {
    rmSync(lib, { recursive: true, force: true });
  }
}

/** One that is used is moved away before it is removed: what was read of it stays, and nothing is put into what is removed. */
function takePlace(lib: string, place: string): void {
  const old = `${lib}.old`;
  for (let left = 10; ; left--) {
    try {
      if (existsSync(place)) renameSync(place, old);
      renameSync(lib, place);
      return rmSync(old, { recursive: true, force: true });
    } catch (error) {
      // Another build moved the old one away, or was there first.
      if (!["ENOENT", "ENOTEMPTY"].includes((error as NodeJS.ErrnoException).code!) || left === 0)
        throw error;
      rmSync(old, { recursive: true, force: true });
    }
  }
}

async function compileLibrary(lib: string): Promise<string> {
  const { status } = spawnSync(
    process.execPath,
    [NATIVE_TSC, "-p", "tsconfig.build.json", "--outDir", lib, "--checkers", "1", "--emitDeclarationOnly"],
    {
      cwd: ROOT,
      env: { ...process.env, ...NATIVE_TSC_ENVIRONMENT },
      stdio: "inherit",
    },
  );
  if (status !== 0) throw new Error("dist/lib: the type check above does not pass");
  // The bundle alone is built where there is no compiler.
  const { entryPoints, withoutUnreachable, writeFieldTexts, writeOutDeclarations } =
    await import("./declarations.js");
  writeOutDeclarations(lib);
  writeFieldTexts(lib);
  withoutUnreachable(lib);
  const sources = entryPoints().map((file) => path.join("src", file.replace(/\.d\.ts$/, ".ts")));
  return `${await buildModules(lib, sources)} files`;
}

function kilobytes(bytes: number): string {
  return `${(bytes / 1024).toFixed(1)} KiB`;
}

main().catch((error: Error) => {
  console.error(`build failed: ${error.message}`);
  process.exitCode = 1;
});
