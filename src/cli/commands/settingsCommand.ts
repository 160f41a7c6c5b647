import path from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { editByHand, planByHand, type PlannedEdits } from "../../host/activation/index.js";
import {
  DEPLOYMENT_FILE,
  entriesOfSite,
  formatProblem,
  OWN_SITE,
  parseDeploymentText,
  problem,
  type Result,
  unknownSite,
} from "../../model/index.js";
import { printableValue } from "../../model/text/printable.js";
import { readParsed } from "../../runtime/load/files.js";
import { problemCount } from "../../runtime/supervisor/report/masterReport.js";
import type {
  ItemFinding,
  PlannedFile,
  SettingsPlan,
  SettingsSource,
} from "../../host/applicationSettings/index.js";
import { EXIT, json, type CommandOutput } from "../output.js";

interface SettingsFlags {
  root?: string;
  deployment?: string;
  file?: ReadonlyMap<string, string>;
  json?: boolean;
  dryRun?: boolean;
  site?: string;
}

/** `portico settings apply` and `portico settings show`. */
export function addSettings(program: Command, output: CommandOutput, done: (code: number) => void): void {
  const group = program.command("settings").description("the application's own settings on this host");
  withFiles(group.command("apply"))
    .description("write the deployment's values into the application's files")
    .option("--dry-run", "show what would change as a unified diff, and change nothing")
    .addHelpText("after", APPLY_HELP)
    .action(async (flags: SettingsFlags) => done(await applySettings(flags, output)));
  withFiles(group.command("show"))
    .description("compare the application's files with the deployment's values")
    .addHelpText("after", SHOW_HELP)
    .action(async (flags: SettingsFlags) => done(await showSettings(flags, output)));
}

function withFiles(command: Command): Command {
  return command
    .option(
      "--deployment <FILE>",
      `the deployment (default: ${DEPLOYMENT_FILE}, below --root if that is given)`,
    )
    .option(
      "--file <NAME=FILE>",
      "another path for a settings file of the deployment; may be given several times",
      namedFile,
    )
    .option("--site <NAME>", "only the settings files of this site")
    .option("--root <DIR>", "directory to use as the host's /, for the deployment and the settings files")
    .option("--json", "print the outcome as JSON");
}

function namedFile(text: string, all: ReadonlyMap<string, string> = new Map()): ReadonlyMap<string, string> {
  const [, name, file] = /^([^=]+)=(.+)$/s.exec(text) ?? [];
  if (name === undefined)
    throw new InvalidArgumentError("give NAME=FILE, with the name of a settings file in the deployment");
  return new Map([...all, [name, file!]]);
}

const APPLY_HELP = `
The command changes an existing item in its place. It adds a new item to the item's section, and in a file of
environment variables at the end. In a Python module it writes one block between SECRET_KEY and DATABASES, which has
priority over everything above it. All other bytes of the file stay. The command writes either all files or none: it
refuses an item that it cannot edit safely, and names the line. It keeps no copy of a file, because the file may contain
a secret key; the deployment records the previous value of each item, and a deactivation restores it.

The command does not print lines that may contain a secret. The application's daemons read their settings when they
start: restart them afterwards.

Examples:
  portico settings apply --dry-run
  portico settings apply
  portico settings apply --file main=/opt/app/conf/settings.py`;

const SHOW_HELP = `
Prints one line for each item: its state, its value, and its place. Values that users set in the web interface are in
the application's database and take priority: \`portico check --live\` looks for them.

Examples:
  portico settings show
  portico settings show --site vault --json`;

async function applySettings(flags: SettingsFlags, output: CommandOutput): Promise<number> {
  const planned = await planOf(flags);
  const { plan } = planned;
  if (plan.problems.length > 0) return refuse(plan, flags, output);
  const changed = plan.files.filter((file) => file.changed);
  const applied = flags.dryRun === true ? { ok: true as const } : await editByHand(rootOf(flags), planned);
  if (!applied.ok) return refuse({ files: plan.files, problems: applied.problems }, flags, output);
  if (flags.json === true) {
    const files = plan.files.map((file) => ({ ...described(file), diff: file.diff }));
    output.out(json({ ok: true, dryRun: flags.dryRun === true, files, problems: [] }));
    return EXIT.ok;
  }
  output.err(plan.files.flatMap((file) => file.notes.map((note) => `note: ${note}\n`)).join(""));
  if (changed.length === 0) output.out("nothing to change\n");
  for (const file of changed) {
    output.out(flags.dryRun === true ? file.diff : appliedText(file));
  }
  return EXIT.ok;
}

