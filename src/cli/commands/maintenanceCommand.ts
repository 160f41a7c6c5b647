import { type Command, InvalidArgumentError } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { ListedPauses, ListedQuiesce } from "../../runtime/supervisor/control/listedPauses.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { moment } from "../options.js";
import { EXIT, json, type CommandOutput, tableText } from "../output.js";

interface MaintenanceFlags {
  control: string;
  timeout: number;
  json?: boolean;
  site?: string;
  until?: number;
  message?: string;
}

export function addMaintenance(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const maintenance = program
    .command("maintenance")
    .description("respond with 503 to all requests except those of administrators, for a while");
  withControl(maintenance.command("on"))
    .description("begin a maintenance, or change its end or message")
    .option("--site <NAME>", "only this site (default: all of them)")
    .option(
      "--until <TIME>",
      "end of the maintenance: 14:30, 2026-05-17T14:30, or a duration such as 30m",
      moment,
    )
    .option("--message <TEXT>", "one line of text for refused clients", message)
    .addHelpText(
      "after",
      `
When the command returns, requests get 503 with \`Retry-After\`, except those of addresses in \`maintenance.allow\` of the
config. The proxy still serves redirects and responds to challenges of certificate authorities. Running transfers
continue to their end; the proxy closes WebSockets with code 1012 after \`maintenance.graceMs\`. A maintenance persists
over a reload, an upgrade and a crash. \`portico maintenance off\`, the time of --until, or a stop of the service ends it.

Examples:
  portico maintenance on --until 14:30 --message "We are moving to a larger disk."
  portico maintenance on --site vault`,
    )
    .action(async ({ site, until, message: text, ...flags }: MaintenanceFlags) => {
      const begin = {
        until,
        message: text,
      };
      await change({ site, begin }, flags);
    });
  withControl(maintenance.command("off"))
    .description("end the maintenance")
    .option("--site <NAME>", "end only the maintenance of this site")
    .addHelpText("after", "\nExamples:\n  portico maintenance off\n  portico maintenance off --site vault")
    .action(async ({ site, ...flags }: MaintenanceFlags) =>
      change(site === undefined ? {} : { site }, flags),
    );
  withControl(maintenance.command("status", { isDefault: true }))
    .description("show which requests are refused, and until when")
    .addHelpText("after", "\nExamples:\n  portico maintenance status\n  portico maintenance status --json")
    .action(async (flags: MaintenanceFlags) => done(await status(flags, output)));

  async function change(
    request: { readonly site?: string; readonly begin?: { until?: number; message?: string } },
    { control, timeout, json: asJson }: MaintenanceFlags,
  ): Promise<void> {
    const outcome = await askMaster(control, { command: "maintenance", ...request }, timeout * 1000);
    done(printOutcome(outcome, "maintenance", output, asJson));
  }
}

function message(text: string): string {
  const fits = text.length > 0 && text.length <= MESSAGE_CHARACTERS_MAX && !/\p{Cc}/u.test(text);
  if (fits) return text;
  throw new InvalidArgumentError(`Give one line of up to ${MESSAGE_CHARACTERS_MAX} characters.`);
}

const MESSAGE_CHARACTERS_MAX = 500;

async function status(
  { control, timeout, json: asJson }: MaintenanceFlags,
  output: CommandOutput,
): Promise<number> {
  const outcome = await askMaster(control, { command: "pauses" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "maintenance", output, asJson);
  const { pauses = { maintenance: [] } } = outcome.value;
  output.out(asJson === true ? json({ ok: true, ...pauses }) : statusText(pauses));
  return EXIT.ok;
}

function statusText({ maintenance, quiesce }: ListedPauses): string {
  const rows = maintenance.map(({ site, since, until, message: text }) => [
    site ?? "all",
    new Date(since).toISOString(),
    until === undefined ? "off" : new Date(until).toISOString(),
    text ?? "",
  ]);
  const table = rows.length === 0 ? [] : tableText([["SITE", "SINCE", "UNTIL", "MESSAGE"], ...rows]);
  const lines = [...table, ...(quiesce === undefined ? [] : [quiesceText(quiesce)])];
  return lines.length === 0 ? "no request is refused\n" : lines.join("");
}

function quiesceText({ since, refusesSince, reads, site, writes }: ListedQuiesce): string {
  const to = site === undefined ? "" : ` to site ${site}`;
  const what = `${reads ? "requests" : "requests that write"}${to}`;
  if (refusesSince !== undefined)
    return `${reads ? "all " : ""}${what} have been refused since ${new Date(refusesSince).toISOString()} (portico quiesce)\n`;
  return `portico quiesce has been waiting since ${new Date(since).toISOString()} for ${what} to end: ${writes}\n`;
}
