import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import ts from "typescript";
import { readApi, ENTRIES } from "../../build/docs/api.js";
import { inferredParents, optionsOf, typeOfMember } from "../../build/options.js";
import { NATIVE_TSC, NATIVE_TSC_ENVIRONMENT, ROOT } from "../../build/paths.js";

/** Options that are not copied from the source. A class is another type in each place, so those that are one are left out. */
const writtenOut = (declaration: ts.InterfaceDeclaration): string =>
  optionsOf(declaration)
    .filter(({ member }) => member === undefined || typeOfMember(member) !== undefined)
    .map(({ name }) => JSON.stringify(name))
    .join(" | ") || "never";

/** The declarations of the package have the options written out; the compiler holds them to those of the sources. */
const interfaces = readApi(ENTRIES).flatMap(({ name, from, declaration }) =>
  ts.isInterfaceDeclaration(declaration) && inferredParents(declaration).length > 0
    ? [{ name, entry: ENTRIES[from]!.replace(/^.*\/src\/|\.ts$/g, ""), written: writtenOut(declaration) }]
    : [],
);

const SAME = `
/** Every field required, so that one which only one side has is seen. */
type Full<T> = T extends readonly (infer E)[]
  ? readonly Full<E>[]
  : T extends object ? { [K in keyof T]-?: Full<NonNullable<T[K]>> } : T;
type Within<A, B> = [A] extends [B] ? true : false;
type Same<A, B> = [Within<A, B>, Within<B, A>, Within<Full<A>, Full<B>>, Within<Full<B>, Full<A>>] extends
  [true, true, true, true] ? true : false;
`;

function errorsOf(lines: readonly string[]): string {
  mkdirSync(join(ROOT, "out"), { recursive: true });
  const folder = mkdtempSync(join(ROOT, "out/types-"));
  try {
    const text = `${SAME}\n${lines.join("\n")}\n`;
    writeFileSync(join(folder, "same.ts"), text);
    const compilerOptions = {
      ...{ strict: true, noEmit: true, skipLibCheck: true, types: ["node"] },
      ...{ target: "es2023", module: "nodenext", rootDir: ROOT },
    };
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["same.ts"] }));
    const env = { ...process.env, ...NATIVE_TSC_ENVIRONMENT };
    const { stdout, stderr } = spawnSync(process.execPath, [NATIVE_TSC, "-p", folder], {
      env,
      encoding: "utf8",
    });
    const lineOf = (number: string): string => text.split("\n")[Number(number) - 1]!;
    return (stdout + stderr).replace(/^.*same\.ts\((\d+),\d+\)/gm, (_, number) => lineOf(number as string));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("options that are inferred from schemas are declared as they are inferred", () => {
  expect(interfaces.length).toBeGreaterThan(60);
  const lines = interfaces.flatMap(({ name, entry, written }) => [
    `import type { ${name} as ${name}Source } from "../../src/${entry}.js";`,
    `import type { ${name} as ${name}Declared } from "../../dist/lib/${entry}.js";`,
    `true satisfies Same<keyof ${name}Source, keyof ${name}Declared>;`,
    `true satisfies Same<Pick<${name}Source, ${written}>, Pick<${name}Declared, ${written}>>;`,
  ]);
  expect(errorsOf(lines)).toBe("");
});

test("a declaration that differs would be found", () => {
  const [given, declared] = ["{ a?: 1 }", "{ a?: 1; b?: 2 }"];
  expect(errorsOf([`true satisfies Same<${given}, ${declared}>;`])).toContain("error TS");
});