async function showSettings(flags: SettingsFlags, output: CommandOutput): Promise<number> {
  const { plan } = await planOf(flags);
  const same = plan.problems.length === 0 && plan.files.every((file) => !file.changed);
  if (flags.json === true) {
    output.out(json({ ok: same, files: plan.files.map(described), problems: plan.problems }));
  } else {
    for (const file of plan.files) output.out(file.findings.map((f) => findingText(file, f)).join(""));
    output.err(plan.problems.map((p) => `${formatProblem(p)}\n`).join(""));
  }
  return same ? EXIT.ok : EXIT.failed;
}

async function planOf(flags: SettingsFlags): Promise<PlannedEdits> {
  const source = await sourceOf(flags);
  if (!source.ok) return { edits: [], plan: { files: [], problems: source.problems }, unreached: [] };
  return planByHand(rootOf(flags), source.value);
}

const rootOf = ({ root = "/" }: SettingsFlags): string => path.resolve(root);

/** The wanted settings of the deployment; given files are used as they are. */
async function sourceOf(flags: SettingsFlags): Promise<Result<SettingsSource>> {
  const root = rootOf(flags);
  const file = flags.deployment ?? path.join(root, DEPLOYMENT_FILE);
  const deployment = await readParsed(file, parseDeploymentText);
  if (!deployment.ok) return deployment;
  const { settings } = deployment.value;
  if (settings === undefined) {
    return { ok: false, problems: [problem("settings.not-deployed", file, "has no application settings")] };
  }
  const unknown = unknownSite(
    flags.site,
    settings.files.map(({ site = OWN_SITE }) => site),
  );
  if (unknown !== undefined) return { ok: false, problems: [unknown] };
  const wanted = entriesOfSite(settings.files, flags.site);
  const given = flags.file ?? new Map<string, string>();
  const names = wanted.map(({ name }) => name);
  const others = [...given.keys()].filter((name) => !names.includes(name));
  if (others.length > 0) {
    const allowed = names.join(", ");
    const message = "is not a settings file of the deployment";
    const problems = others.map((received) =>
      problem("config.unknown-reference", "--file", message, { received, allowed }),
    );
    return { ok: false, problems };
  }
  const files = wanted.map((one) => {
    const named = given.get(one.name);
    return named === undefined ? one : { ...one, path: path.relative(root, path.resolve(named)) };
  });
  return { ok: true, value: { files } };
}

function refuse(plan: SettingsPlan, flags: SettingsFlags, output: CommandOutput): number {
  const { problems } = plan;
  if (flags.json === true) output.out(json({ ok: false, files: plan.files.map(described), problems }));
  else
    output.out(`${problems.map(formatProblem).join("\n")}\n${problemCount(problems)}; nothing was changed\n`);
  return EXIT.failed;
}

function described({
  source: { name, site, kind },
  path: file,
  findings,
  notes,
  changed,
}: PlannedFile): object {
  return { name, site, kind, path: file, changed, items: findings, notes };
}

function appliedText(file: PlannedFile): string {
  const items = file.findings.filter((f) => f.state !== "same").map((f) => `  ${changeText(f)}\n`);
  return `${file.path}: changed\n${items.join("")}`;
}

function changeText({ item, wanted, found, state }: ItemFinding): string {
  if (state === "missing") return `${item}: ${wanted} (new)`;
  return `${item}: ${wanted} (was ${found === undefined ? "an expression" : printableValue(found)})`;
}

/** `same       MEDIA_URL  /syncmedia/  (/opt/sync/conf/settings.py:12)` */
function findingText({ path: file }: PlannedFile, finding: ItemFinding): string {
  const { item, wanted, found, line, state } = finding;
  const place = line === undefined ? file : `${file}:${line}`;
  const shown = found === undefined ? undefined : printableValue(found);
  const value = state === "same" ? (shown ?? wanted) : `${shown ?? NOTHING_FOUND[state]}, wanted ${wanted}`;
  return `${state.padEnd(9)}  ${item.padEnd(23)}  ${value}  (${place})\n`;
}

const NOTHING_FOUND = { missing: "not set", different: "an expression", refused: "cannot be determined" };
