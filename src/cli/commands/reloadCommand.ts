import { type Command, InvalidArgumentError } from "commander";
import { problem, type Problem, type Result } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import {
  type CredentialSet,
  type CredentialSource,
  handOver,
  ownerOf,
} from "../../runtime/load/credentialSet.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { printOutcome, withControl } from "./controlOptions.js";
import type { CommandOutput } from "../output.js";

/** TLS files to hand over before the reload. */
interface HandOver {
  readonly sources: readonly CredentialSource[];
  readonly directory: string;
  /** The master's process, whose user has to read them. */
  readonly pid: number;
}

interface ReloadOptions {
  /** Path of the master's socket. */
  readonly control: string;
  readonly timeoutMs: number;
  readonly credentials?: HandOver;
  readonly json?: boolean;
}

/** `portico reload`: makes the running portico load the current config and TLS files, and reports the outcome. */
async function reload(options: ReloadOptions, output: CommandOutput): Promise<number> {
  const handedOver = await handOverCredentials(options.credentials);
  if (!handedOver.ok) return printOutcome(handedOver, "reload", output, options.json);
  const set = handedOver.value;
  const outcome = await askMaster(options.control, { command: "reload" }, options.timeoutMs);
  // The next start of a worker or master must not find files that were refused.
  await (outcome.ok ? set?.keep() : set?.takeBack());
  return printOutcome(outcome, "reload", output, options.json, "; the current config stays in force");
}

async function handOverCredentials(credentials?: HandOver): Promise<Result<CredentialSet | undefined>> {
  if (credentials === undefined) return { ok: true, value: undefined };
  const { sources, directory, pid } = credentials;
  const owner = await ownerOf(pid);
  if (owner !== undefined) return handOver(directory, sources, owner);
  const problems: Problem[] = [
    problem("control.not-running", "--pid", "is not a process to hand credentials to", { received: pid }),
  ];
  return { ok: false, problems };
}

interface ReloadFlags {
  control: string;
  timeout: number;
  credential?: CredentialSource[];
  credentialDirectory?: string;
  pid?: number;
  json?: boolean;
}

export function addReload(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const command = withControl(program.command("reload"))
    .description("make the running portico reload its config and TLS files")
    .optionsGroup("Options that the service's unit uses, as root:")
    .option(
      "--credential <NAME:FILE>",
      "TLS file to pass to portico before the reload; may be given several times",
      collectCredential,
    )
    .option("--credential-directory <DIR>", "directory for these files")
    .option("--pid <PID>", "process id of the running portico, whose user may read these files", Number)
    .addHelpText(
      "after",
      `
Waits until portico uses the new configuration, or refuses it. After a refusal the command prints every problem, the
exit code is 1, and the old configuration stays in use. A reload interrupts no request. \`systemctl reload portico\`
runs this command, and also passes renewed TLS files to portico.

Examples:
  portico reload
  portico reload --control ${CONTROL_SOCKET}`,
    );
  command.action(async (flags: ReloadFlags) => {
    const { control, timeout, credential: sources = [], credentialDirectory: directory, pid } = flags;
    const options = { control, timeoutMs: timeout * 1000, json: flags.json };
    if (sources.length === 0) return done(await reload(options, output));
    if (directory === undefined || pid === undefined)
      return command.error("error: option '--credential' needs --credential-directory and --pid");
    done(await reload({ ...options, credentials: { sources, directory, pid } }, output));
  });
}

/** Collects the values of `--credential`, which may be repeated. */
export function collectCredential(
  text: string,
  before: readonly CredentialSource[] = [],
): CredentialSource[] {
  const at = text.indexOf(":");
  if (at < 1 || at === text.length - 1) {
    throw new InvalidArgumentError("Give NAME:FILE, such as privkey.pem:/etc/portico/tls/privkey.pem.");
  }
  return [...before, { name: text.slice(0, at), file: text.slice(at + 1) }];
}
