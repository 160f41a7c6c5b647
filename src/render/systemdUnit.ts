import { type Problem, problem } from "../model/index.js";
import { nearest } from "../model/text/nearest.js";
import { accepting, type TextRule } from "../model/text/textRule.js";

/** A unit file: sections in order, directives in order. */
export type UnitDocument = { readonly [section in UnitSectionName]?: UnitSection };

/** Name of a section of a unit. */
export type UnitSectionName = (typeof SECTIONS)[number];

const SECTIONS = ["Unit", "Service", "Socket", "Timer", "Path", "Mount", "Install"] as const;

/** Directives of a section. A list repeats the directive for each value; an empty text resets the directive. */
export type UnitSection = { readonly [directive: string]: UnitValue | readonly UnitValue[] };

/** A literal value, which is escaped, or a command, variable or text with specifiers. */
export type UnitValue = string | number | boolean | UnitCommand | UnitSpecifiers;

/** A command line of an `Exec…=` directive, one argument each; quoted and escaped (systemd.service(5)). */
export interface UnitCommand {
  /** The program's absolute path, then its arguments. */
  readonly command: readonly (string | UnitVariable)[];
  /**
   * Whether to run the command as root and outside of the sandbox, independent of the unit's user and hardening
   * (`+`).
   */
  readonly privileged?: boolean;
}

/** An argument that systemd replaces: `{ variable: "MAINPID" }` is `$MAINPID`. */
export interface UnitVariable {
  /** Name of the variable, without `$`. */
  readonly variable: string;
}

/** A text with `%` specifiers, which systemd expands (systemd.unit(5)); the text is not escaped. */
export interface UnitSpecifiers {
  /** The text with its specifiers, such as `%i`. */
  readonly specifiers: string;
}

/** The unit file's text. */
export function renderUnit(document: UnitDocument): string {
  const sections = Object.entries(document).filter(([, section]) => section !== undefined);
  return sections.map(([name, section]) => `[${name}]\n${renderSection(section!)}`).join("\n");
}

function renderSection(section: UnitSection): string {
  return Object.entries(section)
    .flatMap(([directive, value]) => valuesOf(value).map((v) => `${directive}=${renderValue(v)}\n`))
    .join("");
}

/** Undefined values are left out, as everywhere else. */
const valuesOf = (value: UnitSection[string]): readonly UnitValue[] =>
  ((Array.isArray(value) ? value : [value]) as readonly UnitValue[]).filter((one) => one !== undefined);

function renderValue(value: UnitValue): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return escapeSpecifiers(value);
  return "command" in value ? renderCommand(value) : value.specifiers;
}

const escapeSpecifiers = (text: string): string => text.replaceAll("%", "%%");

/** A command line as systemd reads it back: quotes, `\` escapes, `$$` for a dollar, `%%` for a per cent sign. */
export function renderCommand({ command, privileged = false }: UnitCommand): string {
  const parts = command.map((part) => (typeof part === "string" ? quoteArgument(part) : `$${part.variable}`));
  return `${privileged ? "+" : ""}${parts.join(" ")}`;
}

function quoteArgument(argument: string): string {
  const escaped = escapeSpecifiers(argument)
    .replaceAll("\\", "\\\\")
    .replaceAll('"', '\\"')
    .replaceAll("$", () => "$$");
  // Quotes also keep a lone `;` from separating two commands.
  return /^[\w./:=@,+%$-]+$/.test(escaped) ? escaped : `"${escaped}"`;
}

/**
 * Problems of a unit: values that would end or continue a line, commands that cannot be started, and the FastCGI
 * variant of an application, which the proxy does not support (service 2.4). Paths are those of the document.
 */
export function unitProblems(document: UnitDocument): Problem[] {
  const strange = shapeProblems(document);
  if (strange.length > 0) return strange;
  const service = document.Service;
  const missing =
    service !== undefined && service["ExecStart"] === undefined && service["Type"] !== "oneshot"
      ? [problem("unit.missing-command", "Service.ExecStart", "is missing", { allowed: COMMAND })]
      : [];
  const values = Object.entries(document).flatMap(([name, section]) =>
    Object.entries(section ?? {}).flatMap(([directive, value]) => {
      const path = `${name}.${directive}`;
      return valuesOf(value).flatMap((v, i) =>
        valueProblems(directive, v, Array.isArray(value) ? `${path}[${i}]` : path),
      );
    }),
  );
  return [...missing, ...values];
}

