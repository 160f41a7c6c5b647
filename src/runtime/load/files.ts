import { createHash } from "node:crypto";
import fs, { constants, type Stats } from "node:fs";
import { access, stat } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { dirname, join, sep } from "node:path";
import { type Problem, problem, type Result } from "../../model/serving.js";
import type { FindCredential } from "./credentials.js";
import { systemReason } from "../files/systemReason.js";
import {
  FileRefused,
  logRefusal,
  type ReadFile,
  type ReadOptions,
  readTrusted,
} from "../files/trustedFile.js";

/**
 * Checks that this process may use the files and directories a config names. The reasons say which directory on the
 * path is missing or closed, not just `EACCES`.
 */

export interface ReadTextOptions extends ReadOptions {
  /**
   * Whether the file has a secret: the advice must not open it to everyone.
   * @default false
   */
  readonly secret?: boolean;
}

/** Text of a file, or why it cannot be read. */
export async function readText(
  file: string,
  label: string,
  { secret = false, ...options }: ReadTextOptions = {},
): Promise<{ readonly text: string; readonly stats?: Stats } | { readonly problem: Problem }> {
  if (file === STANDARD_INPUT) return { text: await standardInput() };
  const read = await readBytes(file, label, { secret, ...options });
  return "problem" in read ? read : { text: read.bytes.toString("utf8"), stats: read.stats };
}

/** Bytes of a file, or why it cannot be read. */
export async function readBytes(
  file: string,
  label: string,
  { secret = false, ...options }: ReadTextOptions = {},
): Promise<ReadFile | { readonly problem: Problem }> {
  try {
    return await readTrusted(file, options);
  } catch (error) {
    return { problem: await readProblem(file, label, error as Error, secret ? "secret" : "a+r") };
  }
}

/** Empty for a file that cannot be read. */
export async function textIfReadable(file: string): Promise<string> {
  const read = await readText(file, file);
  return "text" in read ? read.text : "";
}

/** @param mode argument for chmod, or `secret` */
async function readProblem(file: string, label: string, error: Error, mode: string): Promise<Problem> {
  if (error instanceof FileRefused) return refusedProblem(label, error);
  const why = await whyNot(file, error, mode);
  return problem("files.unreadable", label, why.message, fixOf(why));
}

export function refusedProblem(label: string, { code, message, fix, allowed }: FileRefused): Problem {
  return problem(code, label, message, { fix, allowed });
}

/** A secret of a config. */
export interface SecretText {
  /** The file that was read: the named one, or the credential in its place. */
  readonly file: string;
  readonly label: string;
  /** Never logged, never part of a message; undefined if there is a problem. */
  readonly text?: string;
  readonly problems: readonly Problem[];
  /** Warnings, with which the service still runs. */
  readonly warnings: readonly Problem[];
}

/** Reads a secret: where it was handed over, or in the file that the config names. */
export async function readSecret(named: string, field: string, find: FindCredential): Promise<SecretText> {
  const credential = await find(named);
  const file = credential ?? named;
  const label = `${field} (${file})`;
  const read = await readText(file, label, { secret: true });
  if ("problem" in read) return { file, label, problems: [read.problem], warnings: [] };
  // Standard input has no mode.
  const isNamed = credential === undefined && read.stats !== undefined;
  const warnings = isNamed ? exposure(read.stats, file, label) : [];
  return { file, label, text: read.text, problems: [], warnings };
}

/** A config that is piped in: a socket, which many parents give, cannot be opened by this name. */
export const STANDARD_INPUT = "/dev/stdin";

/** It can be read once only, and a reload wants the same text again. */
const standardInput = (): Promise<string> => (input ??= text(process.stdin));
let input: Promise<string> | undefined;

/** A warning if a file with a secret is open to more users than have to read it. */
function exposure({ mode, uid }: Stats, file: string, label: string): Problem[] {
  const others = (mode & 0o006) !== 0;
  // A process that is not the owner reads it as a member of its group, as pods do (`fsGroup`).
  const group = (mode & (uid === process.geteuid?.() ? 0o060 : 0o020)) !== 0;
  if (!others && !group) return [];
  const who = others ? "every user of this host" : "its group";
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  const fix = `Keep the file private: chmod 600 ${file}`;
  return [problem("files.key-exposed", label, `can be read or written by ${who} (mode ${shown})`, { fix })];
}

/** The parsed content of a file that a user named; a problem with the text as a whole has the file's path. */
export async function readParsed<T>(file: string, parse: (text: string) => Result<T>): Promise<Result<T>> {
  const read = await readText(file, file, { by: "operator" });
  if ("problem" in read) return { ok: false, problems: [read.problem] };
  const parsed = parse(read.text);
  if (parsed.ok) return parsed;
  return { ok: false, problems: parsed.problems.map((p) => (p.path === "" ? { ...p, path: file } : p)) };
}

/** A directory that files are served from must be readable and executable for this process (service 2.8). */
export async function directoryProblem(directory: string, label: string): Promise<Problem | undefined> {
  try {
    if (!(await stat(directory)).isDirectory()) {
      const fix = { fix: "Use the path of a directory." };
      return problem("files.bad-directory", label, "is not a directory", fix);
    }
    await access(directory, constants.R_OK | constants.X_OK);
    return undefined;
  } catch (error) {
    const why = await whyNot(directory, error as NodeJS.ErrnoException, "a+rx");
    return problem("files.bad-directory", label, why.message, fixOf(why));
  }
}

