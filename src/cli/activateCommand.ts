import { resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { type Activated, activate, ActivationFailed, deactivate, formatPlan } from "../activation/index.js";
import { formatChecked } from "../diagnosis/liveCheck.js";
import { formatProblem, INCOMING_DIRECTORY, type Problem, ProblemError } from "../model/index.js";
import { EXIT, json, type Output } from "./output.js";

interface CommonFlags {
  root?: string;
  json?: boolean;
  wait: number;
}

interface ActivateFlags extends CommonFlags {
  incoming?: string;
  dryRun?: boolean;
}

interface DeactivateFlags extends CommonFlags {
  purge?: boolean;
}

export function addActivate(program: Command, output: Output, done: (code: number) => void): void {
  withCommon(program.command("activate"))
    .description("make the delivered deployment the running state of this host, or leave the host as it was")
    .option("--incoming <DIR>", "where the delivery uploaded to (default: the files are in their places)")
    .option("--dry-run", "check and print what would be done; change nothing")
    .addHelpText("after", ACTIVATE_HELP)
    .action(async (flags: ActivateFlags) => done(await runActivate(flags, output)));
  withCommon(program.command("deactivate"))
    .description("take the deployment away and put back what was there before")
    .option("--purge", "remove the proxy's logs as well")
    .addHelpText("after", DEACTIVATE_HELP)
    .action(async (flags: DeactivateFlags) => done(await runDeactivate(flags, output)));
}

const ACTIVATE_HELP = `
Everything is checked first. Then only what the change concerns is stopped, written and started, in the order web
application, file server, files, file server, web application, proxy; and the expected responses are probed. When
anything fails, the last good state comes back and the exit code is 1. When it was cut off (power, kill), the next
activation goes back to the last good state before it begins.

Examples:
  portico activate --incoming ${INCOMING_DIRECTORY}
  portico activate --dry-run --json
  portico activate --root ./out/host         lay files out below ./out/host; no service is touched`;

const DEACTIVATE_HELP = `
Edits of the application's settings are taken back where nobody changed the file since.

Examples:
  portico deactivate
  portico deactivate --purge`;

function withCommon(command: Command): Command {
  return command
    .option("--root <DIR>", "folder that stands for the host's /; then no service is touched", "/")
    .option("--json", "print the outcome as JSON, and what is being done to standard error")
    .option("--wait <SECONDS>", "how long to wait for another activation", seconds, 60);
}

function seconds(text: string): number {
  if (!/^\d{1,5}$/.test(text)) throw new InvalidArgumentError("Give a whole number of seconds.");
  return Number(text);
}

async function runActivate(flags: ActivateFlags, output: Output): Promise<number> {
  const report = reportTo(flags, output);
  const { signal, release } = interruption();
  try {
    const activated = await activate({
      root: resolve(flags.root ?? "/"),
      ...(flags.incoming === undefined ? {} : { incoming: resolve(flags.incoming) }),
      dryRun: flags.dryRun === true,
      lockSeconds: flags.wait,
      signal,
      report,
    });
    for (const warning of activated.plan.warnings) output.err(`warning: ${formatProblem(warning)}\n`);
    output.out(flags.json === true ? activatedJson(activated) : activatedText(activated, flags));
    return EXIT.ok;
  } catch (error) {
    return refused(error, flags, output);
  } finally {
    release();
  }
}

async function runDeactivate(flags: DeactivateFlags, output: Output): Promise<number> {
  // There is no half way to stop at: it goes on to the end.
  const { release } = interruption();
  try {
    const problems = await deactivate({
      root: resolve(flags.root ?? "/"),
      lockSeconds: flags.wait,
      report: reportTo(flags, output),
      purge: flags.purge === true,
    });
    if (problems !== undefined && problems.length > 0) return incomplete(problems, flags, output);
    const text = problems === undefined ? "nothing is deployed here" : "the deployment is gone";
    output.out(flags.json === true ? json({ ok: true, problems: [] }) : `${text}\n`);
    return EXIT.ok;
  } catch (error) {
    return refused(error, flags, output);
  } finally {
    release();
  }
}

function reportTo({ json: asJson }: CommonFlags, output: Output): (line: string) => void {
  return (line) => (asJson === true ? output.err : output.out).call(output, `${line}\n`);
}

/** A session that ends in the middle must not leave the host there; Ctrl-C and SIGTERM roll back. */
function interruption(): { signal: AbortSignal; release: () => void } {
  const controller = new AbortController();
  const interrupt = (name: NodeJS.Signals): void => controller.abort(name);
  const ignore = (): void => undefined;
  process.on("SIGINT", interrupt).on("SIGTERM", interrupt).on("SIGHUP", ignore);
  for (const stream of [process.stdout, process.stderr]) stream.on("error", ignore);
  return {
    signal: controller.signal,
    release: () => {
      process.off("SIGINT", interrupt).off("SIGTERM", interrupt).off("SIGHUP", ignore);
      for (const stream of [process.stdout, process.stderr]) stream.off("error", ignore);
    },
  };
}

function activatedText({ plan, responses }: Activated, { dryRun }: ActivateFlags): string {
  const lines = formatPlan(plan);
  const seen = responses.map((row) => `${formatChecked(row)}\n`).join("");
  if (lines.length === 0) return `${seen}nothing to do: the host is as deployed\n`;
  return dryRun === true ? `${lines.join("\n")}\n` : `${seen}activated\n`;
}

function activatedJson({ plan, responses }: Activated): string {
  const { files, settings, steps, warnings } = plan;
  return json({
    ok: true,
    steps,
    files: files.map(({ path, role, why }) => ({ path, role, why })),
    settings: settings.edits.map(({ path }) => path),
    responses,
    warnings,
    problems: [],
  });
}

function refused(error: unknown, flags: CommonFlags, output: Output): number {
  if (!(error instanceof ProblemError)) throw error;
  if (flags.json === true) {
    const rolledBack = error instanceof ActivationFailed;
    output.out(json({ ok: false, rolledBack, problems: error.problems }));
  } else if (error instanceof ActivationFailed) output.err(failedText(error));
  else output.err(`${formatAll(error.problems)}nothing was changed\n`);
  return EXIT.failed;
}

/** A deactivation does as much as it can, and stops at nothing. */
function incomplete(problems: readonly Problem[], flags: CommonFlags, output: Output): number {
  if (flags.json === true) output.out(json({ ok: false, rolledBack: false, problems }));
  else output.err(`${formatAll(problems)}not all of it could be taken away; the above is left\n`);
  return EXIT.failed;
}

/** Why it failed was told when it did; here is what came of the roll-back. */
function failedText({ reason, notRestored }: ActivationFailed): string {
  if (notRestored.length === 0) {
    return `${formatAll(reason)}not activated; the host is as it was before\n`;
  }
  return `${formatAll(reason)}not activated; and of the roll-back failed:\n${formatAll(notRestored)}`;
}

function formatAll(problems: readonly Problem[]): string {
  return problems.map((p) => `${formatProblem(p)}\n`).join("");
}
