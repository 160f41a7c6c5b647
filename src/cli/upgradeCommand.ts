import type { Command } from "commander";
import { askMaster } from "../runtime/supervisor/askMaster.js";
import type { Program } from "../runtime/supervisor/handover.js";
import { CONTROL_SOCKET } from "../render/hostPaths.js";
import { printOutcome, withControl } from "./controlOptions.js";
import type { Output } from "./output.js";

export interface UpgradeOptions extends Program {
  /** Path of the master's socket. */
  readonly control: string;
  readonly timeoutMs: number;
  readonly json?: boolean;
}

/** `portico upgrade`: hands over from the running portico to the runtime that is installed now. */
export async function upgrade(options: UpgradeOptions, output: Output): Promise<number> {
  const { control, timeoutMs, json, ...program } = options;
  const outcome = await askMaster(control, { command: "upgrade", ...program }, timeoutMs);
  return printOutcome(outcome, "upgrade", output, json);
}

interface UpgradeFlags extends Program {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addUpgrade(program: Command, output: Output, done: (code: number) => void): void {
  withControl(program.command("upgrade"))
    .description("hand over from the running portico to the installed runtime")
    .option(
      "--node <FILE>",
      "the Node.js binary to start (default: the path that the running one was started with)",
    )
    .option("--runtime <FILE>", "the portico to start (default: the path of the running one)")
    .addHelpText(
      "after",
      `
The new portico is started alongside the old one and takes over its sockets. When it serves, the old one finishes its
running requests, however long that takes, and ends. If the new one cannot serve, the reason is printed, the exit code
is 1, and the old one keeps serving. No request is interrupted. The arguments of \`serve\` stay the same.

Examples:
  portico upgrade
  portico upgrade --control ${CONTROL_SOCKET}`,
    )
    .action(async ({ timeout, ...flags }: UpgradeFlags) => {
      done(await upgrade({ ...flags, timeoutMs: timeout * 1000 }, output));
    });
}
