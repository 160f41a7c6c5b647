import { Argument, type Command } from "commander";
import { PROBLEM_CODES } from "../../model/index.js";
import type { CommandOutput } from "../output.js";
import { type CommandUsage, type OptionUsage, usageOf } from "../usage.js";

export function addCompletion(program: Command, output: CommandOutput): void {
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

/**
 * Completions as the shells load them. Each is a table of commands, and finds out which of them the line has: the words
 * that begin it, without options and their values.
 */
interface Shell {
  /** How it is loaded, for the help. */
  readonly load: string;
  readonly script: (commands: readonly CommandUsage[], words: CompletionWords) => string;
}

/** Words that an argument or value may be, by its name. */
type CompletionWords = Readonly<Record<string, readonly string[]>>;

const SHELLS: Readonly<Record<"bash" | "zsh" | "fish", Shell>> = {
  bash: { load: 'eval "$(portico completion bash)"                       in ~/.bashrc', script: bash },
  zsh: {
    load: "portico completion zsh > ~/.zfunc/_portico               with ~/.zfunc in fpath",
    script: zsh,
  },
  fish: { load: "portico completion fish > ~/.config/fish/completions/portico.fish", script: fish },
};

const withValue = ({ options }: CommandUsage): OptionUsage[] =>
  options.filter(({ value }) => value !== undefined);

/** The completions of an argument: files, folders, words, or none. */
function kindOf(name: string | undefined, words: CompletionWords): string {
  if (name === "FILE") return "files";
  if (name === "DIR") return "folders";
  return name !== undefined && name in words ? words[name]!.join(" ") : "";
}

const key = ({ words }: CommandUsage): string => words.join(" ");

/** Lines of a `case` with the values of options. */
function valueCases(commands: readonly CommandUsage[], words: CompletionWords): string {
  const lines = commands.flatMap((command) =>
    withValue(command).map(
      ({ names, value }) =>
        `    ${names.map((name) => `'${key(command)}|${name}'`).join("|")}) value='${kindOf(value, words)}'; takes=1 ;;`,
    ),
  );
  return `${lines.join("\n")}\n    *) takes= ;;`;
}

/** Lines of a `case` with the words that may follow a command. */
function commandCases(commands: readonly CommandUsage[]): string {
  return commands
    .filter(({ words }) => words.length > 0)
    .map(
      (command) =>
        `    '${command.words.slice(0, -1).join(" ")}|${command.words.at(-1)}') path='${key(command)}' ;;`,
    )
    .join("\n");
}

function bash(commands: readonly CommandUsage[], words: CompletionWords): string {
  const offered = commands.map((command) => {
    const names = command.options.flatMap(({ names: all }) => all).join(" ");
    const inner = command.commands.map(({ name }) => name).join(" ");
    return `    '${key(command)}') options='${names}'; commands='${inner}'; argument='${kindOf(command.arguments[0]?.name, words)}' ;;`;
  });
  return `# Completion of portico for bash.
_portico_value() {
  case "$1|$2" in
${valueCases(commands, words)}
  esac
}

_portico_offer() {
  case "$1" in
    files) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -f -- "$2") ;;
    folders) compopt -o filenames 2> /dev/null; mapfile -t COMPREPLY < <(compgen -d -- "$2") ;;
    *) mapfile -t COMPREPLY < <(compgen -W "$1" -- "$2") ;;
  esac
}

_portico() {
  local current=\${COMP_WORDS[COMP_CWORD]} path='' skip='' value='' takes='' options commands argument i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [ -n "$skip" ]; then skip=''; continue; fi
    _portico_value "$path" "\${COMP_WORDS[i]}"
    if [ -n "$takes" ]; then skip=1; continue; fi
    case "$path|\${COMP_WORDS[i]}" in
${commandCases(commands)}
    esac
  done
  if [ -n "$skip" ]; then _portico_offer "$value" "$current"; return; fi
  case "$path" in
${offered.join("\n")}
  esac
  case "$current" in
    -*) _portico_offer "$options" "$current" ;;
    *) if [ -n "$commands" ]; then _portico_offer "$commands" "$current"; else _portico_offer "$argument" "$current"; fi ;;
  esac
}

complete -F _portico portico
`;
}

/** In single quotes of a shell, with the characters escaped that end a name for \`_describe\`. */
const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;
const described = (name: string, description: string): string =>
  quoted(`${name.replaceAll(":", "\\:")}:${description.replaceAll(":", "\\:")}`);

function zsh(commands: readonly CommandUsage[], words: CompletionWords): string {
  const offered = commands.map((command) => {
    const options = command.options.flatMap(({ names, description }) =>
      names.map((name) => described(name, description)),
    );
    const inner = command.commands.map(({ name, description }) => described(name, description));
    const lines = [
      `options=(${options.join(" ")})`,
      `commands=(${inner.join(" ")})`,
      `argument='${kindOf(command.arguments[0]?.name, words)}'`,
    ];
    return `    '${key(command)}') ${lines.join("; ")} ;;`;
  });
  return `#compdef portico
# Completion of portico for zsh.
_portico_value() {
  case "$1|$2" in
${valueCases(commands, words)}
  esac
}

_portico_offer() {
  case "$1" in
    files) _files ;;
    folders) _files -/ ;;
    ?*) compadd -- \${=1} ;;
  esac
}

_portico() {
  local given='' skip='' value='' takes='' argument word
  local -a options commands
  local path_so_far=''
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n "$skip" ]]; then skip=''; continue; fi
    _portico_value "$path_so_far" "$word"
    if [[ -n "$takes" ]]; then skip=1; continue; fi
    case "$path_so_far|$word" in
${commandCases(commands).replaceAll(" path=", " path_so_far=")}
    esac
  done
  if [[ -n "$skip" ]]; then _portico_offer "$value"; return; fi
  case "$path_so_far" in
${offered.join("\n")}
  esac
  if [[ "\${words[CURRENT]}" == -* ]]; then
    _describe -o option options
  elif (( \${#commands} > 0 )); then
    _describe command commands
  else
    _portico_offer "$argument"
  fi
}

compdef _portico portico
`;
}

function fish(commands: readonly CommandUsage[], words: CompletionWords): string {
  const lines = commands.flatMap((command) => {
    const when = `-n ${quoted(condition(command))}`;
    const offers = command.commands.map(
      ({ name, description }) => `complete -c portico -f ${when} -a ${name} -d ${quoted(description)}`,
    );
    const options = command.options.map(({ names, value, description }) => {
      const named = names.map((name) =>
        name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`,
      );
      return `complete -c portico ${when} ${named.join(" ")}${fishValue(value, words)} -d ${quoted(description)}`;
    });
    const argument = kindOf(command.arguments[0]?.name, words);
    const taken =
      argument === "files"
        ? [`complete -c portico -F ${when}`]
        : argument === ""
          ? []
          : [`complete -c portico -f ${when} -a ${quoted(argument)}`];
    return [...offers, ...options, ...taken];
  });
  return `# Completion of portico for fish.\ncomplete -c portico -f\n${lines.join("\n")}\n`;
}

/** True if a line has this command, and none of its subcommands. */
function condition({ words, commands }: CommandUsage): string {
  if (words.length === 0) return "__fish_use_subcommand";
  const seen = words.map((word) => `__fish_seen_subcommand_from ${word}`);
  const inner = commands.map(({ name }) => name).join(" ");
  return [...seen, ...(inner === "" ? [] : [`not __fish_seen_subcommand_from ${inner}`])].join("; and ");
}

function fishValue(value: string | undefined, words: CompletionWords): string {
  if (value === undefined) return "";
  const kind = kindOf(value, words);
  if (kind === "files") return " -rF";
  if (kind === "folders") return " -xa '(__fish_complete_directories)'";
  return ` -x${kind === "" ? "" : `a ${quoted(kind)}`}`;
}
