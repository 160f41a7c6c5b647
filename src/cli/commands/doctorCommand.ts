import { existsSync } from "node:fs";
import { isIP } from "node:net";
import { join, resolve } from "node:path";
import { type Command, InvalidArgumentError } from "commander";
import { runningPrograms, seeDrift } from "../../host/activation/index.js";
import { type DiagnosisOptions, gather } from "../../host/diagnosis/gather.js";
import { diagnose, unreadable } from "../../host/diagnosis/rows/rows.js";
import type { DiagnosisRow } from "../../host/diagnosis/verdict.js";
import { DEPLOYMENT_FILE, isLoopback } from "../../model/index.js";
import { printableValue } from "../../model/text/printable.js";
import { CONTROL_SOCKET } from "../../render/hostPaths.js";
import { sourceOf } from "../document.js";
import { wholeNumber } from "../options.js";
import { EXIT, json, type CommandOutput } from "../output.js";
import { refuseSite, rowsOfSite, textBySite } from "../sites.js";
import { PASSWORD_VARIABLE } from "./storedSettingsOptions.js";

interface DoctorFlags {
  deployment: string;
  config?: string;
  host?: string;
  connect?: string;
  publicAddress?: string[];
  imagePath?: string;
  insecure: boolean;
  timeout: number;
  databaseOptionFile?: string;
  json?: boolean;
  elsewhere?: boolean;
  root?: string;
  site?: string;
}

export function addDoctor(program: Command, output: CommandOutput, done: (code: number) => void): void {
  program
    .command("doctor")
    .description("find the faults of the front end, and print a fix for each")
    .option("--deployment <FILE>", "the deployment", DEPLOYMENT_FILE)
    .option("--config <FILE>", "the config (default: the one that the deployment names)")
    .option("--root <DIR>", "check only the files of a host below this directory, and no running service")
    .option("--elsewhere", "check only over the network, because this machine is not the host")
    .option("--site <NAME>", "only rows of the host and of this site")
    .option("--host <NAME>", "name or address that clients use (default: the first one of the deployment)")
    .option("--connect <ADDRESS>", "address to connect to (default: loopback; with --elsewhere, the host)")
    .option(
      "--public-address <ADDRESS>",
      "public IP address of the host; may be given several times",
      publicAddress,
    )
    .option(
      "--image-path <PATH>",
      "path of the image to request, if an expected response is an image (default: an image in its directory)",
    )
    .option("--no-insecure", "verify the certificate (a self-signed one fails)")
    .option("--timeout <SECONDS>", "time limit for each request", wholeNumber(1, 3_600), 10)
    .option(
      "--database-option-file <FILE>",
      `option file of the mariadb client with the password (default: ${PASSWORD_VARIABLE})`,
    )
    .option("--json", "print the rows as JSON")
    .addHelpText("after", HELP)
    .action(async (flags: DoctorFlags) => done(await doctor(flags, output)));
}

const HELP = `
Checks every expected response, looks for every known cause of trouble, and compares files, units, packet filter, logs
and processes with the deployment. Changes nothing; on the host, it asks from a network beside it, which exists for a
moment. A failed row names the cause, the evidence and the fix.
A warning names a task, and is not a failure. A failed row that is only a symptom is marked (FAIL), and names the
row with the cause. A row with ? could not be checked, and one with - was not asked here.
Run the command as root on the host: other users may not be able to read the private key, or to see which unit
a process belongs to.

Examples:
  portico doctor
  portico doctor --site vault
  portico doctor --public-address 198.51.100.7      can the LAN reach the host by its public address?
  portico doctor --root ./out/host                  are config and settings below ./out/host right?
  portico doctor --elsewhere --config portico.json --deployment deployment.json --host files.example.org

Exit codes: 0 nothing failed, 1 a row failed or nothing could be read, 2 wrong usage,
3 nothing failed, but a row has ?.`;

