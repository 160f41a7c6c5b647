import { resolve } from "node:path";
import { type Command, Option } from "commander";
import {
  type Activated,
  activate,
  ActivationFailed,
  canDetach,
  deactivate,
  type Deactivated,
  formatPlan,
  lastingPrograms,
  missingRecordRoom,
  type Programs,
  recoverHost,
  RecordWriter,
  runDetached,
  runningPrograms,
} from "../../host/activation/index.js";
import { formatChecked } from "../../host/diagnosis/expected/liveCheck.js";
import { formatProblem, INCOMING_DIRECTORY, type Problem, ProblemError } from "../../model/index.js";
import { wholeNumber } from "../options.js";
import { EXIT, json, type CommandOutput } from "../output.js";

interface CommonFlags {
  root: string;
  json?: boolean;
  wait: number;
  /** The file in which a detached run writes its output; for runs that `portico` itself has started. */
  record?: string;
}

interface ActivateFlags extends CommonFlags {
  incoming?: string;
  again?: boolean;
  document?: string;
  identity?: string;
  construct?: string;
  takeOver?: boolean;
  dryRun?: boolean;
}

interface DeactivateFlags extends CommonFlags {
  purge?: boolean;
  identity?: string;
}

export function addActivate(program: Command, output: CommandOutput, done: (code: number) => void): void {
  withCommon(program.command("activate"))
    .description("bring the delivered deployment into service on this host, or leave the host as it was")
    .option("--incoming <DIR>", "directory with the uploaded files (default: the files are already in place)")
    .option("--again", "activate the last deployment again, which undoes later changes on the host")
    .option(
      "--document <SHA256>",
      "SHA-256 of the deployment document; refuse another document (default: whichever is in deployment.json)",
    )
    .option(
      "--identity <ID>",
      "id of the deployment; refuse to replace one with another id (default: the id on the host)",
    )
    .option("--construct <PATH>", "construct path of the deployment, for messages")
    .option("--take-over", "replace a deployment that has another id")
    .option("--dry-run", "check the deployment and print the steps; change nothing")
    .addHelpText("after", ACTIVATE_HELP)
    .action(async (flags: ActivateFlags) =>
      done(await toItsEnd(runActivate, flags, output, runningPrograms)),
    );
  withCommon(program.command("deactivate"))
    .description("remove the deployment and restore the files from before it")
    .option("--purge", "remove the proxy's logs and its certificates by ACME as well")
    .option("--identity <ID>", "id of the deployment to remove; keep a deployment with another id")
    .addHelpText("after", DEACTIVATE_HELP)
    .action(async (flags: DeactivateFlags) =>
      done(await toItsEnd(runDeactivate, flags, output, lastingPrograms)),
    );
  withCommon(program.command("recover"))
    .description("finish or undo an interrupted activation or deactivation")
    .addHelpText("after", RECOVER_HELP)
    .action(async (flags: CommonFlags) => done(await toItsEnd(runRecover, flags, output, runningPrograms)));
}

const ACTIVATE_HELP = `
The command checks everything first. Then it stops the application's daemons, writes the files, starts the daemons,
starts or reloads the proxy, and probes the expected responses. It leaves out each step that the change does not need.
If a step fails, the command restores the last good state, and the exit code is 1. If the activation is killed, systemd
starts it again, and the step that was interrupted is finished or undone. After a power failure, the host restores the
last good state at boot.

The activation runs as a separate systemd unit: neither Ctrl-C nor a lost connection ends it. If you did not see its
outcome, the next run prints it. \`systemctl stop 'portico-activation-*'\` makes the activation roll back.

Examples:
  portico activate --incoming ${INCOMING_DIRECTORY}/ID
  portico activate --dry-run --json
  portico activate --again --dry-run         show later changes on this host
  portico activate --root ./out/host         write the files below ./out/host; start no service`;

const DEACTIVATE_HELP = `
The command undoes its edits of the application's settings item by item, and keeps later changes by others.

Examples:
  portico deactivate
  portico deactivate --purge`;

