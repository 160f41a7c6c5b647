import type { Command } from "commander";
import { checkAgainst } from "../against.js";
import { reviewSecurity } from "../securityReview.js";
import { check, checkRunning } from "./checkCommand.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { controlSocket } from "../../runtime/supervisor/serve.js";
import { type DocumentSource, sourceOf } from "../document.js";
import { withSource, wholeNumber } from "../options.js";
import type { CommandOutput } from "../output.js";
import { addDatabaseOptions, DATABASE_FLAGS, type DatabaseFlags } from "./storedSettingsOptions.js";

interface CheckFlags extends Pick<DatabaseFlags, "database" | "databaseOptionFile"> {
  root?: string;
  json?: boolean;
  sarif?: boolean;
  against?: string;
  security?: boolean;
  files: boolean;
  live?: boolean;
  connect?: string;
  host?: string;
  imagePath?: string;
  deployment?: string;
  portOffset: number;
  insecure?: boolean;
  timeout: number;
  site?: string;
  control: string;
}

export function addCheck(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const command = withSource(program.command("check"))
    .description(
      "check a config and its files; with --live, the running front end; with --against, what a change opens",
    )
    .option("--json", "print the outcome as JSON")
    .option("--no-files", "check only the config: no TLS files, directories or logs")
    .option(
      "--against <OLD>",
      "list the access that FILE opens and the config OLD does not; exit code 1 if any",
    )
    .option(
      "--security",
      "list what strangers can read, reach or guess: plain http, open private paths, self-signed certificates",
    )
    .option(
      "--sarif",
      "with --against or --security, print the outcome as SARIF 2.1.0, which code hosts show",
    )
    .optionsGroup("Options of --live:")
    .option("--live", "probe the running front end, and compare its responses with the expected ones")
    .option("--site <NAME>", "only responses and servers of this site")
    .option("--connect <HOST>", "address to connect to (default: loopback, or the listener's own address)")
    .option(
      "--host <NAME>",
      "server name in the requests (default: the first name of the deployment or the config)",
    )
    .option(
      "--image-path <PATH>",
      "path of the image to request, if an expected response is an image (default: an image in its directory)",
    )
    .option(
      "--deployment <FILE>",
      "deployment with the expected responses (default: the host's, if it names this config)",
    )
    .option(
      "--port-offset <N>",
      "offset of `portico preview`, if the front end runs as a preview",
      wholeNumber(0, 65_535),
      0,
    )
    .option(
      "--control <FILE>",
      "control socket of the running portico, which knows the state of each upstream server",
      controlSocket() ?? CONTROL_SOCKET,
    )
    .option("--insecure", "accept a certificate that is not trusted (the default)")
    .option("--no-insecure", "verify the certificate")
    .option("--timeout <SECONDS>", "time limit for each request", wholeNumber(1, 3_600), 10)
    .addHelpText("after", CHECK_HELP);
  addDatabaseOptions(command);
  command.action(async (file: string | undefined, flags: CheckFlags) => {
    refuseMixed(command, flags);
    done(await runCheck(sourceOf(file, flags.root), flags, output));
  });
}

function runCheck(source: DocumentSource, flags: CheckFlags, output: CommandOutput): Promise<number> {
  const { against, files, live, security, json = false, sarif = false } = flags;
  if (live === true) {
    const { insecure = true, timeout } = flags;
    return checkRunning(source, { ...flags, json, insecure, timeoutMs: timeout * 1000 }, output);
  }
  if (security === true) return reviewSecurity(source, { json, sarif }, output);
  return against === undefined
    ? check(source, { json, files }, output)
    : checkAgainst(source, { against, json, sarif }, output);
}

/** Options of which one makes no sense with, or without, another one. */
function refuseMixed(command: Command, flags: CheckFlags): void {
  const conflict = CONFLICTS.find((pair) => pair.every((key) => flags[key] !== undefined));
  const both = conflict?.map((key) => `'--${key}'`).join(" and ");
  if (both !== undefined) command.error(`error: options ${both} cannot be used together`);
  if (flags.sarif === true && flags.against === undefined && flags.security === undefined)
    command.error("error: option '--sarif' needs --against or --security");
  if (flags.live === true) return;
  for (const option of LIVE_ONLY)
    if (command.getOptionValueSource(option.key) === "cli")
      command.error(`error: option '${option.flag}' needs --live`);
}

const CONFLICTS = [
  ["live", "against"],
  ["live", "security"],
  ["against", "security"],
  ["json", "sarif"],
] as const;

const LIVE_ONLY = [
  { key: "site", flag: "--site" },
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
Prints all problems at once, each with its place, the received value, the allowed values and the fix.

--live sends one HEAD request for each expected response, and prints one line for each: PASS or FAIL, the request, the
expected and the actual response, and for FAIL the likely cause. The deployment lists the expected responses; without
a deployment, the action of each route determines them. If an upstream has several servers, --live asks the running
portico for the state of each server, and connects to the servers that are up. It also works on another machine that has
copies of the config and the deployment.

--against compares the effects of two configs on clients; it ignores renamed items and reordered lists. It reports
requests that reach a new or different destination, or have more write access, and clients that get more trust or higher
limits. Each finding has an id, the place in FILE, and the old and new value. It reads no other file. Exit codes: 0 if
FILE opens nothing, 1 if FILE opens or may open something, or is refused, 2 if OLD is refused.

--security reviews the config and its certificates: private paths that are open, log-ins that nothing guards, passwords
over http, self-signed certificates, sites without HSTS. An entry of \`acceptedRisks\` accepts a finding, with a reason.
Exit codes: 0 if nothing is to do, 1 if something is, or FILE is refused.

With credentials for the application's database, --live also reports settings that users stored in the web interface,
because these settings take priority over the application's files.

Examples:
  portico check ./portico.json
  portico check --root ./out/host --json
  portico check --no-files ./portico.json                 on a machine without the TLS files
  portico check --against main.json ./portico.json        the access that a change opens
  portico check --security                                what strangers can read, reach or guess
  portico check --live                                    on the host itself
  portico check --live --site vault
  portico check --live --connect 192.0.2.10               from another machine
  portico check --live --port-offset 10000                a running \`portico preview\`
  portico check --live --no-insecure --host files.example.org
  PORTICO_DATABASE_PASSWORD=… portico check --live --database sync@127.0.0.1:3306/sync_web`;
