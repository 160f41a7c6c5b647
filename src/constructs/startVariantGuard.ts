import { Fn, Op } from "cdktf";
import { FASTCGI_START, type UnitDocument } from "../render/index.js";
import type { HostFile } from "./hostFile.js";
import { hasTokens, textArgument } from "./props/tokens.js";

/**
 * A word of a command that is known only at apply could still select the FastCGI variant, which the proxy does not
 * speak. In that case Terraform checks before it writes the file.
 */
export function guardStartVariant(file: HostFile, words: () => readonly string[]): void {
  file.checkLate(() =>
    [...new Set(words().filter(hasTokens))].map((word) => ({
      condition: Op.not(Fn.can(Fn.regex(textArgument(`(?i)${FASTCGI_START}`), textArgument(word)))),
      error_message:
        "The web application must not be started in its FastCGI variant: the proxy speaks HTTP to it.",
    })),
  );
}

/** The words of a unit's commands, and the values of its environment. */
export function commandWords(unit: UnitDocument): string[] {
  const directives = Object.entries(unit.Service ?? {});
  return directives
    .filter(([directive]) => directive.startsWith("Exec") || directive === "Environment")
    .flatMap(([, value]) => (Array.isArray(value) ? value : [value]))
    .flatMap((value) => (typeof value === "object" && "command" in value ? value.command : [value]))
    .filter((word) => typeof word === "string");
}
