import { codeBlocks } from "../kit/markdown.js";
import { NewProject, TRANSFORMERS } from "./newProject.js";

/** The README's unit tests, from an empty folder: its install lines, its files, its commands. */

test("the README names two ways to read TypeScript", () => {
  expect(Object.keys(TRANSFORMERS)).toEqual(["ts-jest", "@swc/jest"]);
});

test.each(Object.keys(TRANSFORMERS))(
  "the unit tests of the README pass in a new project with %s",
  async (name) => {
    const section = (language: string): string[] => codeBlocks("docs/unit-tests.md", language);
    const [config, setup] = section("js");
    const project = new NewProject();
    try {
      project.write("jest.config.js", config!.replace('"ts-jest"', JSON.stringify(name)));
      project.write("jest.setup.js", setup!);
      project.write("tsconfig.json", section("json")[0]!);
      project.write("main.ts", codeBlocks("README.md", "ts", "The smallest deployment")[0]!);
      project.write("__tests__/stack.test.ts", section("ts")[0]!);
      await project.install(name, "cache");
      await project.follow(section("sh")[1]!);
      await project.follow("npx tsx main.ts; test -s cdktf.out/stacks/portico/cdk.tf.json");
    } finally {
      project.remove();
    }
  },
  // Compilers and package managers, one after the other: minutes on a busy machine.
  600_000,
);
