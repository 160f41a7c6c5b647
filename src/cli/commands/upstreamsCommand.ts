import type { Command } from "commander";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import {
  type ListedServer,
  type ListedUpstream,
  stateOf,
} from "../../runtime/supervisor/control/listedUpstreams.js";
import { printOutcome, withControl } from "./controlOptions.js";
import { EXIT, json, type CommandOutput, tableText } from "../output.js";

interface UpstreamsFlags {
  control: string;
  timeout: number;
  json?: boolean;
}

export function addUpstreams(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const upstreams = withControl(program.command("upstreams"))
    .description("show the state of each server of the upstreams that have several servers or health checks")
    .addHelpText(
      "after",
      `
A server is up, drained (by \`portico upstreams drain\`), down (its health checks fail), or out: some workers got no
response from it, and send it no requests for a while. It is failing if no other server is left, so that it still gets
requests. The only server of an upstream gets requests even if it is down. IN PROGRESS counts the requests of all
workers, including WebSockets and requests of draining workers.

Examples:
  portico upstreams
  portico upstreams drain web http://10.0.0.7:8000     send it no new requests, before you stop it
  portico upstreams undrain web http://10.0.0.7:8000`,
    )
    .action(async (flags: UpstreamsFlags) => done(await list(flags, output)));
  const CHANGES = [
    [
      "drain",
      "send a server no new requests; its running requests continue, its sessions move to other servers",
    ],
    ["undrain", "send requests to a drained server again"],
  ] as const;
  for (const [command, description] of CHANGES) {
    withControl(upstreams.command(command))
      .argument("<NAME>", "name of the upstream")
      .argument("<SERVER>", "URL of the server, as `portico upstreams` shows it")
      .description(description)
      .addHelpText(
        "after",
        `
The change is in force when the command ends. It persists over a reload and an upgrade, until the opposite command or a
stop of portico ends it.

Examples:
  portico upstreams ${command} web http://10.0.0.7:8000
  portico upstreams ${command} web unix:/run/sync/web.sock`,
      )
      .action(async (name: string, server: string, _flags: unknown, inner: Command) => {
        // Both commands have these options, and commander gives a value to the outer one.
        const { control, timeout, json: asJson } = inner.optsWithGlobals<UpstreamsFlags>();
        const outcome = await askMaster(control, { command, name, server }, timeout * 1000);
        done(printOutcome(outcome, command, output, asJson));
      });
  }
}

async function list(
  { control, timeout, json: asJson }: UpstreamsFlags,
  output: CommandOutput,
): Promise<number> {
  const outcome = await askMaster(control, { command: "upstreams" }, timeout * 1000);
  if (!outcome.ok) return printOutcome(outcome, "upstreams", output, asJson);
  const { upstreams = [] } = outcome.value;
  output.out(asJson === true ? json({ ok: true, upstreams }) : listText(upstreams));
  return EXIT.ok;
}

function listText(upstreams: readonly ListedUpstream[]): string {
  if (upstreams.length === 0) return "no upstream has several servers or health checks\n";
  const rows = upstreams.flatMap(({ name, servers }) =>
    servers.map((one) => [name, one.url, stateText(one), String(one.inProgress), one.why ?? ""]),
  );
  const why = rows.some((row) => row.at(-1) !== "") ? "WHY" : "";
  return tableText([["UPSTREAM", "SERVER", "STATE", "IN PROGRESS", why], ...rows]).join("");
}

function stateText(server: ListedServer): string {
  const state = stateOf(server);
  const count = { out: server.outIn, failing: server.ignoredIn, up: 0, down: 0, drained: 0 }[state];
  const where = count === 0 ? "" : ` in ${count} worker${count === 1 ? "" : "s"}`;
  return `${state}${where}${server.backup ? ", backup" : ""}`;
}