/** A log must be writable, or its directory, or the nearest parent that exists: missing directories are made. */
export async function logProblem(file: string, label: string): Promise<Problem | undefined> {
  const refused = await logRefusal(file);
  if (refused !== undefined)
    return problem("files.log-not-writable", label, refused.message, { fix: refused.fix });
  for (let at = file; ; at = dirname(at)) {
    try {
      const found = await stat(at);
      if (at === file && found.isDirectory()) {
        return problem("files.log-not-writable", label, "is a directory", {
          fix: "Use the path of a file.",
        });
      }
      if (at !== file && !found.isDirectory()) {
        const fix = { fix: `Remove ${at}, or log to another directory.` };
        return problem("files.log-not-writable", label, `is below ${at}, which is not a directory`, fix);
      }
      if (found.nlink === 0) {
        // A service sees its log directory through a mount, which stays where it was when the directory is removed.
        return problem("files.log-not-writable", label, `is in ${at}, which was removed`, {
          fix: logFix(file),
        });
      }
      await access(at, at === file ? constants.W_OK : constants.W_OK | constants.X_OK);
      return undefined;
    } catch (error) {
      const failure = error as NodeJS.ErrnoException;
      if (failure.code === "ENOENT" || failure.code === "ENOTDIR") continue;
      return notWritable(at, file, label, failure);
    }
  }
}

interface Why {
  readonly message: string;
  readonly fix?: string;
}

const fixOf = ({ fix }: Why): { fix?: string } => (fix === undefined ? {} : { fix });

/** Why a path cannot be used: its first step that is missing, closed or not a directory. */
async function whyNot(path: string, error: NodeJS.ErrnoException, mode: string): Promise<Why> {
  if (error.code !== "ENOENT" && error.code !== "EACCES" && error.code !== "ENOTDIR") {
    return { message: `cannot be read ${systemReason(error)}` };
  }
  for (const step of stepsTo(path)) {
    try {
      const found = await stat(step);
      if (step === path) break;
      if (!found.isDirectory()) return { message: `is below ${step}, which is not a directory` };
      await access(step, constants.X_OK);
    } catch (failure) {
      const { code } = failure as NodeJS.ErrnoException;
      if (code === "EACCES") return closed(step, step === path ? mode : "a+x");
      return { message: step === path ? "does not exist" : `does not exist: there is no ${step}` };
    }
  }
  return closed(path, mode);
}

/** @param mode argument for chmod, or `secret` */
function closed(step: string, mode: string): Why {
  const example =
    mode === "secret"
      ? `without opening it to others: chown ${userId()} ${step}, or LoadCredential= in the service's unit`
      : `for example: chmod ${mode} ${step}`;
  return {
    message: `cannot be read: no permission on ${step} for ${user()}`,
    fix: `Let ${user()} read it, ${example}`,
  };
}

function notWritable(at: string, file: string, label: string, error: NodeJS.ErrnoException): Problem {
  const message =
    at === file
      ? `cannot be written by ${user()} ${systemReason(error)}`
      : `cannot be created in ${at} by ${user()} ${systemReason(error)}`;
  const fix = at === file ? `Let ${user()} write it, for example: chown ${userId()} ${file}` : logFix(file);
  return problem("files.log-not-writable", label, message, { fix });
}

/**
 * How to make a log's directory writable. systemd creates a service's log directory at each start (`LogsDirectory=`),
 * owned by the service's user; a directory made by hand would have the wrong owner.
 */
export function logFix(file: string): string {
  const directory = dirname(file);
  const ours = (process.env["LOGS_DIRECTORY"] ?? "").split(":");
  if (ours.some((one) => one !== "" && file.startsWith(`${one}/`)))
    return "Restart the service; systemd then creates its log directory: systemctl restart portico.service";
  return `Create its directory for ${user()}: mkdir -p ${directory} && chown ${userId()} ${directory}`;
}

/** `/`, `/srv`, `/srv/media` for `/srv/media`. */
function stepsTo(path: string): string[] {
  const names = path.split(sep).filter((name) => name !== "");
  return [sep, ...names.map((_, i) => join(sep, ...names.slice(0, i + 1)))];
}

const userId = (): string => String(process.geteuid?.() ?? "USER");
const user = (): string => `user ${userId()}`;

/**
 * Moves log files of other users out of the way, such as those that a rotation created: an empty file is removed, any
 * other is renamed to `access.log.1763800000`. This needs only the rights of the directory's owner. A file that cannot
 * be moved stays, and is reported when it is opened.
 *
 * Only the master does this, before its workers open the files: two processes would move each other's files away.
 */
export function recoverLogs(paths: readonly string[]): void {
  for (const path of paths) {
    try {
      const { size } = foreignFile(path) ?? {};
      if (size === 0) fs.unlinkSync(path);
      else if (size !== undefined) fs.renameSync(path, `${path}.${Math.floor(Date.now() / 1000)}`);
    } catch {
      // Reported when the file is opened.
    }
  }
}

/** A regular file that this process may not write; undefined for everything else. */
function foreignFile(path: string): fs.Stats | undefined {
  const found = fs.lstatSync(path, { throwIfNoEntry: false });
  if (found?.isFile() !== true || found.uid === process.geteuid!()) return undefined;
  try {
    fs.accessSync(path, fs.constants.W_OK);
    return undefined;
  } catch {
    return found;
  }
}

/** In hexadecimal. */
export function sha256(content: string | Buffer): string {
  return createHash("sha256").update(content).digest("hex");
}
