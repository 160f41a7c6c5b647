import { type Command, InvalidArgumentError } from "commander";
import { askMaster } from "../runtime/supervisor/askMaster.js";
import type { ListedPauses } from "../runtime/supervisor/listedPauses.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { moment } from "./options.js";
import { EXIT, json, type Output, tableText } from "./output.js";

interface Flags {
  control: string;
  timeout: number;
  json?: boolean;
  server?: string;
  until?: number;
  message?: string;
}

export function addMaintenance(program: Command, output: Output, done: (code: number) => void): void {
  const maintenance = program
    .command("maintenance")
    .description("answer requests with 503 for a while, but those of administrators");
  withControl(maintenance.command("on"))
    .description("begin it, or change its end or message")
    .option("--server <NAME>", "name of a virtual server of the config (default: all of them)")
    .option("--until <TIME>", "when it ends: 14:30, 2026-05-17T14:30, or a length of time as 30m", moment)
    .option("--message <TEXT>", "one line for those who are refused", message)
    .addHelpText(
      "after",
      `
From the end of the command on, requests get 503 with \`Retry-After\`, but those of addresses in \`maintenance.allow\` of
the config. Redirects and challenges of certificate authorities are answered as before. Transfers that run go on until
they are done; WebSockets are closed with code 1012 after \`maintenance.graceMs\`. It stays over a reload, an upgrade and
a crash, and ends by \`off\`, at --until, or when the service is stopped.

Examples:
  portico maintenance on --until 14:30 --message "We are moving to a larger disk."
  portico maintenance on --server application`,
    )
    .action(async ({ server, until, message: text, ...flags }: Flags) => {
      const begin = {
        ...(until === undefined ? {} : { until }),
        ...(text === undefined ? {} : { message: text }),
      };
      await change({ ...(server === undefined ? {} : { server }), begin }, flags);
    });
  withControl(maintenance.command("off"))
    .description("end it")
    .option("--server <NAME>", "only that of a virtual server")
    .addHelpText(
      "after",
      "\nExamples:\n  portico maintenance off\n  portico maintenance off --server application",
    )
    .action(async ({ server, ...flags }: Flags) => change(server === undefined ? {} : { server }, flags));
  withControl(maintenance.command("status", { isDefault: true }))
    .description("show what is refused, and until when")
    .addHelpText("after", "\nExamples:\n  portico maintenance status\n  portico maintenance status --json")
    .action(async (flags: Flags) => done(await status(flags, output)));

  async function change(
    request: { readonly server?: string; readonly begin?: { until?: number; message?: string } },
    { control, timeout, json: asJson }: Flags,
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

async function status({ control, timeout, json: asJson }: Flags, output: Output): Promise<number> {
  const outcome = await askMaster(control, { command: "pauses" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "maintenance", output, asJson);
  const { pauses = { maintenance: [] } } = outcome.value;
  output.out(asJson === true ? json({ ok: true, ...pauses }) : statusText(pauses));
  return EXIT.ok;
}

function statusText({ maintenance, quiesce }: ListedPauses): string {
  const rows = maintenance.map(({ server, since, until, message: text }) => [
    server ?? "all",
    new Date(since).toISOString(),
    until === undefined ? "command" : new Date(until).toISOString(),
    text ?? "",
  ]);
  const table = rows.length === 0 ? [] : tableText([["SERVER", "SINCE", "UNTIL", "MESSAGE"], ...rows]);
  const what = quiesce?.reads === true ? "all requests" : "requests that write";
  const quiesced =
    quiesce === undefined
      ? []
      : [`${what} are refused since ${new Date(quiesce.since).toISOString()} (portico quiesce)\n`];
  const lines = [...table, ...quiesced];
  return lines.length === 0 ? "no request is refused\n" : lines.join("");
}
