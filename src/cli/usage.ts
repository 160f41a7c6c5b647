import type { Command } from "commander";

/** The arguments and options of a command, from commander's definition: for completions and the man page. */
export interface CommandUsage {
  /** Words after `portico`: `certificates renew`. */
  readonly words: readonly string[];
  readonly description: string;
  readonly arguments: readonly ArgumentUsage[];
  readonly options: readonly OptionUsage[];
  /** The command's own commands; each of them is also in the list. */
  readonly commands: readonly ArgumentUsage[];
}

export interface ArgumentUsage {
  readonly name: string;
  readonly description: string;
}

export interface OptionUsage {
  /** `--root`, `-h`. */
  readonly names: readonly string[];
  /** `DIR`; undefined if it takes none. */
  readonly value?: string;
  readonly description: string;
}

/** All commands that help shows, each before its own ones; the first is `portico`. */
export function usageOf(command: Command, words: readonly string[] = []): CommandUsage[] {
  const help = command.createHelp();
  const inner = help.visibleCommands(command);
  const usage: CommandUsage = {
    words,
    description: command.description(),
    arguments: help
      .visibleArguments(command)
      .map((argument) => ({ name: argument.name(), description: help.argumentDescription(argument) })),
    options: help.visibleOptions(command).map((option) => {
      const value = /[<[](.+)[\]>]/.exec(option.flags)?.[1];
      const names = [option.short, option.long].filter((name) => name !== undefined);
      return {
        names,
        description: help.optionDescription(option),
        value,
      };
    }),
    commands: inner.map((one) => ({ name: one.name(), description: one.description() })),
  };
  return [usage, ...inner.flatMap((one) => usageOf(one, [...words, one.name()]))];
}
