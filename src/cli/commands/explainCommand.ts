import type { Command } from "commander";
import { PROBLEM_CODES } from "../../model/index.js";
import { nearest } from "../../model/text/nearest.js";
import { EXIT, json, type CommandOutput } from "../output.js";

export function addExplain(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("explain")
    .description("explain the code of a problem, with an example and its fix")
    .argument("[CODE]", "the code in brackets after a problem (default: list all codes)")
    .option("--json", "print it as JSON")
    .addHelpText(
      "after",
      `
Examples:
  portico explain config.unknown-reference
  portico explain                            list every code with its general fix`,
    )
    .action(async (code: string | undefined, { json: asJson = false }: { json?: boolean }) =>
      done(code === undefined ? listed(asJson, output) : await explain(code, asJson, output)),
    );
}

function listed(asJson: boolean, output: CommandOutput): number {
  const lines = Object.entries(PROBLEM_CODES).map(([code, fix]) => `${code.padEnd(WIDEST)}  ${fix}\n`);
  output.out(asJson ? json(PROBLEM_CODES) : lines.join(""));
  return EXIT.ok;
}

const WIDEST = Math.max(...Object.keys(PROBLEM_CODES).map((code) => code.length));

async function explain(given: string, asJson: boolean, output: CommandOutput): Promise<number> {
  // The code as it was copied may have brackets, or be the anchor of the page.
  const code = given.replace(/^\[|\]$/g, "");
  const { default: page } = await import("../../../docs/errors.md");
  const text = page.split(/^###? /m).find((section) => section.startsWith(`\`${code}\`\n`));
  if (text === undefined) {
    const near = nearest(code, Object.keys(PROBLEM_CODES));
    const meant = near === undefined ? "" : ` (Did you mean ${near}?)`;
    output.err(`error: there is no code ${code}${meant}\nRun \`portico explain\` to list all codes.\n`);
    return EXIT.usage;
  }
  const fix = PROBLEM_CODES[code as keyof typeof PROBLEM_CODES];
  const plain = text
    .slice(text.indexOf("\n"))
    .replace(/^```\w*\n/gm, "")
    .trim();
  output.out(asJson ? json({ code, text: plain, fix }) : `${code}\n\n${plain}\n`);
  return EXIT.ok;
}
