import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { resolve } from "node:path";
import {
  Aspects,
  DefaultTokenResolver,
  Lazy,
  StringConcat,
  TerraformAsset,
  type TerraformResource,
  TerraformStack,
  TerraformVariable,
  Tokenization,
} from "cdktf";
import { Construct, type IConstruct } from "constructs";
import { freeId } from "../props/constructIds.js";
import { deployedFile, type FileMode, type FileRole } from "../../model/deployment.js";
import type { InputOf } from "../../model/schema/inferred.js";
import { formatProblem, type Problem, problem } from "../../model/index.js";
import { isFilePath } from "../../model/text/textRule.js";
import type { Machine } from "../../render/index.js";
import { refuse } from "../props/checks.js";
import type { IHost } from "./host.js";
import { HOST } from "../props/instances.js";
import type { LateValue } from "../props/lateChecks.js";
import { kindsOf } from "../props/fieldTable.js";
import { flag, partial, produced, type PropTable, refuseProps, required, text } from "../props/propTable.js";
import { escapeTemplate, isKnown, settleTokens } from "../props/tokens.js";
import { warn } from "../props/warn.js";

/** A file on a host, delivered by the host's delivery. */
export class HostFile extends Construct {
  /** Absolute path on the host. */
  readonly path: string;
  /** Permissions, four octal digits. */
  readonly mode: FileMode;
  /** The role of the file for the activation. */
  readonly role: FileRole;
  /** The host that the file is on. */
  readonly host: IHost;
  /** Whether plans and logs hide the content. */
  readonly sensitive: boolean;
  /** The resource that delivers the file, for dependencies and overrides (escape hatch). */
  readonly resource: TerraformResource;
  /** SHA-256 of the content in hexadecimal digits, as Terraform computes the hash. */
  readonly sha256: string;
  private readonly late: (() => readonly LateValue[])[] = [];

  constructor(scope: Construct, id: string, props: HostFileProps) {
    super(scope, freeId(scope, id));
    refuseProps(this, props, HOST_FILE_PROPS, (fit) => fileProblems(this.node.path, fit, props));
    const { path, content, source, mode = "0644", role = "other", sensitive = false } = props;
    this.path = path;
    this.mode = mode;
    this.role = role;
    this.host = props.host;
    this.sensitive = sensitive;
    const asset =
      source === undefined ? undefined : new TerraformAsset(this, "Asset", { path: resolve(source) });
    const machine = source !== undefined && role === "node" ? machineOf(source) : undefined;
    const delivered = props.host.delivery.deliver(this, "Resource", {
      host: props.host,
      path: escapeTemplate(path),
      mode,
      sensitive,
      content: content === undefined ? undefined : template(content),
      ...(asset === undefined ? {} : { source: asset.path, bytes: statSync(source!).size }),
      machine,
    });
    this.resource = delivered.resource;
    refuseSecond(this);
    this.sha256 = delivered.sha256;
    if (!mode.endsWith("0") && content !== undefined) warnOfSecretContent(this, content);
  }

  /** @internal Has the host check values of the content that only Terraform knows. */
  checkLate(values: () => readonly LateValue[]): void {
    this.late.push(values);
  }

  /** @internal Such values. */
  get lateValues(): readonly LateValue[] {
    return this.late.flatMap((values) => values());
  }
}

/** Place and content of a file. */
export interface HostFileProps
  extends
    Pick<InputOf<typeof deployedFile>, "path">,
    Partial<Pick<InputOf<typeof deployedFile>, "mode" | "role">> {
  /** The host of the file. */
  readonly host: IHost;
  /**
   * The text, or a function that returns the text when the app is synthesized. `${` and `%{` are written literally,
   * but tokens are resolved. Either this or `source`.
   */
  readonly content?: string | (() => string);
  /**
   * Path of an existing file to copy, on the machine that synthesizes; a relative path starts at the working
   * directory.
   */
  readonly source?: string;
  /** @default "0644" */
  readonly mode?: FileMode;
  /** @default "other": nothing */
  readonly role?: FileRole;
  /**
   * Whether plans and logs must not show the content. State holds it in any case.
   * @default false
   */
  readonly sensitive?: boolean;
}

function template(content: string | (() => string)): string {
  return typeof content === "string"
    ? escapeTemplate(content)
    : Lazy.stringValue({ produce: () => escapeTemplate(content()) });
}

