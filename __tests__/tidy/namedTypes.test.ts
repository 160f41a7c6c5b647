import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./modules.js";
import { narrowedOptions, programOf, unexportedTypes } from "./namedTypes.js";

const ENTRIES = ["index", "kubernetes/index", "testing/index", "runtime/index"].map((entry) =>
  join(ROOT, "src", `${entry}.ts`),
);

test("every type that a public signature names can be imported, and every option takes what its field takes", () => {
  const program = programOf(ENTRIES);
  expect(unexportedTypes(program, ENTRIES)).toEqual([]);
  expect(narrowedOptions(program)).toEqual([]);
});

test("an option that takes less than its field, or is left out, is found", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-types-"));
  try {
    const file = join(folder, "index.ts");
    const field = "{ a?: 'x' | 'y'; b?: number[] | undefined; c?: string }";
    writeFileSync(
      file,
      `type InputOf<T> = ${field};
       export interface Props extends InputOf<0> { readonly a?: "x"; readonly b?: number[]; readonly d: 1 }
       export interface Other extends Omit<InputOf<0>, "b" | "c"> { readonly a: "x" | "y"; readonly c: number }\n`,
    );
    expect(narrowedOptions(programOf([file]))).toEqual(["Props.a", "Other.b"]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("one that cannot is found, in props, results, parameters and bases; what is private is left alone", () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-types-"));
  try {
    const [entry, parts] = ["index", "parts"].map((name) => join(folder, `${name}.ts`)) as [string, string];
    writeFileSync(entry, 'export { type Props, Part } from "./parts.js";\n');
    writeFileSync(
      parts,
      `interface Base { readonly a: string }
       type Given = "a" | "b"; type Kept = string; type Inner = string; interface Result { readonly b: number }
       export interface Props extends Base { readonly given: readonly Given[]; readonly name: string }
       export class Part {
         private readonly kept: Kept = "";
         /** @internal */
         inner(): Inner { return this.kept; }
         make(props: Props): Result | undefined { const inner: Inner = props.name; return { b: inner.length }; }
       }\n`,
    );
    expect(unexportedTypes(programOf([entry]), [entry], folder)).toEqual([
      "Part.make names Result",
      "Props names Base",
      "Props.given names Given",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
