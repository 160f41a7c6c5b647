import { existsSync } from "node:fs";
import { dirname } from "node:path";
import type { FileRole } from "../../model/index.js";
import type { Delivered } from "./delivered.js";
import {
  currentUser,
  makeDirectory,
  placeCopy,
  placeLink,
  removeFile,
  removeIfEmpty,
  temporaryOf,
} from "./durableFiles.js";
import { differences, type FileState, sameState } from "./fileState.js";
import { filesOf, goodFiles, type GoodState, stateOf, type Store } from "./store.js";

/** A path whose content, permissions or owner are not as they should be. */
export interface FileChange {
  readonly path: string;
  readonly role: FileRole;
  readonly now: FileState;
  readonly to: FileState;
  /** The differences, in words. */
  readonly why: string;
}

/**
 * The differences between host and deployment; manual changes on the host count as well. Files of the last deployment
 * that are no longer part of the new one become what they were before Portico was deployed.
 *
 * @param now the current state of every path of either deployment
 */
export function fileChanges(
  delivered: Pick<Delivered, "deployment" | "document" | "inPlace">,
  last: GoodState | undefined,
  now: ReadonlyMap<string, FileState>,
): FileChange[] {
  const files = filesOf(delivered.deployment, delivered.document);
  const wanted = files.map((file) => ({ path: file.path, role: file.role, to: stateOf(file) }));
  const good = new Map((last === undefined ? [] : goodFiles(last)).map(({ path, state }) => [path, state]));
  return [...wanted, ...leaving(files, last)].flatMap(({ path, role, to }) => {
    const state = now.get(path)!;
    const why = differences(state, to);
    if (why.length > 0) return [{ path, role, now: state, to, why: describe(state, to, why) }];
    // The services have not yet loaded files that the delivery itself has written.
    const then = good.get(path);
    const isChange = then === undefined ? delivered.inPlace : !sameState(then, to);
    return isChange ? [{ path, role, now: state, to, why: "in place already" }] : [];
  });
}

function describe(now: FileState, to: FileState, why: readonly string[]): string {
  if (now.kind === "absent") return "new";
  if (to.kind === "absent") return "removed";
  return why.join(", ");
}

function leaving(files: readonly { readonly path: string }[], last: GoodState | undefined) {
  const staying = new Set(files.map(({ path }) => path));
  return (last?.deployment.files ?? [])
    .filter(({ path }) => !staying.has(path))
    .flatMap(({ path, role }) => {
      const before = last!.before[path] ?? "unknown";
      // The delivery that wrote the file in place also removes it.
      return before === "unknown" ? [] : [{ path, role, to: before }];
    });
}

/** Paths of both deployments. */
export function pathsOf(last: GoodState | undefined): string[] {
  return last === undefined ? [] : filesOf(last.deployment, last.document).map(({ path }) => path);
}

/** Directories that have to be made for files to be written, outermost first. */
export function missingDirectories(store: Store, paths: readonly string[]): string[] {
  const missing = new Set<string>();
  for (const path of paths) {
    for (let at = dirname(path); !existsSync(store.onHost(at)); at = dirname(at)) missing.add(at);
  }
  return [...missing].sort();
}

/** Creates the directories of a file, where they are missing. */
export async function makeParents(store: Store, path: string): Promise<void> {
  await makeDirectories(store, missingDirectories(store, [path]));
}

export async function makeDirectories(store: Store, directories: readonly string[]): Promise<void> {
  for (const directory of directories) await makeDirectory(store.onHost(directory));
}

/** Removes those directories that are empty, the inner ones first. @returns the others */
export async function removeDirectories(store: Store, directories: readonly string[]): Promise<string[]> {
  for (const directory of [...directories].sort().reverse()) await removeIfEmpty(store.onHost(directory));
  return directories.filter((directory) => existsSync(store.onHost(directory)));
}

/** Brings a path of the host to a state; contents come from the store. */
export async function putState(store: Store, path: string, to: FileState): Promise<void> {
  const target = store.onHost(path);
  switch (to.kind) {
    case "absent":
      await removeFile(temporaryOf(target));
      return removeFile(target);
    case "link":
      return placeLink(target, to.target);
    case "file":
      return placeCopy(store.blob(to.sha256), target, ownedBy(to));
  }
}

/** Removes a temporary file that an interrupted write has left next to a path. */
export async function removeTemporary(store: Store, path: string): Promise<void> {
  await removeFile(temporaryOf(store.onHost(path)));
}

/** Only root can change owners; files that another user makes in a folder belong to that user. */
function ownedBy(to: FileState & { kind: "file" }) {
  return process.geteuid!() === 0 ? to : { ...currentUser(), mode: to.mode };
}
