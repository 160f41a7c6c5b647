import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ROOT } from "./modules.js";
import { unexportedTypes } from "./namedTypes.js";

const ENTRIES = ["index", "kubernetes/index", "testing/index", "runtime/index"];

test("every type that a public signature names can be imported", () => {
  expect(unexportedTypes(ENTRIES.map((entry) => join(ROOT, "src", `${entry}.ts`)))).toEqual([]);
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
    expect(unexportedTypes([entry], folder)).toEqual([
      "Part.make names Result",
      "Props names Base",
      "Props.given names Given",
    ]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
