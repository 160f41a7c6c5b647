import { Construct } from "constructs";
import { formatProblem, type Problem, problem } from "../../model/index.js";
import { formatPath } from "../../model/config/parse.js";
import type { TextRule } from "../../model/text/textRule.js";
import {
  DEFAULT_HOST_PATHS,
  FASTCGI_START,
  fastcgiStart,
  PROGRAM_PATH,
  renderUnit,
  type UnitDocument,
  unitProblems,
} from "../../render/index.js";
import type { IHost } from "./host.js";
import { HostFile } from "./hostFile.js";
import { HOST } from "../props/instances.js";
import { late, type LateValue, lateText } from "../props/lateChecks.js";
import { any, type PropTable, refuseOptions, required, text } from "../props/propTable.js";
import {
  checkAroundTokens,
  renderAroundTokens,
  tokenTexts,
  unknownLeaves,
  type TokenLeaf,
  type UnknownLeaf,
} from "../props/tokens.js";

/** A systemd unit file on a host. Values are escaped, so that systemd reads the values literally. */
export class SystemdUnit extends HostFile {
  /** Name of the unit. */
  readonly name: string;
  /** @internal The directory of the unit file. */
  readonly directory: string;

  constructor(scope: Construct, id: string, props: SystemdUnitProps) {
    const at = `${Construct.isConstruct(scope) ? scope.node.path : ""}/${id}`;
    refuseOptions(at, props, SYSTEMD_UNIT_PROPS, (fit) => [
      ...unitNameProblems(at, fit.name),
      ...(fit.unit === undefined || typeof fit.unit === "function"
        ? []
        : documentProblems(at, fit, fit.unit)),
    ]);
    const { name, unit, directory = DEFAULT_HOST_PATHS.unitDirectory } = props;
    const document = typeof unit === "function" ? unit : () => unit;
    super(scope, id, {
      host: props.host,
      path: `${directory}/${name}`,
      content: () => renderAroundTokens(document(), renderUnit),
      role: "unit",
    });
    this.name = name;
    this.directory = directory;
    if (typeof unit === "function") {
      const problems = () => documentProblems(this.node.path, props, unit());
      this.node.addValidation({ validate: () => problems().map(formatProblem) });
    }
    guardStartVariant(this, `${this.node.path}.unit.Service`, () => commandWords(document()));
    this.checkLate(() => lateUnitChecks(this.node.path, document()));
  }
}

function unitNameProblems(at: string, name: string | undefined): Problem[] {
  if (name === undefined || UNIT_NAME.test(name)) return [];
  const allowed = "a name such as app.service, or app.service.d/name.conf for a drop-in";
  return [problem("unit.bad-value", `${at}.name`, "is not the name of a unit", { received: name, allowed })];
}

function documentProblems(at: string, { name }: Partial<SystemdUnitProps>, unit: UnitDocument): Problem[] {
  // A drop-in may leave the command to the unit it belongs to.
  const dropIn = name?.includes("/") === true;
  return checkAroundTokens(unit, unitProblems)
    .problems.filter((p) => !(dropIn && p.code === "unit.missing-command" && p.path === "Service.ExecStart"))
    .map((p) => ({ ...p, path: `${at}.unit${p.path === "" ? "" : `.${p.path}`}` }));
}

/** Values that Terraform puts into the text are neither quoted nor escaped, so they must not need it. */
function lateUnitChecks(at: string, unit: UnitDocument): LateValue[] {
  return unknownLeaves(unit).flatMap(({ path, leaf }) => {
    const place = `${at}.unit.${formatPath(path)}`;
    return lateWords(place, ruleOf(path), leaf);
  });
}

/** @internal The same for the words of a command that gets into a drop-in. */
export function lateWordChecks(at: string, command: readonly string[]): LateValue[] {
  return unknownLeaves(command).flatMap(({ path, leaf }) =>
    lateWords(`${at}${formatPath(path)}`, ruleOf(["command", ...path]), leaf),
  );
}

/** The environment may have secrets in it. */
const lateWords = (at: string, rule: TextRule & { readonly allowed: string }, leaf: TokenLeaf): LateValue[] =>
  tokenTexts(leaf).flatMap((value) => hidden(lateText("unit.bad-value", at, rule, value)));

const hidden = (values: readonly LateValue[]): LateValue[] => values.map((one) => ({ ...one, hidden: true }));

function ruleOf(path: UnknownLeaf["path"]): TextRule & { readonly allowed: string } {
  const argument = path.indexOf("command") + 1;
  if (path.at(-1) === "specifiers") return WITH_SPECIFIERS;
  if (argument === 0) return UNQUOTED;
  const program = path[argument] === 0;
  return program
    ? { ...PROGRAM_PATH, allowed: "an absolute path of letters, digits and ./_-+@:,=" }
    : UNQUOTED_WORD;
}

const UNQUOTED = {
  pattern: "^[^\\x00-\\x1f\\x7f]*$",
  never: '[%"\\\\]|^\\s|\\s$',
  allowed: 'one line without `%`, `"` and `\\`, and without leading or trailing white space',
};
const WITH_SPECIFIERS = {
  ...UNQUOTED,
  never: '["\\\\]|^\\s|\\s$',
  allowed: 'one line without `"` and `\\`, and without leading or trailing white space',
};
const UNQUOTED_WORD = {
  pattern: "^[0-9A-Za-z_./:=@,+-]+$",
  allowed: "one word of letters, digits and ./_-+@:,=",
};

/** @internal systemd.unit(5): up to 256 characters; a drop-in is one level deeper. */
export const UNIT_NAME =
  /^(?=.{1,256}$)[\w:.\\@-]+\.(?:service|socket|timer|path|target|mount)(?:\.d\/[\w:.\\@-]+\.conf)?$/;

/** Name and content of a unit. */
export interface SystemdUnitProps {
  /** The host of the unit. */
  readonly host: IHost;
  /** File name with its type: `app.service`, or `app.service.d/name.conf` for a drop-in. */
  readonly name: string;
  /**
   * Sections and directives, or a function that returns the unit when the app is synthesized. Refused: control
   * characters (`unit.bad-value`), a service without a command (`unit.missing-command`), and the FastCGI start
   * variant of an application (`unit.fastcgi-start`), which the proxy does not support.
   */
  readonly unit: UnitDocument | (() => UnitDocument);
  /**
   * Directory on the host.
   * @default "/etc/systemd/system"
   */
  readonly directory?: string;
}

const SYSTEMD_UNIT_PROPS: PropTable<SystemdUnitProps> = {
  host: required(HOST),
  name: required(text),
  unit: required(any),
  directory: text,
};

/**
 * @internal A word of a command that is known only at apply could still select the FastCGI variant, which the proxy does not
 * speak. So the host checks it.
 */
export function guardStartVariant(file: HostFile, at: string, words: () => readonly string[]): void {
  file.checkLate(() =>
    words().flatMap((word) =>
      hidden(late(fastcgiStart(at), { pattern: "", never: FASTCGI_START, anyCase: true }, word)),
    ),
  );
}

/** The words of a unit's commands, and the values of its environment. */
function commandWords(unit: UnitDocument): string[] {
  const directives = Object.entries(unit.Service ?? {});
  return directives
    .filter(([directive]) => directive.startsWith("Exec") || directive === "Environment")
    .flatMap(([, value]) => (Array.isArray(value) ? value : [value]))
    .flatMap((value) => (typeof value === "object" && "command" in value ? value.command : [value]))
    .filter((word) => typeof word === "string");
}
