import type { Command } from "commander";
import { formatProblem, problem } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { EXIT, json, type CommandOutput, tableText } from "../output.js";

interface NotifyFlags {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addNotify(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withControl(program.command("notify"))
    .description("send a test message to every target of the running portico's notifications")
    .requiredOption("--test", "send a test message; for a healthcheck, request its URL")
    .addHelpText(
      "after",
      `
The proxy tries each target once, ahead of the messages that wait for the target, and the command prints the outcome
for each target. The message says that it is a test.

Exit codes: 0 every target accepted the message, 1 a target did not, or portico does not respond, 2 wrong usage.

Examples:
  portico notify --test
  portico notify --test --json`,
    )
    .action(async (flags: NotifyFlags) => done(await test(flags, output)));
}

async function test({ control, timeout, json: asJson }: NotifyFlags, output: CommandOutput): Promise<number> {
  const outcome = await askMaster(control, { command: "notify" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "notification", output, asJson);
  const { notified = [] } = outcome.value;
  const problems = notified.flatMap(({ name, why }) =>
    why === undefined ? [] : [problem("control.not-notified", name, `did not accept the message: ${why}`)],
  );
  const ok = problems.length === 0;
  if (asJson === true) output.out(json({ ok, targets: notified, problems }));
  else {
    const rows = notified.map(({ name, type, why }) => [name, type, why === undefined ? "sent" : "failed"]);
    output.out(tableText([["TARGET", "KIND", "OUTCOME"], ...rows]).join(""));
    for (const one of problems) output.err(`${formatProblem(one)}\n`);
  }
  return ok ? EXIT.ok : EXIT.failed;
}
