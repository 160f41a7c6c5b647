import type { Command } from "commander";
import { checkAgainst } from "./against.js";
import { check, checkRunning } from "./checkCommand.js";
import { CONTROL_SOCKET } from "../render/hostPaths.js";
import { controlSocket } from "../runtime/supervisor/serve.js";
import { sourceOf } from "./document.js";
import { withSource, wholeNumber } from "./options.js";
import type { Output } from "./output.js";
import { addDatabaseOptions, DATABASE_FLAGS, type DatabaseFlags } from "./storedSettingsOptions.js";

interface CheckFlags extends Pick<DatabaseFlags, "database" | "databaseOptionFile"> {
  root?: string;
  json?: boolean;
  sarif?: boolean;
  against?: string;
  files: boolean;
  live?: boolean;
  connect?: string;
  host?: string;
  imagePath?: string;
  deployment?: string;
  portOffset: number;
  insecure?: boolean;
  timeout: number;
  control: string;
}

export function addCheck(program: Command, output: Output, done: (code: number) => void): void {
  const command = withSource(program.command("check"))
    .description(
      "check a config and the files it names, with --live the running front end, with --against what it opens",
    )
    .option("--json", "print the outcome as JSON")
    .option("--no-files", "check the document only: no TLS files, directories or logs")
    .option(
      "--against <OLD>",
      "say what FILE opens that the config OLD does not: exit code 1 if anything; no other file is read",
    )
    .option("--sarif", "with --against, print the outcome as SARIF 2.1.0, which code hosts show")
    .optionsGroup("Options of --live:")
    .option("--live", "probe the running front end for the responses its config promises")
    .option("--connect <HOST>", "address to connect to (default: loopback, or the listener's own address)")
    .option(
      "--host <NAME>",
      "server name to ask for (default: the first name of the deployment or the config)",
    )
    .option(
      "--image-path <PATH>",
      "image to ask for, where a response is one (default: one found in its directory)",
    )
    .option(
      "--deployment <FILE>",
      "the deployment, which lists the responses (default: the one of the host's config)",
    )
    .option(
      "--port-offset <N>",
      "the front end runs as a preview with this offset",
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      "--control <FILE>",
      "socket of the running portico, which knows the servers of its upstreams",
      controlSocket() ?? CONTROL_SOCKET,
    )
    .option("--insecure", "accept a certificate that is not trusted (the default)")
    .option("--no-insecure", "verify the certificate")
    .option("--timeout <SECONDS>", "time for each request", wholeNumber(1, 3_600), 10)
    .addHelpText("after", CHECK_HELP);
  addDatabaseOptions(command);
  command.action(async (file: string | undefined, flags: CheckFlags) => {
    const source = sourceOf(file, flags.root);
    refuseMixed(command, flags);
    if (flags.live === true) {
      const options = {
        ...flags,
        json: flags.json === true,
        insecure: flags.insecure !== false,
        timeoutMs: flags.timeout * 1000,
      };
      return done(await checkRunning(source, options, output));
    }
    for (const option of LIVE_ONLY) {
      if (command.getOptionValueSource(option.key) === "cli") {
        command.error(`error: option '${option.flag}' needs --live`);
      }
    }
    const { against } = flags;
    if (against !== undefined) {
      const form = { json: flags.json === true, sarif: flags.sarif === true };
      return done(await checkAgainst(source, { against, ...form }, output));
    }
    done(await check(source, { json: flags.json === true, files: flags.files }, output));
  });
}

/** Options of which one makes no sense with, or without, another one. */
function refuseMixed(command: Command, flags: CheckFlags): void {
  const conflict = CONFLICTS.find((pair) => pair.every((key) => flags[key] !== undefined));
  const both = conflict?.map((key) => `'--${key}'`).join(" and ");
  if (both !== undefined) command.error(`error: options ${both} cannot be used together`);
  if (flags.sarif === true && flags.against === undefined)
    command.error("error: option '--sarif' needs --against");
}

const CONFLICTS = [
  ["live", "against"],
  ["json", "sarif"],
] as const;

const LIVE_ONLY = [
  { key: "connect", flag: "--connect" },
  { key: "host", flag: "--host" },
  { key: "imagePath", flag: "--image-path" },
  { key: "deployment", flag: "--deployment" },
  { key: "portOffset", flag: "--port-offset" },
  { key: "control", flag: "--control" },
  { key: "insecure", flag: "--[no-]insecure" },
  { key: "timeout", flag: "--timeout" },
  ...DATABASE_FLAGS,
];

const CHECK_HELP = `
Prints every problem at once: where it is, what was received, what is allowed, how to fix it.

--live sends one HEAD request for each expected response and prints one line for each: PASS or FAIL, the request,
what was expected, what was seen, and for FAIL the likely cause. The deployment lists the responses; without one, each
route has to answer as its action promises. Of upstreams with several servers, it asks the running portico for the state of
each, and connects to those that are up. It may run on another machine that has a copy of both documents.

--against compares two configs by what they mean for clients, whatever is named or ordered otherwise: what became
reachable, leads elsewhere, can be written, is trusted or allowed more. Each finding has an id, the place in FILE, and the
old and new value. Exit codes: 0 if nothing opened, 1 if something did or may have, or FILE is refused, 2 if OLD is.

With credentials for the application's database, --live also looks for settings that were stored through the web
interface: they take priority over the config files.

Examples:
  portico check ./portico.json
  portico check --root ./out/host --json
  portico check --no-files ./portico.json                 on a machine that has none of the TLS files
  portico check --against main.json ./portico.json        what a change opens
  portico check --live                                    on the host itself
  portico check --live --connect 192.0.2.10               from another machine
  portico check --live --port-offset 10000                what \`portico preview\` serves
  portico check --live --no-insecure --host files.example.org
  PORTICO_DATABASE_PASSWORD=… portico check --live --database sync@127.0.0.1:3306/sync_web`;
