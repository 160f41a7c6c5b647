import { resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { serve } from "../runtime/supervisor/serve.js";
import { nodeFixes } from "../model/host/nodeReleases.js";
import { VERSION } from "../model/text/version.js";
import { DEFAULT_FILE, sourceOf } from "./document.js";
import { withSource } from "./options.js";
import { EXIT, json, type CommandOutput, STDIO, escapingControls } from "./output.js";

/** Runs the command line and resolves with the exit code: 0 ok, 1 a problem was found, 2 wrong usage. */
export async function run(args: readonly string[], to: CommandOutput = STDIO): Promise<number> {
  const output = escapingControls(to);
  const state = { code: EXIT.ok as number };
  const program = await createProgram(args[0], output, (code) => (state.code = code));
  try {
    await program.parseAsync(args, { from: "user" });
    return state.code;
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    return error.exitCode === 0 ? EXIT.ok : EXIT.usage;
  }
}

/** The command line; without a `first` word, all of it. */
export async function createProgram(
  first: string | undefined,
  output: CommandOutput,
  done: (code: number) => void,
): Promise<Command> {
  const program = new Command("portico")
    .description("Reverse-proxy front end: HTTP/1.1, HTTP/2 and TLS from one configuration file.")
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
  // Loading the others takes longer than a start of the proxy may.
  if (first !== "serve") (await import("./commands/commands.js")).addCommands(program, output, done);
  program
    .command("version")
    .description("print the versions of portico, Node.js and OpenSSL")
    .option("--json", "print them as JSON")
    .action(({ json: asJson }: { json?: boolean }) => {
      const { node, openssl } = process.versions;
      output.out(
        asJson === true
          ? json({ portico: VERSION, node, openssl, nodeFixes: nodeFixes(node, Date.now())?.text })
          : `${versionText()}\n`,
      );
    });
  return program;
}

const EXAMPLES = `
FILE defaults to ${DEFAULT_FILE}, below DIR if --root DIR is given.

Examples:
  portico check                              is the config of this host valid, with all files that it names?
  portico check --live                       does the running front end respond as it should?
  portico preview --root ./out/host          serve the host below ./out/host on ports 10080 and 10443
  portico serve                              serve; SIGHUP reloads, SIGUSR1 reopens logs, SIGTERM stops
  portico reload                             load the changed config without interrupting requests

Exit codes: 0 ok, 1 a problem was found or serving failed, 2 wrong usage.`;

function addServe(program: Command, done: (code: number) => void): void {
  withSource(program.command("serve"))
    .description("serve a config until stopped")
    .option("--state <DIR>", "directory for certificates by ACME (default: $STATE_DIRECTORY)")
    .addHelpText(
      "after",
      `
SIGHUP   reloads the config; portico refuses a config with problems, logs them all, and keeps the old config
SIGUSR1  reopens the log files after a rotation
SIGUSR2  hands over to the installed runtime, like \`portico upgrade\`
SIGTERM  accepts no more connections, lets running requests finish, and exits; SIGINT does the same

Commands such as \`portico status\` and \`portico reload\` use the control socket, which portico creates in the directory
that RUNTIME_DIRECTORY names. systemd sets this variable; without it there is no control socket.

Portico uses each socket that systemd passes for the listener that it matches, and needs no privileges for it.

Examples:
  portico serve
  portico serve ./portico.json
  portico serve --root ./out/host            use ./out/host as the host's /`,
    )
    .action(async (file: string | undefined, { root, state }: { root?: string; state?: string }) => {
      done(
        await serve({ ...sourceOf(file, root), ...(state === undefined ? {} : { state: resolve(state) }) }),
      );
    });
}

function versionText(): string {
  const { node, openssl } = process.versions;
  const fixes = nodeFixes(node, Date.now())?.text;
  return `portico ${VERSION} (Node.js ${node}${fixes === undefined ? "" : `: ${fixes}`}, OpenSSL ${openssl})`;
}