const RECOVER_HELP = `
Rolls an interrupted activation back to the last good state, or completes an interrupted deactivation. \`activate\`
and \`deactivate\` do the same before they begin, and so does the host at boot: \`journalctl -u portico-recovery\` shows
the recovery at boot.

Examples:
  portico recover`;

function withCommon(command: Command): Command {
  return command
    .option("--root <DIR>", "directory to use as the host's /; start and stop no service", "/")
    .option("--json", "print the outcome as JSON, and progress to standard error")
    .option(
      "--wait <SECONDS>",
      "how long to wait for the end of another activation",
      wholeNumber(0, 99_999),
      300,
    )
    .addOption(new Option("--record <FILE>").hideHelp());
}

/** A run that changes the host does not end with the terminal or the connection that started it. */
async function toItsEnd<F extends ActivateFlags>(
  command: (flags: F, output: CommandOutput) => Promise<number>,
  flags: F,
  output: CommandOutput,
  programs: () => Programs | Promise<Programs>,
): Promise<number> {
  if (flags.record === undefined) {
    const detach = flags.dryRun !== true && canDetach(resolve(flags.root));
    if (!detach) return command(flags, output);
    const inTheWay = await missingRecordRoom();
    if (inTheWay.length > 0) return refused(new ProblemError(inTheWay), flags, output);
    return runDetached(await programs(), process.argv.slice(2), output);
  }
  const record = new RecordWriter(flags.record, output);
  const code = await command(flags, record).catch((error: Error) => {
    record.err(`${error.stack!}\n`);
    return EXIT.failed;
  });
  record.exit(code);
  return code;
}

async function runActivate(flags: ActivateFlags, output: CommandOutput): Promise<number> {
  const report = reportTo(flags, output);
  const { signal, release } = interruption();
  try {
    const activated = await activate({
      root: resolve(flags.root),
      incoming: flags.incoming === undefined ? undefined : resolve(flags.incoming),
      again: flags.again === true,
      document: flags.document,
      identity:
        flags.identity === undefined
          ? undefined
          : { id: flags.identity, construct: flags.construct ?? flags.identity },
      takeOver: flags.takeOver === true,
      dryRun: flags.dryRun === true,
      lockSeconds: flags.wait,
      signal,
      report,
    });
    for (const warning of activated.plan.warnings) output.err(`warning: ${formatProblem(warning)}\n`);
    const missing = [...new Set(activated.responses.flatMap(({ settings = [] }) => settings))];
    if (missing.length > 0) output.err(notYetSet(missing));
    output.out(flags.json === true ? activatedJson(activated) : activatedText(activated, flags));
    return EXIT.ok;
  } catch (error) {
    return refused(error, flags, output);
  } finally {
    release();
  }
}

/** The deployment serves; its owner still has to make the application's own settings. */
function notYetSet(settings: readonly string[]): string {
  return `warning: the application does not respond as expected yet, because its settings differ: ${settings.join(", ")}.
  The values are in /usr/share/portico/application-settings: write them into the application's own files and restart the
  application, or let activation write them (\`activation.settings\` with \`apply: true\`).
`;
}

async function runDeactivate(flags: DeactivateFlags, output: CommandOutput): Promise<number> {
  // There is no safe point to stop halfway: it continues to the end.
  const { release } = interruption();
  try {
    const { removed, problems } = await deactivate({
      root: resolve(flags.root),
      lockSeconds: flags.wait,
      report: reportTo(flags, output),
      purge: flags.purge === true,
      identity: flags.identity,
    });
    if (problems.length > 0) return incomplete(problems, flags, output);
    output.out(flags.json === true ? json({ ok: true, removed, problems: [] }) : `${removedText(removed)}\n`);
    return EXIT.ok;
  } catch (error) {
    return refused(error, flags, output);
  } finally {
    release();
  }
}

