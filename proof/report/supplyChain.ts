import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildBundle } from "../../build/bundle.js";
import { ROOT } from "../../build/paths.js";
import { type BundledPackage, manifestOf } from "../../build/sbom.js";
import { outcomes, recordTests } from "./jestRun.js";

/** `npm run supply-chain`: runs `proof/package/supplyChain.test.ts` and records what it looked at. */
void recordTests("supply-chain", async (tests) => ({
  checks: outcomes(tests),
  "runtime dependencies": runtimeDependencies(),
  "lock file": lockFile(),
  bundle: await bundle(),
}));

function readJson<T>(file: string): T {
  return JSON.parse(readFileSync(file, "utf8")) as T;
}

function described({ name, version, license }: BundledPackage): string {
  return `${name} ${version} (${license})`;
}

/** What is installed with the package, without peer dependencies. */
function runtimeDependencies(): string[] {
  const { dependencies } = readJson<{ dependencies: object }>(join(ROOT, "package.json"));
  return Object.keys(dependencies).map((name) => described(manifestOf(join(ROOT, "node_modules", name))));
}

/** Packages by what guarantees their contents. */
function lockFile(): Record<string, number> {
  const { packages } = readJson<{ packages: Record<string, { integrity?: string; inBundle?: boolean }> }>(
    join(ROOT, "package-lock.json"),
  );
  const others = Object.entries(packages).flatMap(([path, entry]) => (path === "" ? [] : [entry]));
  return {
    packages: others.length,
    "held to a SHA-512": others.filter(({ integrity }) => integrity?.startsWith("sha512-")).length,
    "inside the archive of another": others.filter(({ inBundle }) => inBundle).length,
  };
}

interface Sbom {
  readonly metadata: { readonly component: { readonly hashes: readonly { readonly content: string }[] } };
  readonly components: readonly {
    readonly name: string;
    readonly version: string;
    readonly licenses: readonly { readonly expression: string }[];
  }[];
}

/** The bundle of these sources, as its bill of materials describes it. */
async function bundle(): Promise<Record<string, unknown>> {
  const folder = mkdtempSync(join(tmpdir(), "portico-bundle-"));
  try {
    const { bytes } = await buildBundle(join(folder, "portico.mjs"));
    const { metadata, components } = readJson<Sbom>(join(folder, "portico.cdx.json"));
    return {
      bytes,
      "SHA-256": metadata.component.hashes[0]!.content,
      "components of its SBOM": components.length,
      components: components.map(({ licenses, ...component }) =>
        described({ ...component, license: licenses.map(({ expression }) => expression).join(" AND ") }),
      ),
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