/** Mistakes that no compiler has seen: a unit as a text, sections and values of the wrong type. */
function shapeProblems(document: unknown): Problem[] {
  const sections = "an object of sections, each an object of directives";
  if (!isRecord(document)) return [shapeProblem("", "is not a unit", document, sections)];
  return Object.entries(document).flatMap(([name, section]) => {
    if (!(SECTIONS as readonly string[]).includes(name)) {
      const near = nearest(name, SECTIONS);
      const fix = near === undefined ? {} : { fix: `Did you mean \`${near}\`?` };
      return [problem("unit.bad-value", name, "is not a section", { allowed: SECTIONS.join(", "), ...fix })];
    }
    if (section === undefined) return [];
    if (!isRecord(section))
      return [shapeProblem(name, "is not a section", section, "an object of directives")];
    return Object.entries(section).flatMap(([directive, value]) =>
      valuesOf(value as UnitValue)
        .filter((one) => !isUnitValue(one))
        .map((one) =>
          shapeProblem(`${name}.${directive}`, "is not a value for a directive", one, UNIT_VALUE),
        ),
    );
  });
}

const UNIT_VALUE =
  "a string, a number, true, false, `{ command: […] }` with strings, `{ specifiers }`, or a list of them";

const shapeProblem = (path: string, message: string, received: unknown, allowed: string): Problem =>
  problem("unit.bad-value", path, message, { received, allowed, fix: `Use ${allowed}.` });

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function isUnitValue(value: unknown): boolean {
  if (!isRecord(value)) return value === undefined || ["string", "number", "boolean"].includes(typeof value);
  const { command, specifiers } = value;
  if (command === undefined) return typeof specifiers === "string";
  const isWord = (word: unknown): boolean =>
    typeof word === "string" || (isRecord(word) && typeof word["variable"] === "string");
  return Array.isArray(command) && command.every(isWord);
}

const COMMAND = "a program by its absolute path, then its arguments";

function valueProblems(directive: string, value: UnitValue, path: string): Problem[] {
  if (!/^[A-Za-z][A-Za-z0-9-]*$/.test(directive)) {
    const allowed = "a name of letters, digits and `-` that begins with a letter";
    const more = { received: directive, allowed };
    return [problem("unit.bad-value", path, "is not the name of a directive", more)];
  }
  if (typeof value === "object" && "command" in value)
    return commandProblems(value.command, `${path}.command`);
  const text = String(typeof value === "object" ? value.specifiers : value);
  // systemd trims a value and takes a last backslash for a continued line.
  if (CONTROL.test(text) || text.endsWith("\\") || text !== text.trim()) {
    const allowed =
      "one line, without leading or trailing white space and without a backslash as the last character";
    return [
      problem("unit.bad-value", path, "cannot be written into a unit file", { received: text, allowed }),
    ];
  }
  return directive.startsWith("Exec") ? startVariantProblems(text.split(/\s+/), path) : [];
}

/** Problems of a command line, `unit.fastcgi-start` among them. */
export function commandProblems(command: UnitCommand["command"], path: string): Problem[] {
  const [program] = command;
  if (program === undefined)
    return [problem("unit.missing-command", path, "names no program", { allowed: COMMAND })];
  // The program's path is expanded by other rules than its arguments, so it must need no escaping at all.
  if (typeof program !== "string" || !isProgramPath(program)) {
    const allowed = "an absolute path of letters, digits and ./_-+@:,=";
    return [
      problem("unit.bad-value", `${path}[0]`, "is not the path of a program", {
        received: program,
        allowed,
        fix: "Use the absolute path of the program, as `command -v` prints it.",
      }),
    ];
  }
  const bad = command.flatMap((part, i) =>
    CONTROL.test(typeof part === "string" ? part : part.variable)
      ? [
          problem("unit.bad-value", `${path}[${i}]`, "contains control characters", {
            received: part,
            allowed: "printable text",
          }),
        ]
      : [],
  );
  return [...bad, ...startVariantProblems(command, path)];
}

/** Whether a path can begin a command line as it is: it is expanded by other rules than arguments. */
export const PROGRAM_PATH: TextRule = { pattern: "^/[0-9A-Za-z_./+@:,=-]*$", never: "/$" };
export const isProgramPath = accepting(PROGRAM_PATH);

const CONTROL = /[\u0000-\u001f\u007f]/;
/**
 * The FastCGI variant among the words of a command line, whatever the case, and where they are quoted for a shell too
 * (service 2.4).
 */
export const FASTCGI_START = String.raw`(^|[^a-z])start[-_ ]?fastcgi|(^|[\s"';&|=])(run)?f(ast)?cgi($|[\s"';&|])`;
const FASTCGI = new RegExp(FASTCGI_START, "i");

/** `unit.fastcgi-start`, if the parts of a command line or an environment select that variant. */
export function startVariantProblems(parts: readonly (string | UnitVariable)[], path: string): Problem[] {
  const bad = parts.find((part) => typeof part === "string" && FASTCGI.test(part));
  return bad === undefined ? [] : [fastcgiStart(path, bad)];
}

export function fastcgiStart(path: string, received?: unknown): Problem {
  const allowed = "a variant that speaks HTTP, as the proxy does: the argument `start`";
  const message = "starts an application in its FastCGI variant";
  return problem("unit.fastcgi-start", path, message, { received, allowed });
}
