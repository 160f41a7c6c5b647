import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What is deployed, and where it came from. */
const ROOT = join(__dirname, "../..");

/** Packages whose code is in the bundle or in the library; each is justified in SECURITY.md. */
const BUNDLED = ["bcryptjs", "commander", "mrmime", "prom-client", "zod"];

interface LockEntry {
  readonly integrity?: string;
  /** It comes inside the archive of another package, whose checksum covers it. */
  readonly inBundle?: boolean;
  readonly dependencies?: Record<string, string>;
  readonly hasInstallScript?: boolean;
  readonly license?: string;
}

const readJson = (file: string) => JSON.parse(readFileSync(file, "utf8"));
const locked: Record<string, LockEntry> = readJson(join(ROOT, "package-lock.json")).packages;

/** A checkout in another place, made by another user's habits, with nothing but what the bundle is built from. */
function buildElsewhere(umask: string) {
  const folder = mkdtempSync(join(tmpdir(), "portico-elsewhere-"));
  try {
    const wanted = ["build", "src", "docs/errors.md", "package.json", "package-lock.json", "tsconfig.json"];
    const packages = [...BUNDLED, "esbuild", "@esbuild"].map((name) => `node_modules/${name}`);
    const copy = `cp -R --parents ${[...wanted, ...packages].join(" ")} "${folder}" && cd "${folder}"`;
    const node = `"${process.execPath}" --require "${require.resolve("tsx/cjs")}"`;
    const build = `TZ=Asia/Tokyo LANG=C ${node} build/build.ts --bundle dist/portico.mjs`;
    const command = `umask ${umask} && ${copy} && ${build}`;
    const { status, stderr } = spawnSync("sh", ["-c", command], { cwd: ROOT, encoding: "utf8" });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const bundle = readFileSync(join(folder, "dist/portico.mjs"));
    return {
      sha256: createHash("sha256").update(bundle).digest("hex"),
      sbom: readJson(join(folder, "dist/portico.cdx.json")),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("the same sources give the same bundle and bill of materials, wherever they are built", () => {
  const one = buildElsewhere("022");
  expect(buildElsewhere("077")).toEqual(one);
  expect(one.sbom.metadata.component.hashes).toEqual([{ alg: "SHA-256", content: one.sha256 }]);
  expect(one.sbom.components.map((c: { name: string }) => c.name)).toEqual(BUNDLED);
});

test("SECURITY.md gives a reason for each bundled package, and for no other", () => {
  const text = readFileSync(join(ROOT, "SECURITY.md"), "utf8");
  const table = [...text.matchAll(/^\| `([^`]+)` +\| [^|]{20,} \|$/gm)].map((row) => row[1]);
  expect(table).toEqual(BUNDLED);
});

test("what a user installs has no dependencies, and runs nothing when it is installed", () => {
  const { dependencies, scripts } = readJson(join(ROOT, "package.json"));
  expect({ dependencies, install: Object.keys(scripts).filter((name) => name.includes("install")) }).toEqual({
    dependencies: undefined,
    install: [],
  });
  for (const name of BUNDLED) {
    const { dependencies: more, hasInstallScript, license } = locked[`node_modules/${name}`]!;
    expect({ name, hasInstallScript }).toEqual({ name, hasInstallScript: undefined });
    expect(["Apache-2.0", "BSD-3-Clause", "MIT"]).toContain(license);
    // What a package would bring is not among what is bundled.
    expect(BUNDLED.filter((one) => one in (more ?? {}))).toEqual([]);
  }
  const { components } = readJson(join(ROOT, "dist/portico.cdx.json"));
  expect(components.map((one: { name: string }) => one.name).sort()).toEqual(BUNDLED);
});

test("the lock file holds every package to a SHA-512", () => {
  const loose = Object.entries(locked).filter(
    ([path, { integrity, inBundle }]) =>
      path !== "" && inBundle !== true && !/^sha512-[A-Za-z0-9+/]{86}==$/.test(integrity ?? ""),
  );
  expect(loose.map(([path]) => path)).toEqual([]);
});
