import { resolve } from "node:path";
import { Command, CommanderError } from "commander";
import { serve } from "../runtime/supervisor/serve.js";
import { nodeFixes } from "../model/nodeReleases.js";
import { VERSION } from "../model/version.js";
import { DEFAULT_FILE, sourceOf } from "./document.js";
import { withSource } from "./options.js";
import { EXIT, json, type Output, STDIO, escapingControls } from "./output.js";

/** Runs the command line and resolves with the exit code: 0 ok, 1 a problem was found, 2 wrong usage. */
export async function run(args: readonly string[], to: Output = STDIO): Promise<number> {
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
  output: Output,
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
  if (first !== "serve") (await import("./commands.js")).addCommands(program, output, done);
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
FILE defaults to ${DEFAULT_FILE}, looked up below --root DIR if that is given.

Examples:
  portico check                              is the config of this host valid, with all the files it names?
  portico check --live                       does the running front end answer as it should?
  portico preview --root ./out/host          look at a laid-out host on 127.0.0.1:10080 and :10443
  portico serve                              serve; SIGHUP reloads, SIGUSR1 reopens logs, SIGTERM stops
  portico reload                             load the changed config without interrupting requests

Exit codes: 0 ok, 1 a problem was found or serving failed, 2 wrong usage.`;

function addServe(program: Command, done: (code: number) => void): void {
  withSource(program.command("serve"))
    .description("serve a config until stopped")
    .option("--state <DIR>", "where certificates by ACME are kept (default: $STATE_DIRECTORY)")
    .addHelpText(
      "after",
      `
SIGHUP   reads the config again; a bad one is refused with every problem and the old one keeps serving
SIGUSR1  reopens the log files, after they were rotated
SIGUSR2  hands over to the installed runtime, like \`portico upgrade\`
SIGTERM  stops accepting, lets running requests finish, exits; SIGINT does the same

The control socket, which \`portico status\` and \`portico reload\` ask, is made in the directory that RUNTIME_DIRECTORY
names, as systemd sets it; without that there is none.

Sockets that systemd passes in are used where they match a listener; no privilege is needed then.

Examples:
  portico serve
  portico serve ./portico.json
  portico serve --root ./out/host            every path of the config is looked up below ./out/host`,
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
