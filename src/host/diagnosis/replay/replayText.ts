import type { ChangeGroup, Replay } from "./replay.js";
import { CHANGES, type Summary } from "./replayChanges.js";
import type { FileCount } from "./replayFile.js";
import { formatProblem, type Problem } from "../../../model/index.js";
import { printableValue } from "../../../model/text/printable.js";

export interface Replayed {
  /** File of the config to compare with; undefined for the log itself. */
  readonly before: string | undefined;
  readonly after: string;
  readonly files: readonly FileCount[];
  readonly run: Replay;
  readonly problems: readonly Problem[];
}

export function replayText({ before, after, files, run, problems }: Replayed): string {
  const { requests, changed, groups } = run;
  const of = before === undefined ? "what the log says" : before;
  const percent = requests === 0 ? "" : ` (${share(changed, requests)})`;
  return [
    ...problems.map((one) => `${formatProblem(one)}\n`),
    ...groups.map((group) => groupText(group, before === undefined)),
    ...files.map(fileText),
    ...(run.unknownBodies === 0 ? [] : [bodiesText(run.unknownBodies)]),
    ...totals(groups),
    `${printableValue(after)} against ${printableValue(of)}: ${counted(requests, "request")}, ` +
      (changed === 0 ? "none changes\n" : `${changed} ${changed === 1 ? "changes" : "change"}${percent}\n`),
  ].join("");
}

function groupText({ count, changes, before, after, examples }: ChangeGroup, fromLog: boolean): string {
  const shown = examples.map(({ request, line, ...to }) => {
    const places = [to.before, to.after].filter((place) => place !== undefined);
    const leads = new Set(places).size === 0 ? "" : `\n      ${[...new Set(places)].join(" -> ")}`;
    return `    ${request}  (${line})${leads}\n`;
  });
  const was = fromLog ? `logged: ${summaryText(before)}` : summaryText(before);
  return `${counted(count, "request")}: ${changes.join(", ")}\n  ${was}\n  -> ${summaryText(after)}\n${shown.join("")}\n`;
}

function summaryText({ virtualServer, route, action, upstream, servers, status }: Summary): string {
  const place =
    virtualServer === undefined
      ? []
      : [`${virtualServer}${route === undefined ? "" : `/${route ?? "(no route)"}`}`];
  const what = {
    none: "no listener",
    proxy: `proxied to ${upstream} (${servers})`,
    staticFile: "a file",
    redirect: `redirect, ${status}`,
    respond: `fixed response, ${status}`,
    status: "the status",
    error: String(status),
  };
  return printableValue([...place, action === undefined ? String(status) : what[action]].join(": "));
}

function fileText({ file, lines, noRequest, cut, noLog, firstNoLog }: FileCount): string {
  const left = [
    ...(noRequest === 0 ? [] : [`${noRequest} with an unreadable request`]),
    ...(cut === 0 ? [] : [`${cut} with a target that was cut`]),
    ...(noLog === 0 ? [] : [`${noLog} that are not access log lines, the first is line ${firstNoLog}`]),
  ];
  const name = file === "-" ? "standard input" : printableValue(file);
  return left.length === 0 ? "" : `${name}: ${counted(lines, "line")}: ${left.join("; ")}\n`;
}

const bodiesText = (count: number): string =>
  `note: ${counted(count, "request")} may newly get 413, or no longer get it: the limit changes, and the log has no body lengths\n`;

/** The number of requests with each kind of change. */
function totals(groups: readonly ChangeGroup[]): readonly string[] {
  const parts = CHANGES.flatMap((change) => {
    const of = groups.filter(({ changes }) => changes.includes(change));
    return of.length === 0 ? [] : [`${change} ${of.reduce((sum, { count }) => sum + count, 0)}`];
  });
  return parts.length === 0 ? [] : [`changes: ${parts.join(", ")}\n`];
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Never 0 % where something changes. */
function share(part: number, all: number): string {
  const percent = (100 * part) / all;
  return percent > 0 && percent < 0.01 ? "less than 0.01 %" : `${percent.toFixed(2)} %`;
}
