import type { Construct } from "constructs";
import { problem } from "../../model/index.js";
import { refuse } from "../props/checks.js";

/**
 * Gives a class methods that say where the real ones are. Only JavaScript reaches them: types and completions do not have
 * them, so that a program in TypeScript is refused by the compiler.
 *
 * @param places the member that has the method, by the method's name
 */
export function sayWhere(
  type: { readonly prototype: Construct },
  places: Readonly<Record<string, string>>,
): void {
  for (const [method, place] of Object.entries(places)) {
    const value = function (this: Construct): never {
      const more = {
        allowed: `\`${method}\` of ${place}`,
        fix: `Call \`${method}(id, props)\` of ${place}.`,
      };
      refuse([problem("config.unknown-field", `${this.node.path}.${method}`, "is not a method here", more)]);
      throw new Error("unreachable");
    };
    Object.defineProperty(type.prototype, method, { value, configurable: true, writable: true });
  }
}

export const OF_FRONT_END = {
  addRoute: "the front end's `site`",
  addUpstream: "the front end's `proxy`",
  addListener: "the front end's `proxy`",
  addVirtualServer: "the front end's `proxy`",
};
