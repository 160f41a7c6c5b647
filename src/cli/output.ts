import { printable } from "../model/text/printable.js";
import { formatProblem, type Problem, type ProxyConfig } from "../model/serving.js";

/** The streams that a command writes to; the process's own streams unless a test gives others. */
export interface CommandOutput {
  out(text: string): void;
  err(text: string): void;
}

/** A reader that closes the pipe early, such as `head`, needs no more output, nor does a closed terminal (EIO). */
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE" && error.code !== "EIO") throw error;
  });
}

export const STDIO: CommandOutput = {
  out: (text) => void process.stdout.write(coloured(text, process.stdout)),
  err: (text) => void process.stderr.write(coloured(text, process.stderr)),
};

/** Starts of lines that readers look for, with the number of their colour (ECMA-48, 8.3.117). */
const COLOURS: readonly (readonly [start: RegExp, colour: number])[] = [
  [/^(?:FAIL|\(FAIL\)|error:)/gm, 31],
  [/^(?:PASS|ok)(?= )/gm, 32],
  [/^(?:warning:|note:|\?(?= ))/gm, 33],
  [/^ +(?:fix|cause):/gm, 36],
  // Lines of logs, by status or level.
  [/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d (?:5\d\d|crit|error)(?= )/gm, 31],
  [/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d (?:4\d\d|warn)(?= )/gm, 33],
  [/^(?:\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d (?:[123]\d\d)(?= )/gm, 32],
];

/** The text in colours where a terminal shows it; Node heeds NO_COLOR and `TERM=dumb`. */
function coloured(text: string, stream: NodeJS.WriteStream): string {
  if (!stream.isTTY || !stream.hasColors()) return text;
  return COLOURS.reduce(
    (shown, [start, colour]) => shown.replace(start, (found) => `\u001b[${colour}m${found}\u001b[0m`),
    text,
  );
}

/** The same, with control characters escaped, so that no output acts on a terminal. */
export function escapingControls(output: CommandOutput): CommandOutput {
  return { out: (text) => output.out(printable(text)), err: (text) => output.err(printable(text)) };
}

/** Every exit code of the command. */
export const EXIT = { ok: 0, failed: 1, usage: 2, unknown: 3 } as const;

/** The output of a command that cannot continue, in the requested form. */
export const refusal = (file: string, problems: readonly Problem[], inJson: boolean | undefined): string =>
  inJson === true ? json({ file, ok: false, problems }) : problemsText(file, problems);

/** All problems, then how many there were. */
export function problemsText(file: string, problems: readonly Problem[]): string {
  const count = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  return `${problems.map(formatProblem).join("\n")}\n${file}: ${count}\n`;
}

/** `portico.json: ok (2 listeners, 3 virtual servers, 7 routes)` */
export function okText(file: string, config: ProxyConfig): string {
  const { listeners, virtualServers, routes } = summary(config);
  const parts = [
    plural(listeners, "listener"),
    plural(virtualServers, "virtual server"),
    plural(routes, "route"),
  ];
  return `${file}: ok (${parts.join(", ")})\n`;
}

export function summary(config: ProxyConfig): { listeners: number; virtualServers: number; routes: number } {
  return {
    listeners: config.listeners.length,
    virtualServers: config.virtualServers.length,
    routes: config.virtualServers.reduce((sum, server) => sum + server.routes.length, 0),
  };
}

/** A line for each row, with columns as wide as their cells. */
export function tableText(rows: readonly (readonly string[])[]): readonly string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) => `${row.map((cell, i) => cell.padEnd(widths[i]!)).join("  ")}`.trimEnd() + "\n");
}

export function json(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}
