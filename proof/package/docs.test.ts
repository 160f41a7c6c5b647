import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anchor } from "../../build/docs/anchor";
import { readApi } from "../../build/docs/api";
import { docProblems } from "../../build/docs/apiChecks";

/** What is said of the docstrings of a module. */
function problemsOf(source: string): string[] {
  const folder = mkdtempSync(join(tmpdir(), "portico-docs-"));
  try {
    const file = join(folder, "module.ts");
    writeFileSync(file, source);
    return docProblems(readApi({ package: file }));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test("an export or a public member without a docstring is named; what is internal or private needs none", () => {
  const source = `
    export interface Bare { readonly field: string }
    /** A class. */
    export class Described {
      constructor(private readonly hidden: string) {}
      /** A method. */
      told(): string { return this.hidden; }
      silent(): void {}
      /** @internal */
      render(): void {}
      private own(): void {}
    }`;
  expect(problemsOf(source)).toEqual([
    "Bare has no docstring",
    "Bare.field has no docstring",
    "Described.silent has no docstring",
  ]);
});

test("a default and a range that differ from the schema's are named", () => {
  const source = `
    /** Timeouts. */
    export interface ProxyTimeouts {
      /**
       * Milliseconds from 1 to 2147483647.
       * @default 60000
       */
      readonly requestHeadMs?: number;
      /**
       * Milliseconds from 1 to 2147483647.
       * @default 60000
       */
      readonly keepAliveMs?: number;
      /**
       * Milliseconds.
       * @default 36000000
       */
      readonly drainMs?: number;
    }`;
  expect(problemsOf(source)).toEqual([
    "ProxyTimeouts.keepAliveMs says `@default 60000`, the schema 75000",
    "ProxyTimeouts.drainMs does not say that it goes from 1 to 2147483647",
  ]);
});

test("anchors are those of GitHub", () => {
  expect(anchor("`virtualServers[].routes[].action`: proxy")).toBe("virtualserversroutesaction-proxy");
  expect(anchor("`config.bad-name`")).toBe("configbad-name");
});