/** Warns of sensitive variables, and of private keys, in a file that every user of the host can read. */
function warnOfSecretContent(file: HostFile, content: string | (() => string)): void {
  let warned = false;
  Aspects.of(file).add({
    visit: (node) => {
      if (node !== file || warned) return;
      warned = true;
      const all = TerraformStack.of(file).node.findAll();
      const secret = all.filter(
        (one): one is TerraformVariable => one instanceof TerraformVariable && one.sensitive === true,
      );
      const resolver = new DefaultTokenResolver(new StringConcat());
      const text = String(Tokenization.resolve(template(content), { scope: file, resolver }));
      const held = secret.filter(({ friendlyUniqueId: id }) => new RegExp(`\\bvar\\.${id}\\b`).test(text));
      const key = /^-----BEGIN [A-Z ]*PRIVATE KEY-----$/m.test(text);
      if (held.length === 0 && !key) return;
      const what = key
        ? "a private key"
        : `the sensitive variable ${held.map(({ node: { id } }) => id).join(", ")}`;
      warn(
        file,
        `The file ${file.path} contains ${what}, but its ` +
          `mode ${file.mode} lets every user of the host read it. Write the secret into a file of its own with mode 0600, and ` +
          "use the prop that takes the path of a file.",
      );
    },
  });
}

/** @param given values of `content` and `source`, valid or not */
function fileProblems(
  at: string,
  { path, source }: Partial<HostFileProps>,
  given: Partial<HostFileProps>,
): Problem[] {
  const problems: Problem[] = [];
  if (path !== undefined && isKnown(path) && (!isFilePath(path) || path.endsWith("/")))
    problems.push(pathProblem(at, path));
  if ((given.content === undefined) === (given.source === undefined)) {
    const more = { allowed: "either `content` or `source`", fix: "Set either `content` or `source`." };
    const message =
      given.content === undefined ? "is missing, and there is no `source`" : "is set together with `source`";
    problems.push(problem("config.missing-field", `${at}.content`, message, more));
  }
  if (source !== undefined && !isFileHere(source)) {
    const message = existsSync(source) ? "is not a file" : "does not exist";
    const fix = "Build or create the file first, or use the path of another file.";
    problems.push(problem("files.unreadable", `${at}.source`, message, { received: source, fix }));
  }
  return problems;
}

const isFileHere = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isFile() === true;

function pathProblem(at: string, received?: string): Problem {
  const allowed = "an absolute path of a file, without `//`, `.` or `..` segments";
  return problem("config.bad-file-path", `${at}.path`, "is not the path of a file", { received, allowed });
}

const HOST_FILE_PROPS: PropTable<HostFileProps> = {
  host: required(HOST),
  ...kindsOf(deployedFile, "path"),
  ...partial(kindsOf(deployedFile, "mode", "role")),
  content: produced(text),
  source: text,
  sensitive: flag,
};

/** Files of an app by the place they are written to. */
const placed = new WeakMap<IConstruct, Map<string, HostFile>>();

/** Two files on one path would overwrite each other at every apply. */
function refuseSecond(file: HostFile): void {
  const { root } = file.node;
  const files = placed.get(root) ?? new Map<string, HostFile>();
  placed.set(root, files);
  if (isKnown(file.path)) refuse(secondAt(file.path, file, files));
  // A path from a function, such as `Lazy`, is known when the app is synthesized.
  else
    file.node.addValidation({
      validate: () => {
        const path = settleTokens(file, file.path);
        return isKnown(path) ? secondAt(path, file, files).map(formatProblem) : [];
      },
    });
}

/** Takes the path for the file, or returns the problem that another file has it. */
function secondAt(path: string, file: HostFile, files: Map<string, HostFile>): Problem[] {
  const place = `${file.host.delivery.place(file.host)}\0${path}`;
  const first = files.get(place) ?? file;
  files.set(place, first);
  if (first === file) return [];
  const message = `is already written by ${first.node.path}`;
  return [problem("files.duplicate-path", file.node.path, message, { received: path })];
}

/** The processor that a program is for, by its ELF header (elf(5)); undefined for an unknown processor. */
function machineOf(program: string): Machine | undefined {
  const header = Buffer.alloc(20);
  const fd = openSync(program, "r");
  try {
    readSync(fd, header, 0, header.length, 0);
  } finally {
    closeSync(fd);
  }
  return header.toString("latin1", 0, 4) === "\x7fELF" ? MACHINES.get(header.readUInt16LE(18)) : undefined;
}

/** `EM_X86_64` and `EM_AARCH64`. */
const MACHINES: ReadonlyMap<number, Machine> = new Map([
  [62, "x86_64"],
  [183, "aarch64"],
]);