function removedText(removed: Deactivated["removed"]): string {
  if (typeof removed === "object") {
    return `nothing was removed: this host has the deployment of ${removed.keptOf}, which replaced this one`;
  }
  return removed === "nothing" ? "nothing is deployed here" : "the deployment is gone";
}

async function runRecover(flags: CommonFlags, output: CommandOutput): Promise<number> {
  // There is no safe point to stop halfway, as in a deactivation.
  const { release } = interruption();
  try {
    const recovered = await recoverHost({
      root: resolve(flags.root),
      lockSeconds: flags.wait,
      report: reportTo(flags, output),
    });
    const { kind, problems } = recovered ?? { problems: [] };
    if (flags.json === true)
      output.out(json({ ok: problems.length === 0, recovered: kind ?? null, problems }));
    else output.out(recoveredText(kind));
    return problems.length === 0 ? EXIT.ok : EXIT.failed;
  } catch (error) {
    return refused(error, flags, output);
  } finally {
    release();
  }
}

function recoveredText(kind: "activation" | "deactivation" | undefined): string {
  if (kind === undefined) return "nothing was interrupted\n";
  return kind === "activation" ? "the host is as it was before\n" : "the deployment is gone\n";
}

function reportTo({ json: asJson }: CommonFlags, output: CommandOutput): (line: string) => void {
  return (line) => (asJson === true ? output.err : output.out).call(output, `${line}\n`);
}

/**
 * A run that is interrupted must not leave the host in between; Ctrl-C and SIGTERM roll back, if they reach the run.
 */
function interruption(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals): void => controller.abort(name);
  const ignore = (): void => undefined;
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt).on("SIGHUP", ignore);
  return {
    signal: controller.signal,
    release: () => void process.off("SIGINT", interrupt).off("SIGTERM", interrupt).off("SIGHUP", ignore),
  };
}

function activatedText({ plan, responses }: Activated, { dryRun }: ActivateFlags): string {
  const lines = formatPlan(plan);
  const seen = responses.map((row) => `${formatChecked(row)}\n`).join("");
  if (lines.length === 0) return `${seen}nothing to do: the host is as deployed\n`;
  return dryRun === true ? `${lines.join("\n")}\n` : `${seen}activated\n`;
}

function activatedJson({ plan, responses }: Activated): string {
  const { files, settings, steps, warnings, drift, preview } = plan;
  return json({
    ok: true,
    steps,
    preview,
    drift,
    files: files.map(({ path, role, why }) => ({ path, role, why })),
    settings: [...new Set(settings.edits.map(({ path }) => path))],
    responses,
    warnings,
    problems: [],
  });
}

function refused(error: unknown, flags: CommonFlags, output: CommandOutput): number {
  if (!(error instanceof ProblemError)) throw error;
  if (flags.json === true) {
    const rolledBack = error instanceof ActivationFailed;
    output.out(json({ ok: false, rolledBack, problems: error.problems }));
  } else if (error instanceof ActivationFailed) output.err(failedText(error));
  else output.err(`${formatAll(error.problems)}nothing was changed\n`);
  return EXIT.failed;
}

/** A deactivation does as much as it can, and continues after any failure. */
function incomplete(problems: readonly Problem[], flags: CommonFlags, output: CommandOutput): number {
  if (flags.json === true) output.out(json({ ok: false, rolledBack: false, problems }));
  else output.err(`${formatAll(problems)}could not remove everything: the problems above name the rest\n`);
  return EXIT.failed;
}

/** Why it failed was reported when it did; this is how the roll-back ended. */
function failedText({ reason, notRestored }: ActivationFailed): string {
  if (notRestored.length === 0) {
    return `${formatAll(reason)}not activated; the host is as it was before\n`;
  }
  return `${formatAll(reason)}not activated, and these steps of the roll-back failed:\n${formatAll(notRestored)}`;
}

function formatAll(problems: readonly Problem[]): string {
  return problems.map((p) => `${formatProblem(p)}\n`).join("");
}
