import type { Command } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { Program } from "../../runtime/supervisor/processes/handover.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { printOutcome, withControl } from "./controlOptions.js";
import type { CommandOutput } from "../output.js";

export interface UpgradeOptions extends Program {
  /** Path of the master's socket. */
  readonly control: string;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

/** `portico upgrade`: hands over from the running portico to the runtime that is installed now. */
export async function upgrade(options: UpgradeOptions, output: CommandOutput): Promise<number> {
  const { control, timeoutMs, json, ...program } = options;
  const outcome = await askMaster(control, { command: "upgrade", ...program }, timeoutMs);
  return printOutcome(outcome, "upgrade", output, json);
}

interface UpgradeFlags extends Program {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addUpgrade(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withControl(program.command("upgrade"))
    .description("hand over from the running portico to the installed runtime")
    .option("--node <FILE>", "the Node.js binary to start (default: the path of the running one)")
    .option("--runtime <FILE>", "the portico.mjs to start (default: the path of the running one)")
    .addHelpText(
      "after",
      `
The new portico starts alongside the old one and takes over its sockets. When the new one serves, the old one finishes
its running requests, for up to \`timeouts.drainMs\`, and exits. If the new one cannot serve, the command prints the
reason, the exit code is 1, and the old one keeps serving. The new portico gets the same arguments of \`serve\`.

Examples:
  portico upgrade
  portico upgrade --control ${CONTROL_SOCKET}`,
    )
    .action(async ({ timeout, ...flags }: UpgradeFlags) => {
      done(await upgrade({ ...flags, timeoutMs: timeout * 1000 }, output));
    });
}
