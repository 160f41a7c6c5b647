import type { Command } from "commander";
import { formatProblem } from "../../model/index.js";
import type { ControlOutcome } from "../../runtime/supervisor/control/control.js";
import { problemCount } from "../../runtime/supervisor/report/masterReport.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { controlSocket } from "../../runtime/supervisor/serve.js";
import { wholeNumber } from "../options.js";
import { EXIT, json, type CommandOutput } from "../output.js";

/** The options of every command that sends a request to a running portico. */
export function withControl(command: Command): Command {
  return withSocket(command).option("--json", "print the outcome as JSON");
}

/** The same of a command that prints no outcome. */
export function withSocket(command: Command): Command {
  return command
    .option("--control <FILE>", "control socket of the running portico", controlSocket() ?? CONTROL_SOCKET)
    .option(
      "--timeout <SECONDS>",
      "how long to wait for a response of the running portico",
      wholeNumber(1, 3_600),
      85,
    );
}

/** Prints the response of a running portico, and returns the exit code. */
export function printOutcome(
  outcome: ControlOutcome,
  what: string,
  output: CommandOutput,
  asJson: boolean | undefined,
  afterRefusal = "",
): number {
  if (asJson === true) {
    output.out(json(outcome.ok ? { ok: true, ...outcome.value } : outcome));
    return outcome.ok ? EXIT.ok : EXIT.failed;
  }
  if (outcome.ok) {
    output.out(`${outcome.value.message}\n`);
    for (const warning of outcome.value.warnings) output.err(`warning: ${formatProblem(warning)}\n`);
    return EXIT.ok;
  }
  const problems = outcome.problems.map((p) => `${formatProblem(p)}\n`);
  // What `control.` names could not be asked, or did not respond: nothing is known of it.
  const asked = outcome.problems.every(({ code }) => !code.startsWith("control."));
  const rest = asked ? afterRefusal : "";
  output.err(`${problems.join("")}${what} failed: ${problemCount(outcome.problems)}${rest}\n`);
  return EXIT.failed;
}
