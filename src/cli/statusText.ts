import type { Transfer } from "../runtime/dispatch/transfers.js";
import type { ListedTransfer, Overview, OverviewServer } from "../runtime/status/overview.js";
import { stateWords, faultsOf, wellText } from "../model/faults.js";
import { bytesText, countText, daysText, durationText, plural } from "../model/numberTexts.js";
import { tableText } from "./output.js";

/**
 * An overview as text, the most important first.
 *
 * @param columns width of the terminal; lines that are longer are cut
 */
export function statusText(overview: Overview, columns = Infinity): string {
  const { version, at, since, generation, workers, listeners, events } = overview;
  const lines = [
    `portico ${version}, up for ${durationText(at - since)}, generation ${generation}, ${plural(workers.running, "worker")}\n`,
    `${listeners.join("  ")}\n`,
    "\n",
    ...troubles(overview),
    ...traffic(overview),
    ...transfers(overview),
    ...servers(overview),
    ...certificates(overview),
    ...(events.length === 0
      ? []
      : ["\n", "LAST\n", ...events.slice(0, EVENTS_MAX).flatMap((one) => event(one, at))]),
  ];
  return lines.map((line) => cut(line, columns)).join("");
}

const EVENTS_MAX = 8;

function troubles(overview: Overview): string[] {
  const all = faultsOf(overview);
  if (all.length === 0) return [`ok  ${wellText(overview)}\n`, "\n"];
  return [
    ...all.flatMap(({ level, text, fix }) => [
      `${level === "error" ? "error" : "warning"}: ${text}\n`,
      ...(fix === undefined ? [] : [`  fix: ${fix}\n`]),
    ]),
    "\n",
  ];
}

function traffic({ traffic: { requests, bytesIn, bytesOut, connections, history } }: Overview): string[] {
  const span = durationText(history.periods * history.everyMs);
  const rows = [
    ["", "NOW", `LAST ${span.toUpperCase()}`, "PEAK"],
    [
      "requests",
      `${countText(requests)}/s`,
      bars(history.requests, history.periods),
      mostOf(history.requests, countText),
    ],
    [
      "bytes in",
      `${bytesText(bytesIn)}/s`,
      bars(history.bytesIn, history.periods),
      mostOf(history.bytesIn, bytesText),
    ],
    [
      "bytes out",
      `${bytesText(bytesOut)}/s`,
      bars(history.bytesOut, history.periods),
      mostOf(history.bytesOut, bytesText),
    ],
  ];
  return [...tableText(rows), `${plural(connections, "connection")} open\n`];
}

const mostOf = (values: readonly number[], text: (value: number) => string): string =>
  values.length === 0 ? "" : `${text(Math.max(...values))}/s`;

const BARS = "▁▂▃▄▅▆▇█";
/** A character stands for several periods: the most of them. */
const BAR_CHARACTERS = 45;

function bars(values: readonly number[], periods: number): string {
  const each = Math.ceil(periods / BAR_CHARACTERS);
  const most = Math.max(...values, 0);
  const missing = periods - values.length;
  return Array.from({ length: Math.ceil(periods / each) }, (_, i) => {
    const part = values.slice(Math.max(0, i * each - missing), Math.max(0, (i + 1) * each - missing));
    if (part.length === 0) return "·";
    return most === 0 ? BARS[0] : BARS[Math.min(7, Math.floor((Math.max(...part) / most) * 7.999))];
  }).join("");
}

const ARROWS = { upload: "↑", download: "↓", tunnel: "↕" } as const;

function transfers({ transfers: all, moreTransfers }: Overview): string[] {
  if (all.length === 0) return ["\n", "nothing is being transferred\n"];
  const rows = all.map((one) => [
    `${ARROWS[one.kind]} ${one.method} ${one.path}${one.file ?? ""}`,
    bar(one),
    progressText(one),
    `${bytesText(one.bytesPerSecond)}/s`,
    durationText(one.ageMs),
    one.client,
    one.program,
    one.site ?? "",
  ]);
  const more =
    moreTransfers === 0 ? [] : [`and ${plural(moreTransfers, "other request")}, which moved fewer bytes\n`];
  return [
    "\n",
    ...siteTable([["IN PROGRESS", "", "", "RATE", "AGE", "CLIENT", "PROGRAM"], ...rows]),
    ...more,
  ];
}

