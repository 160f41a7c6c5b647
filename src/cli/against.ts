import { parseConfigText } from "../model/config/parse.js";
import { type Problem, type ProxyConfig, type Result } from "../model/serving.js";
import { differences } from "../model/review/difference.js";
import { type ReviewFinding, type FoundWay, opens } from "../model/review/findings.js";
import { readParsed, STANDARD_INPUT } from "../runtime/load/files.js";
import { type DocumentSource, sourceOf } from "./document.js";
import { EXIT, json, type CommandOutput, problemsText } from "./output.js";
import { sarifOfFindings, sarifOfProblems } from "./sarif.js";

export interface AgainstOptions {
  /** The config that it is compared with. */
  readonly against: string;
  readonly json: boolean;
  readonly sarif: boolean;
}

/** `portico check --against OLD`: paths that the config opens and the old one does not, by the documents alone. */
export async function checkAgainst(
  source: DocumentSource,
  options: AgainstOptions,
  output: CommandOutput,
): Promise<number> {
  const { file } = source;
  const { file: against } = sourceOf(options.against, undefined);
  if (file === STANDARD_INPUT && against === STANDARD_INPUT) {
    output.err("error: standard input is read once: give one of the two configs as a file\n");
    return EXIT.usage;
  }
  const [old, now] = await Promise.all([readText(against), readText(file)]);
  // A separate exit code, because a CI gate has to distinguish a wrong argument from a change that opens something.
  if (!old.ok) return refused(against, old.problems, options, output, EXIT.usage);
  if (!now.ok) return refused(file, now.problems, options, output, EXIT.failed);
  const findings = differences(old.value.config, now.value.config);
  const opened = findings.filter(opens).length;
  const texts = { new: { file, text: now.value.text }, old: { file: against, text: old.value.text } };
  if (options.sarif) output.out(json(sarifOfFindings(findings, texts)));
  else if (options.json) output.out(json({ file, against, ok: opened === 0, opened, findings }));
  else output.out(findingsText(findings, file, against, opened));
  return opened === 0 ? EXIT.ok : EXIT.failed;
}

/** A config, and the text of its document. */
interface ReadConfig {
  readonly config: ProxyConfig;
  readonly text: string;
}

export const readText = (file: string): Promise<Result<ReadConfig>> =>
  readParsed(file, (text): Result<ReadConfig> => {
    const parsed = parseConfigText(text);
    return parsed.ok ? { ok: true, value: { config: parsed.value, text } } : parsed;
  });

export function refused(
  file: string,
  problems: readonly Problem[],
  options: Pick<AgainstOptions, "json" | "sarif">,
  output: CommandOutput,
  code: number,
): number {
  if (options.sarif) output.out(json(sarifOfProblems(problems, file)));
  else output.out(options.json ? json({ file, ok: false, problems }) : problemsText(file, problems));
  return code;
}

function findingsText(
  findings: readonly ReviewFinding[],
  file: string,
  against: string,
  opened: number,
): string {
  const differ = `${findings.length} difference${findings.length === 1 ? "" : "s"}`;
  const count =
    findings.length === 0
      ? "no difference for clients"
      : `${differ}, of which ${opened} ${opened === 1 ? "opens" : "open"} access or may open it`;
  return `${findings.map(findingText).join("")}${file} against ${against}: ${count}\n`;
}

function findingText({
  id,
  level,
  place,
  document,
  message,
  old,
  new: now,
  ways = [],
}: ReviewFinding): string {
  const where = document === "old" ? `${place} of the old config` : place;
  const more = ways.length > WAYS_SHOWN ? [`and ${ways.length - WAYS_SHOWN} more; --json lists all`] : [];
  const rows = [
    ...(old === undefined ? [] : [["old:", old]]),
    ...(now === undefined ? [] : [["new:", now]]),
    ...[...ways.slice(0, WAYS_SHOWN).map(wayText), ...more].map((text, i) => [i === 0 ? "for:" : "", text]),
  ];
  const lines = rows.map(([label, text]) => `    ${label!.padEnd(6)}${text}\n`);
  return `${level}: ${where}: ${message} [${id}]\n${lines.join("")}`;
}

const WAYS_SHOWN = 5;

const wayText = ({ scheme, at, names, paths }: FoundWay): string =>
  `${scheme} ${at}, ${names.join(", ")}: ${paths.join(" ")}`;
