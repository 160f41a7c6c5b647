import type { Command } from "commander";
import { createProgram } from "../src/cli/program.js";
import { usageOf, type ArgumentUsage, type CommandUsage } from "../src/cli/usage.js";
import { VERSION } from "../src/model/text/version.js";

/** portico(1), from the definition that the command's own help comes from. */
export async function manPage(): Promise<string> {
  let after = "";
  const output = { out: (text: string) => void (after += text), err: () => undefined };
  const program = await createProgram(undefined, output, () => undefined);
  const [portico, ...commands] = usageOf(program);
  /** What stands below the options: `outputHelp` has it, and what comes before is `helpInformation`. */
  const more = ({ words }: CommandUsage): string => {
    const command = words.reduce<Command>(
      (at, word) => at.commands.find((one) => one.name() === word) ?? at,
      program,
    );
    // The command that prints help is commander's own, and has none.
    if (words.length > 0 && command.name() !== words.at(-1)) return "";
    after = "";
    command.outputHelp();
    return after.slice(command.helpInformation().length).trim();
  };
  const shown = commands.filter(({ words }) => words.at(-1) !== "help");
  return [
    `.TH PORTICO 1 "" "portico ${VERSION}" "User Commands"`,
    ".SH NAME",
    `portico \\- ${escaped(portico!.description)}`,
    ".SH SYNOPSIS",
    ".B portico",
    ".I COMMAND",
    "[\\fIoptions\\fR] [\\fIarguments\\fR]",
    ".SH OPTIONS",
    ...options(portico!),
    ".SH COMMANDS",
    ...shown.flatMap((command) => [
      `.SS ${escaped(["portico", ...command.words, ...command.arguments.map(({ name }) => name)].join(" "))}`,
      escaped(`${command.description[0]!.toUpperCase()}${command.description.slice(1)}.`),
      ...command.arguments.flatMap(argument),
      ...options(command),
      ...verbatim(more(command)),
    ]),
    ".SH MORE",
    ...verbatim(more(portico!)),
    "",
  ].join("\n");
}

const argument = ({ name, description }: ArgumentUsage): string[] => [
  ".TP",
  `\\fI${escaped(name)}\\fR`,
  escaped(description),
];

const options = ({ options: all }: CommandUsage): string[] =>
  all.flatMap(({ names, value, description }) => [
    ".TP",
    `${names.map((name) => `\\fB${escaped(name)}\\fR`).join(", ")}${value === undefined ? "" : ` \\fI${escaped(value)}\\fR`}`,
    escaped(description),
  ]);

const verbatim = (text: string): string[] =>
  text === "" ? [] : [".PP", ".nf", ...text.split("\n").map(escaped), ".fi"];

/** Text in which nothing is a request or an escape of roff, one byte a character. */
function escaped(text: string): string {
  return text
    .replaceAll("\\", "\\e")
    .replaceAll("-", "\\-")
    .replace(/^(?=[.'])/, "\\&")
    .replace(
      /[^\n\x20-\x7e]/gu,
      (c) => `\\[u${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`,
    );
}
