import { type Acting, actingOn } from "../asOwner/acting.js";
import { asOwner } from "../asOwner/asOwner.js";
import { foreignOwner } from "../asOwner/refused.js";
import { type Problem, problem, ProblemError, type Result } from "../../model/index.js";
import { systemReason } from "../../runtime/files/systemReason.js";

/** A file of the application as it was found. */
export interface SettingsFileState {
  /** The path as it was named. */
  readonly path: string;
  /** The file itself, if `path` leads through symbolic links; one char a byte. */
  readonly target: string;
  readonly content: Buffer;
  /** Differs after any change to the file. */
  readonly version: string;
  /** How many hard links it has. */
  readonly links: number;
  /** Why it could not be replaced, if that is already known. */
  readonly notReplaceable?: Problem;
  /** The user to act as: the user who can change the path. */
  readonly acting: Acting;
}

/** Reads a file for an edit. */
export async function readFound(path: string): Promise<Result<SettingsFileState>> {
  return settled(path, async () => {
    const acting = await actingOn(Buffer.from(path).toString("latin1"));
    const { content, target, version, links, uid } = await asOwner(
      "read",
      { path: acting.path, label: path },
      acting,
    );
    const foreign = acting.uid !== 0 && uid !== acting.uid;
    return {
      path,
      target,
      content: Buffer.from(content, "base64"),
      version,
      links,
      acting,
      ...(foreign ? { notReplaceable: foreignOwner(path, uid, acting.uid) } : {}),
    };
  });
}

/** Removes a copy, perhaps with secrets, that an interrupted replacement may have left next to a file. */
export async function sweepBeside(path: string): Promise<void> {
  await settled(path, async () => {
    const acting = await actingOn(Buffer.from(path).toString("latin1"));
    return asOwner("sweep", { path: acting.path, label: path }, acting);
  });
}

/** A file and its new content. */
export interface Replacement {
  readonly file: SettingsFileState;
  readonly content: Buffer;
}

/**
 * Replaces files, all or none, each in one step: a reader finds either the old one or the new one, complete. Owner,
 * group, mode, access lists and labels are kept. No copy stays anywhere.
 */
export async function replaceFiles(replacements: readonly Replacement[]): Promise<Result<null>> {
  const done: Replacement[] = [];
  for (const { file, content } of replacements) {
    const replaced = await replace(file, content);
    if (replaced.ok) done.push({ file: { ...file, ...replaced.value }, content: file.content });
    else return { ok: false, problems: [...replaced.problems, ...(await putBack(done))] };
  }
  return { ok: true, value: null };
}

function replace({ path, target, version, acting }: SettingsFileState, content: Buffer) {
  const request = { label: path, target, version, content: content.toString("base64") };
  return settled(path, () => asOwner("replace", request, acting));
}

/** Half of the settings is worse than none. Files that could not be restored are reported together with the reason. */
async function putBack(done: readonly Replacement[]): Promise<readonly Problem[]> {
  const problems: Problem[] = [];
  for (const { file, content } of done.toReversed()) {
    const back = await replace(file, content);
    if (!back.ok) problems.push(...back.problems);
  }
  return problems;
}

async function settled<T>(path: string, act: () => Promise<T>): Promise<Result<T>> {
  try {
    return { ok: true, value: await act() };
  } catch (error) {
    if (error instanceof ProblemError) return { ok: false, problems: error.problems };
    const message = `cannot be read ${systemReason(error as Error)}`;
    return { ok: false, problems: [problem("files.unreadable", path, message)] };
  }
}
