import type { Construct } from "constructs";
import { type Problem, problem, ProblemError } from "../../model/index.js";

/**
 * A module of a package that only some stacks need, loaded when they do.
 *
 * @param load requires it: synthesis is synchronous, so `import()` cannot
 * @throws ProblemError `config.missing-package`
 */
export function loaded<M>(scope: Construct, name: string, load: () => M): M {
  try {
    return load();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "MODULE_NOT_FOUND" && message.includes(`'${name}`))
      throw new ProblemError([missingPackage(scope.node.path, name)]);
    throw error;
  }
}

/** @internal The problem of a stack that has resources of a package that is not installed. */
export const missingPackage = (at: string, name: string): Problem =>
  problem("config.missing-package", at, `needs the package ${name}, which is not installed`, {
    allowed: "a project that has this package",
    fix: `Run \`npm install ${name}\`.`,
  });
