import type { Command } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { ListedBan } from "../../runtime/supervisor/control/listedBans.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { EXIT, json, type CommandOutput, tableText } from "../output.js";

interface BansFlags {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addBans(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withControl(program.command("bans"))
    .description("show the addresses from which no new password is tried, and why")
    .addHelpText(
      "after",
      `
Addresses that have tried too many different wrong passwords (\`passwordGuard\`) are slowed, and later closed. Passwords
that were tried from the address before, and requests that do not log in, are served as ever. An IPv6 address counts by
its network.

Examples:
  portico bans
  portico bans --json`,
    )
    .action(async (flags: BansFlags) => done(await list(flags, output)));
  withControl(program.command("unban"))
    .argument("<ADDRESS>", "address or network, as `portico bans` shows it")
    .description("forget the wrong passwords of an address")
    .addHelpText(
      "after",
      `
The address may log in again when the command ends. The error log gets a line with the reason of the ban.

Examples:
  portico unban 203.0.113.7
  portico unban 2001:db8:1:2::`,
    )
    .action(async (address: string, flags: BansFlags) => {
      const outcome = await askMaster(flags.control, { command: "unban", address }, flags.timeout * 1000);
      done(printOutcome(outcome, "unban", output, flags.json));
    });
}

async function list({ control, timeout, json: asJson }: BansFlags, output: CommandOutput): Promise<number> {
  const outcome = await askMaster(control, { command: "bans" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "bans", output, asJson);
  const { bans = [] } = outcome.value;
  output.out(asJson === true ? json({ ok: true, bans }) : listText(bans));
  return EXIT.ok;
}

function listText(bans: readonly ListedBan[]): string {
  if (bans.length === 0) return "no address is refused\n";
  const rows = bans.map(({ address, guard, reason, wrong, until }) => [
    ...[address, guard, reason, new Date(until).toISOString()],
    `distinct wrong secrets: ${wrong}`,
  ]);
  return tableText([["ADDRESS", "GUARD", "STATE", "UNTIL", "WHY"], ...rows]).join("");
}
