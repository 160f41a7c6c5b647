import { Command, CommanderError, InvalidArgumentError } from "commander";
import { serve } from "../runtime/serve.js";
import { VERSION } from "../runtime/version.js";
import { DEFAULT_FILE, sourceOf } from "./document.js";
import { EXIT, type Output, STDIO } from "./output.js";

/** Runs the command line and resolves with the exit code: 0 ok, 1 a problem was found, 2 wrong usage. */
export async function run(args: readonly string[], output: Output = STDIO): Promise<number> {
  const state = { code: EXIT.ok as number };
  const program = createProgram(output, (code) => (state.code = code));
  try {
    await program.parseAsync(args, { from: "user" });
    return state.code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
}

function createProgram(output: Output, done: (code: number) => void): Command {
  const program = new Command("portico")
    .description("Reverse-proxy front end: HTTP/1.1, HTTP/2 and TLS on one file of configuration.")
    .version(versionText(), "-V, --version", "print the version")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [COMMAND]", "print help for a command")
    .exitOverride()
    .configureOutput({ writeOut: (text) => output.out(text), writeErr: (text) => output.err(text) })
    .showHelpAfterError(
      "Run `portico --help` for the commands, `portico COMMAND --help` for the options of one.",
    )
    .addHelpText("after", EXAMPLES);
  addServe(program, done);
  addCheck(program, output, done);
  addPreview(program, output, done);
  program
    .command("version")
    .description("print the versions of portico, Node.js and OpenSSL")
    .action(() => output.out(`${versionText()}\n`));
  return program;
}

const EXAMPLES = `
FILE defaults to ${DEFAULT_FILE}, looked up below --root DIR if that is given.

Examples:
  portico check                              is the config of this host valid, with all the files it names?
  portico check --live                       does the running front end answer as it should?
  portico preview --root ./out/host          look at a laid-out host on 127.0.0.1:10080 and :10443
  portico serve                              serve; SIGHUP reloads, SIGUSR1 reopens logs, SIGTERM stops

Exit codes: 0 ok, 1 a problem was found or serving failed, 2 wrong usage.`;

function addServe(program: Command, done: (code: number) => void): void {
  withSource(program.command("serve"))
    .description("serve a config until stopped")
    .addHelpText(
      "after",
      `
SIGHUP   reads the config again; a bad one is refused with every problem and the old one keeps serving
SIGUSR1  reopens the log files, after they were rotated
SIGTERM  stops accepting, lets running requests finish, exits; SIGINT the same

Sockets that systemd passes in are used where they fit a listener; no privilege is needed then.

Examples:
  portico serve
  portico serve ./portico.json
  portico serve --root ./out/host            every path of the config is looked up below ./out/host`,
    )
    .action(async (file: string | undefined, options: { root?: string }) => {
      done(await serve(sourceOf(file, options.root)));
    });
}

interface CheckFlags {
  root?: string;
  json?: boolean;
  files: boolean;
  live?: boolean;
  connect?: string;
  host?: string;
  mediaPath?: string;
  portOffset: number;
  insecure?: boolean;
  timeout: number;
}

function addCheck(program: Command, output: Output, done: (code: number) => void): void {
  const command = withSource(program.command("check"))
    .description("check a config and the files it names, or with --live the running front end")
    .option("--json", "print the outcome as JSON")
    .option("--no-files", "check the document only: no TLS files, directories or logs")
    .optionsGroup("Options of --live:")
    .option("--live", "probe the running front end for the responses its config promises")
    .option("--connect <HOST>", "address to connect to (default: loopback, or the listener's own address)")
    .option("--host <NAME>", "server name to ask for (default: the application's first name in the config)")
    .option("--media-path <PATH>", "image below the media route (default: one found in the media directory)")
    .option(
      "--port-offset <N>",
      "the front end runs as a preview with this offset",
      wholeNumber(0, 65_535),
      0,
    )
    .option("--insecure", "accept a certificate that nobody vouches for (the default)")
    .option("--no-insecure", "verify the certificate")
    .option("--timeout <SECONDS>", "time for each request", wholeNumber(1, 3_600), 10)
    .addHelpText("after", CHECK_HELP);
  command.action(async (file: string | undefined, flags: CheckFlags) => {
    const { check, checkRunning } = await import("./checkCommand.js");
    const source = sourceOf(file, flags.root);
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
    done(await check(source, { json: flags.json === true, files: flags.files }, output));
  });
}

const LIVE_ONLY = [
  { key: "connect", flag: "--connect" },
  { key: "host", flag: "--host" },
  { key: "mediaPath", flag: "--media-path" },
  { key: "portOffset", flag: "--port-offset" },
  { key: "insecure", flag: "--[no-]insecure" },
  { key: "timeout", flag: "--timeout" },
];

const CHECK_HELP = `
Prints every problem at once: where it is, what was received, what is allowed, how to mend it.

--live sends one HEAD request for each expected response and prints one line for each: PASS or FAIL, the request,
what was expected, what was seen, and for FAIL the likely cause. It reads the document only, and may run on another
machine that has a copy of it.

Examples:
  portico check ./portico.json
  portico check --root ./out/host --json
  portico check --no-files ./portico.json                 on a machine that has none of the TLS files
  portico check --live                                    on the host itself
  portico check --live --connect 192.0.2.10               from another machine
  portico check --live --port-offset 10000                what \`portico preview\` serves
  portico check --live --no-insecure --host files.example.org`;

interface PreviewFlags {
  root?: string;
  portOffset: number;
  upstream: Record<string, string>;
}

function addPreview(program: Command, output: Output, done: (code: number) => void): void {
  withSource(program.command("preview"))
    .description("serve a config on loopback and unprivileged ports, logging to standard error")
    .option("--port-offset <N>", "added to every port: 80 becomes 10080", wholeNumber(1, 65_534), 10_000)
    .option(
      "--upstream <NAME=URL>",
      "other address for an upstream; may be given several times",
      collectUpstream,
      {},
    )
    .addHelpText(
      "after",
      `
Listeners move to 127.0.0.1 (IPv6: ::1), and redirects follow them. Log files are left alone. All else is as it will
be on the host: TLS, routes, headers, limits.

Examples:
  portico preview ./portico.json
  portico preview --root ./out/host --port-offset 20000
  portico preview --upstream web=http://127.0.0.1:18000 --upstream webdav=http://127.0.0.1:18080`,
    )
    .action(async (file: string | undefined, flags: PreviewFlags) => {
      const { preview } = await import("./previewCommand.js");
      const options = { portOffset: flags.portOffset, upstreams: flags.upstream };
      done(await preview(sourceOf(file, flags.root), options, output));
    });
}

function withSource(command: Command): Command {
  return command
    .argument("[FILE]", "the config")
    .option("--root <DIR>", "folder below which every path of the config is looked up, and the default FILE");
}

function wholeNumber(min: number, max: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (!/^\d+$/.test(text) || value < min || value > max) {
      throw new InvalidArgumentError(`Give a whole number from ${min} to ${max}.`);
    }
    return value;
  };
}

function collectUpstream(text: string, before: Record<string, string>): Record<string, string> {
  const at = text.indexOf("=");
  if (at < 1 || at === text.length - 1)
    throw new InvalidArgumentError("Give NAME=URL, as web=http://127.0.0.1:18000.");
  return { ...before, [text.slice(0, at)]: text.slice(at + 1) };
}

function versionText(): string {
  return `portico ${VERSION} (Node.js ${process.versions.node}, OpenSSL ${process.versions.openssl})`;
}