const BAR_LENGTH = 16;

function bar({ kind, bytesIn, bytesOut, bytesTotal }: ListedTransfer): string {
  if (bytesTotal === undefined) return "";
  const share = Math.min(1, (kind === "upload" ? bytesIn : bytesOut) / bytesTotal);
  const full = Math.floor(share * BAR_LENGTH);
  return `${"█".repeat(full)}${"░".repeat(BAR_LENGTH - full)} ${String(Math.floor(share * 100)).padStart(3)} %`;
}

/** A transfer in a sentence; the same data of a client as above. */
export const transferText = (one: Transfer): string =>
  `${one.method} ${one.path}${one.file ?? ""} of ${one.client}${one.program === "" ? "" : ` (${one.program})`}: ` +
  `${progressText(one)} in ${durationText(one.ageMs)}`;

function progressText({ kind, bytesIn, bytesOut, bytesTotal }: Transfer): string {
  if (kind === "tunnel") return `${bytesText(bytesIn)} in, ${bytesText(bytesOut)} out`;
  const done = bytesText(kind === "upload" ? bytesIn : bytesOut);
  return bytesTotal === undefined ? done : `${done} of ${bytesText(bytesTotal)}`;
}

function servers({ upstreams }: Overview): string[] {
  if (upstreams.length === 0) return [];
  const rows = upstreams.flatMap(({ name, sites, servers: all }) =>
    all.map((one) => [
      name,
      one.url,
      stateOf(one),
      one.inProgress === undefined ? "" : String(one.inProgress),
      one.why ?? "",
      sites?.join(", ") ?? "",
    ]),
  );
  const why = rows.some((row) => row.at(-2) !== "") ? "WHY" : "";
  return ["\n", ...siteTable([["UPSTREAM", "SERVER", "STATE", "IN PROGRESS", why], ...rows])];
}

function stateOf(server: OverviewServer): string {
  const { backup, failures } = server;
  const failed = failures === 0 ? "" : `, ${countText(failures)} failed in the last minute`;
  return `${stateWords(server)}${backup ? ", backup" : ""}${failed}`;
}

function certificates({ certificates: all }: Overview): string[] {
  if (all.length === 0) return [];
  const rows = all.map(({ names, sites, issuer, source, daysLeft, notAfter }) => [
    names.join(", "),
    `${daysLeft < 0 ? "ended" : "ends"} ${daysText(daysLeft)}`,
    new Date(notAfter).toISOString().slice(0, 10),
    source === "temporary" ? `${issuer} (temporary)` : issuer,
    sites?.join(", ") ?? "",
  ]);
  return ["\n", ...siteTable([["CERTIFICATE", "ENDS", "", "ISSUER"], ...rows])];
}

/** A table whose rows end in their site, which is its first column if any row has one. */
function siteTable([head, ...rows]: readonly [
  readonly string[],
  ...(readonly string[][]),
]): readonly string[] {
  const all = [[...head, "SITE"], ...rows].map((row) => [row.at(-1)!, ...row.slice(0, -1)]);
  return tableText(rows.some((row) => row.at(-1) !== "") ? all : all.map(([, ...row]) => row));
}

function event({ at, level, message, problems }: Overview["events"][number], now: number): string[] {
  const mark = { info: "", warn: "warning: ", error: "error: ", crit: "error: " }[level];
  return [
    `${mark}${message} (${durationText(now - at)} ago)\n`,
    ...problems.flatMap(({ path, message: what, fix }) => [`  ${path}: ${what}\n`, `  fix: ${fix}\n`]),
  ];
}

/** Cuts a line to the width of the terminal, so that it takes no second line. */
function cut(line: string, columns: number): string {
  const characters = [...line.trimEnd()];
  return characters.length > columns ? `${characters.slice(0, columns - 1).join("")}…\n` : line;
}