async function doctor(flags: DoctorFlags, output: CommandOutput): Promise<number> {
  const databasePassword = process.env[PASSWORD_VARIABLE];
  const root = flags.root === undefined ? undefined : resolve(flags.root);
  if (root !== undefined && flags.elsewhere === true) {
    output.err(
      "error: --root checks only files, and --elsewhere checks only the network: give one of them\n",
    );
    return EXIT.usage;
  }
  const isDefault = flags.deployment === DEPLOYMENT_FILE;
  const options: DiagnosisOptions = {
    deploymentFile: isDefault && root !== undefined ? join(root, DEPLOYMENT_FILE) : flags.deployment,
    place: root !== undefined ? "folder" : flags.elsewhere === true ? "elsewhere" : "host",
    root,
    publicAddresses: flags.publicAddress ?? [],
    insecure: flags.insecure,
    timeoutMs: flags.timeout * 1000,
    control: CONTROL_SOCKET,
    site: flags.site,
    // Another program that has this code cannot be started in its place.
    ...(runningPrograms()[1].endsWith(".mjs") ? { programs: runningPrograms() } : {}),
    configFile: flags.config === undefined ? undefined : sourceOf(flags.config, undefined).file,
    host: flags.host,
    connect: flags.connect,
    databasePassword,
    databaseOptionFile: flags.databaseOptionFile,
    imagePath: flags.imagePath,
  };
  if (!isDefault && !existsSync(flags.deployment)) {
    output.err(`error: --deployment: there is no ${flags.deployment}\n`);
    return EXIT.usage;
  }
  const ownDeployment = options.place === "host" && isDefault;
  const activated = ownDeployment ? await seeDrift() : undefined;
  const gathered = await gather({ ...options, activated });
  const [first] = gathered.ok ? [] : gathered.problems;
  if (first?.code === "control.unknown-site") return refuseSite(first, flags.json, output);
  const rows = gathered.ok
    ? rowsOfSite(diagnose(gathered.value), gathered.value.config, flags.site)
    : unreadable(gathered.problems, activated?.drift);
  const failed = rows.filter(({ status }) => status === "failed").length;
  const open = rows.filter(({ status, notAsked }) => status === "unknown" && notAsked !== true).length;
  output.out(
    flags.json === true
      ? json({ ok: failed + open === 0, rows })
      : `${textBySite(rows, formatRow)}${summary(rows)}\n`,
  );
  if (failed > 0) return EXIT.failed;
  return open > 0 ? EXIT.unknown : EXIT.ok;
}

const LABELS: Readonly<Record<DiagnosisRow["status"], string>> = {
  ok: "ok     ",
  warning: "WARN   ",
  failed: "FAIL   ",
  explained: "(FAIL) ",
  unknown: "?      ",
};

/**
 * A row without a problem is a single line. Any other row has its id, by which other rows and docs/breakages.md name it.
 */
function formatRow(row: DiagnosisRow): string {
  // The title of an expected response is its id.
  const id = row.status === "ok" || row.id.startsWith("response: ") ? "" : ` [${row.id}]`;
  const label = row.notAsked === true ? "-      " : LABELS[row.status];
  const lines = [`${label}${row.title}${id}`];
  // Some of it is the name of a file or a process of another user, which must not look like a row.
  const more = (label: string, text: string): number =>
    lines.push(`         ${label.padEnd(9)}${printableValue(text)}`);
  if (row.status === "ok") return `${lines[0]}\n`;
  if (row.cause !== undefined) more("cause:", row.cause);
  if (row.because !== undefined) more("cause:", `see the row \`${row.because}\``);
  for (const seen of row.evidence) more(row.status === "unknown" ? "" : "seen:", seen);
  if (row.fix !== undefined) more("fix:", row.fix);
  return `${lines.map((line) => line.trimEnd()).join("\n")}\n`;
}

function summary(rows: readonly DiagnosisRow[]): string {
  const count = (status: DiagnosisRow["status"]): number =>
    rows.filter((row) => row.status === status).length;
  const symptoms = count("explained") === 0 ? "" : `, ${count("explained")} with the cause in another row`;
  const warnings = count("warning") === 0 ? "" : `, ${count("warning")} with a warning`;
  const skipped = rows.filter(({ notAsked }) => notAsked === true).length;
  const open = count("unknown") - skipped;
  const unknown = open === 0 ? "" : `, ${open} not known`;
  const unasked = skipped === 0 ? "" : `, ${skipped} not asked`;
  return `${rows.length} rows: ${count("ok")} ok, ${count("failed")} failed${symptoms}${warnings}${unknown}${unasked}`;
}

function publicAddress(value: string, all: string[] = []): string[] {
  if (isIP(value) === 0) throw new InvalidArgumentError("give an IP address");
  if (isLoopback(value))
    throw new InvalidArgumentError(
      "only the host itself can reach a loopback address: give the public address",
    );
  return [...all, value];
}
