import { type Command, InvalidArgumentError } from "commander";
import { sourceOf } from "../document.js";
import { withSource, wholeNumber } from "../options.js";
import type { CommandOutput } from "../output.js";
import { preview } from "./previewCommand.js";

interface PreviewFlags {
  root?: string;
  portOffset: number;
  upstream?: Record<string, string>;
  statusPort?: number;
  json?: boolean;
}

export function addPreview(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withSource(program.command("preview"))
    .description("serve a config on loopback and unprivileged ports, logging to standard error")
    .option("--port-offset <N>", "added to every port: 80 becomes 10080", wholeNumber(1, 65_534), 10_000)
    .option(
      "--upstream <NAME=URL>",
      "another URL for an upstream; may be given several times",
      collectUpstream,
    )
    .option(
      "--status-port <PORT>",
      "serve the status page at http://127.0.0.1:PORT/status",
      wholeNumber(1, 65_535),
    )
    .option("--json", "print the addresses of the preview as JSON")
    .addHelpText(
      "after",
      `
Listeners move to 127.0.0.1 (IPv6: ::1), and redirects follow them. TLS, routes and limits are as on the host. The
preview writes no log files, sends no notifications and no HSTS, accepts no PROXY protocol, and leaves out header fields
whose values come from credentials. Certificates that are not on this machine, as of a host that is delivered to over
ssh, are replaced by self-signed ones, and missing directories by an empty one.

Examples:
  portico preview ./portico.json
  portico preview --root ./out/host --port-offset 20000
  portico preview --upstream web=http://127.0.0.1:18000 --upstream files=http://127.0.0.1:18080`,
    )
    .action(async (file: string | undefined, flags: PreviewFlags) => {
      const { portOffset, upstream: upstreams = {}, statusPort, json } = flags;
      const options = { portOffset, upstreams, statusPort, json };
      done(await preview(sourceOf(file, flags.root), options, output));
    });
}

/** Collects the values of `--upstream`, which may be repeated. */
export function collectUpstream(text: string, before: Record<string, string> = {}): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError("Give NAME=URL, such as web=http://127.0.0.1:18000.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}
