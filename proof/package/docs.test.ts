import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { anchor } from "../../build/docs/anchor";
import { type ApiExport, readApi } from "../../build/docs/api";
import { docProblems } from "../../build/docs/apiChecks";

/** What is said of the docstrings of a module. */
const problemsOf = (source: string): string[] => docProblems(apiOf(source));

function apiOf(source: string): ApiExport[] {
  const folder = mkdtempSync(join(tmpdir(), "portico-docs-"));
  try {
    const file = join(folder, "module.ts");
    writeFileSync(file, source);
    return readApi({ package: file });
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

test("an option without a text of its own has that of its field, with its remarks; one that is required has no default", () => {
  const source = `
    /** Options. */
    export interface UpstreamProps {
      /**
       * @remarks Here it is told
       * for stacks.
       * @default 5000 (elsewhere: 1)
       */
      readonly connectTimeoutMs?: number;
      readonly idleTimeoutMs: number;
      /** @default 1 */
      readonly headBytesMax?: number;
    }`;
  const [connect, idle] = apiOf(source)[0]!.members.map(({ doc }) => doc);
  expect(connect).toEqual({
    text: expect.stringMatching(/^Time to establish a connection.* Here it is told for stacks\.$/),
    allowed: "1 to 2147483647 milliseconds",
    byDefault: "5000 (elsewhere: 1)",
    params: [],
  });
  expect(idle).toMatchObject({ text: expect.stringMatching(/^How long/) });
  expect(idle).toMatchObject({ byDefault: undefined });
  expect(problemsOf(source)).toEqual(["UpstreamProps.headBytesMax says `@default 1`, the schema 65536"]);
});

test("anchors are those of GitHub", () => {
  expect(anchor("`virtualServers[].routes[].action`: proxy")).toBe("virtualserversroutesaction-proxy");
  expect(anchor("`config.bad-name`")).toBe("configbad-name");
});
