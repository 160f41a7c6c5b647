import { type Command, InvalidArgumentError } from "commander";

/** The config a command works on: see `sourceOf`. */
export function withSource(command: Command): Command {
  return command
    .argument("[FILE]", "the config; - is standard input, which is read once")
    .option("--root <DIR>", "folder below which every path of the config is looked up, and the default FILE");
}

/** A number for an option, or a usage error. */
export function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}
