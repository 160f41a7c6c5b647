import { codeBlocks } from "../../testkit/markdown.js";
import { NewProject, TRANSFORMERS } from "./newProject.js";

/** The README's unit tests, from an empty folder: its install lines, its files, its commands. */

const project = new NewProject("cache");
afterAll(() => project.remove());
const section = (language: string): string[] => codeBlocks("docs/unit-tests.md", language);
// Compilers and package managers, one after the other: minutes on a busy machine.
const LONG_MS = 600_000;

test("two ways to read TypeScript are named, which differ in nothing else", () => {
  expect([...TRANSFORMERS.keys()]).toEqual(["@swc/jest", "ts-jest"]);
  const others = [...TRANSFORMERS.values()].map((line) =>
    line
      .replace(/#.*/, "")
      .split(" ")
      .filter((word) => word !== "" && !/^(?:@swc\/.*|ts-jest)$/.test(word))
      .map((word) => word.replace(/^typescript@6$/, "typescript")),
  );
  expect(others[0]).toEqual(others[1]);
});

test(
  "the README's smallest deployment is synthesized in a new project",
  async () => {
    project.write("main.ts", codeBlocks("README.md", "ts", "The smallest deployment")[0]!);
    await project.install();
    await project.follow("npx tsx main.ts; test -s cdktf.out/stacks/portico/cdk.tf.json");
  },
  LONG_MS,
);

test.each([...TRANSFORMERS.keys()])(
  "the unit tests of the README pass in it with %s",
  async (name) => {
    const [config, setup] = section("js");
    project.write("jest.config.js", config!.replace('"ts-jest"', JSON.stringify(name)));
    project.write("jest.setup.js", setup!);
    project.write("tsconfig.json", section("json")[0]!);
    project.write("__tests__/stack.test.ts", section("ts")[0]!);
    await project.installTransformer(name);
    await project.follow(section("sh")[1]!);
  },
  LONG_MS,
);
