import { Argument, type Command } from "commander";
import { PROBLEM_CODES } from "../model/index.js";
import { SHELLS } from "./completionScripts.js";
import type { Output } from "./output.js";
import { usageOf } from "./usage.js";

export function addCompletion(program: Command, output: Output): void {
  const names = Object.keys(SHELLS) as (keyof typeof SHELLS)[];
  program
    .command("completion")
    .description("print completions of commands, options and files for a shell")
    .addArgument(new Argument("<SHELL>", "the shell").choices(names))
    .addHelpText(
      "after",
      `\nTo load them:\n${names.map((name) => `  ${SHELLS[name].load}\n`).join("")}`.trimEnd(),
    )
    .action((shell: keyof typeof SHELLS) => {
      const words = { CODE: Object.keys(PROBLEM_CODES), SHELL: names };
      output.out(SHELLS[shell].script(usageOf(program), words));
    });
}
