import { dirname } from "node:path";
import { type Acting, actingOn, Realm } from "../asOwner/acting.js";
import { asOwner } from "../asOwner/asOwner.js";
import { described, type TreeViolation, type WalkResponse } from "../asOwner/treeFindings.js";
import { type TreeTask, SHOWN_MAX, type Walked, walkTrees } from "../asOwner/treeWalk.js";
import { keptText, type ModeChange, PERMISSIONS } from "../asOwner/modes.js";
import { directoriesOf } from "../../model/actions/table.js";
import { type Problem, ProblemError, type ProxyConfig, type Tree } from "../../model/index.js";
import { DIRECTORIES } from "../../model/host/rows.js";
import { shown } from "../../runtime/files/pathText.js";
import { systemReason } from "../../runtime/files/systemReason.js";

export type { TreeViolation } from "../asOwner/treeFindings.js";
export type { ModeChange } from "../asOwner/modes.js";

/**
 * The permissions of files that the proxy serves from disk (service 2.8): every directory on the way, from `/` on, is
 * readable and executable for others, every file is readable. The checks and changes run as the user who can change the
 * trees anyway.
 */

/**
 * What others have to be able to read: the trees of a deployment, and before them, since one inside another comes after
 * it, directories that static routes serve and that are in none of these.
 */
export function servedTrees(
  { virtualServers }: Pick<ProxyConfig, "virtualServers">,
  trees: readonly Tree[] = [],
): readonly Tree[] {
  const actions = virtualServers.flatMap(({ routes }) => routes.map(({ action }) => action));
  const served = new Set(actions.flatMap((action) => directoriesOf(action).map(({ value }) => value)));
  const untold = [...served].filter((path) => !trees.some((tree) => isIn(path, tree.path))).sort();
  return [...untold.map((path) => ({ path, code: DIRECTORIES, message: UNREADABLE, fix: false })), ...trees];
}

const UNREADABLE = "a file that a static route serves, or a directory on its way, is not readable by others";

/** Whether a path is that of a directory, or below it. */
export const isIn = (path: string, directory: string): boolean =>
  withSlash(path).startsWith(withSlash(directory));

const withSlash = (path: string): string => (path.endsWith("/") ? path : `${path}/`);

/** `changes` fix the violations, as far as they can be fixed. */
export interface TreePermissions extends WalkResponse {
  /** Users whose files could not be checked. */
  readonly unreached: readonly Problem[];
}

const ENTRIES_MAX = 200_000;
/** A large tree on a slow disk takes its time. */
const DEADLINE = { timeoutMs: 120_000 };

/** Checks trees and the paths to them; changes nothing. */
export async function checkTrees(
  trees: readonly Pick<Tree, "path" | "code">[],
  entriesMax = ENTRIES_MAX,
): Promise<TreePermissions> {
  const seen = new CombinedFindings(entriesMax);
  const wanted = trees.map(taskOf);
  const ways = await Promise.all(wanted.map(async (task) => ({ task, acting: await seen.acting(task) })));
  const actings = ways.flatMap(({ acting }) => (acting === undefined ? [] : [acting]));
  // The part of a path that only root can change is checked here, not by a user's process.
  for (const { task, acting } of ways) {
    if (acting === undefined || acting.uid === process.geteuid!()) continue;
    const request = { tasks: [task], roots: [], entriesMax: seen.left };
    seen.add(described({ ...(await walkTrees(request)), looked: 0 }));
  }
  const owners = new Set(actings.map(({ uid }) => uid));
  // Trees of one owner are checked together; with several owners, each has to know where the other trees are.
  const roots =
    owners.size < 2 ? [] : (await Promise.all(actings.map(realPath))).filter((root) => root !== null);
  for (let tasks: readonly TreeTask[] = wanted; tasks.length > 0;) {
    tasks = await look(seen, tasks, roots);
  }
  return seen.permissions();
}

function taskOf({ path, code }: Pick<Tree, "path" | "code">): TreeTask {
  return { path: Buffer.from(path).toString("latin1"), code, kind: "tree", outside: false };
}

/** A reported real path is used only if the reporting user controls that path. */
async function realPath(acting: Acting): Promise<string | null> {
  const told = await asOwner("realPath", { path: acting.path }, acting).catch(() => null);
  return told !== null && (await new Realm(acting.uid).includes(told)) ? told : null;
}

/** Checks each tree as its owner. Returns paths that another user still has to check. */
async function look(
  seen: CombinedFindings,
  tasks: readonly TreeTask[],
  roots: readonly string[],
): Promise<readonly TreeTask[]> {
  const byOwner = new Map<number, { acting: Acting; tasks: TreeTask[] }>();
  for (const task of tasks) {
    if (seen.isKnown(task)) continue;
    const acting = await seen.acting(task);
    if (acting === undefined) continue;
    const group = byOwner.get(acting.uid) ?? { acting, tasks: [] };
    byOwner.set(acting.uid, group);
    group.tasks.push(task);
  }
  const handedOver: TreeTask[] = [];
  // A tree inside another one comes later and is checked first, so that its files get its code.
  for (const { acting, tasks: theirs } of [...byOwner.values()].reverse()) {
    const request = { tasks: theirs, roots, entriesMax: seen.left };
    try {
      const response = await asOwner("walkTrees", request, acting, DEADLINE);
      seen.add(await judged(response, acting.uid));
      handedOver.push(...response.handedOver);
    } catch (error) {
      if (error instanceof ProblemError) seen.unreached.push(...error.problems);
      for (const task of theirs) seen.notSeen(task, error);
    }
  }
  return handedOver;
}

async function judged(response: Walked, uid: number): Promise<WalkResponse> {
  if (uid === process.geteuid!()) return described(response);
  const realm = new Realm(uid);
  const theirs = new Set<string>();
  for (const { path } of response.findings) if (await realm.includes(path)) theirs.add(path);
  return described(response, { uid, decidesAbout: (path) => theirs.has(path) });
}

/** The combined findings of several walks. */
class CombinedFindings {
  private readonly violations = new Map<string, TreeViolation>();
  private readonly changes = new Map<string, ModeChange>();
  readonly unreached: Problem[] = [];
  private readonly unseen: { path: string; why: string }[] = [];
  private readonly known = new Set<string>();
  private violationCount = 0;
  private looked = 0;
  private complete = true;

  constructor(private readonly entriesMax: number) {}

  get left(): number {
    return this.entriesMax - this.looked;
  }

  isKnown({ kind, path }: TreeTask): boolean {
    const key = `${kind} ${path}`;
    if (this.known.has(key)) return true;
    this.known.add(key);
    return false;
  }

  async acting(task: TreeTask): Promise<Acting | undefined> {
    try {
      return await actingOn(task.path);
    } catch (error) {
      this.notSeen(task, error);
      return undefined;
    }
  }

  add(response: WalkResponse): void {
    let again = 0;
    for (const violation of response.violations) {
      if (this.violations.has(violation.path)) again++;
      else if (this.violations.size < SHOWN_MAX) this.violations.set(violation.path, violation);
    }
    for (const change of response.changes) {
      if (!this.changes.has(change.path)) this.changes.set(change.path, change);
    }
    this.violationCount += response.violationCount - again;
    this.looked += response.looked;
    this.complete &&= response.complete;
    this.unseen.push(...response.unseen);
  }

  notSeen({ path }: TreeTask, error: unknown): void {
    if (this.unseen.some((one) => one.path === shown(path))) return;
    const why =
      error instanceof ProblemError
        ? error.problems.map((p) => `${p.path}: ${p.message}`).join("; ")
        : systemReason(error as Error);
    this.unseen.push({ path: shown(path), why });
  }

  permissions(): TreePermissions {
    return {
      violations: [...this.violations.values()],
      violationCount: this.violationCount,
      changes: [...this.changes.values()],
      looked: this.looked,
      complete: this.complete,
      unseen: this.unseen.slice(0, SHOWN_MAX),
      unreached: this.unreached,
    };
  }
}

/** A change of permissions, and why it was not made if it was not. */
export interface ChangedMode extends ModeChange {
  readonly why?: string;
}

/**
 * Changes permissions, each as the user who reported the file, because the report may be false; for files that this
 * process has seen itself, as the user who can change the path. Permissions that are not as expected stay.
 */
export async function changeModes(changes: readonly ModeChange[]): Promise<ChangedMode[]> {
  const outcomes: ChangedMode[] = [];
  const byOwner = new Map<number, { acting: Acting; changes: ModeChange[] }>();
  const known = new Map<string, Promise<Acting | Error>>();
  const actingIn = (directory: string): Promise<Acting | Error> => {
    const acting = known.get(directory) ?? actingOn(directory).catch((error: Error) => error);
    known.set(directory, acting);
    return acting;
  };
  for (const change of changes) {
    const { path, uid } = change;
    const acting = uid === undefined ? await actingOf(path, actingIn) : { uid, path };
    if (acting instanceof Error) {
      outcomes.push({ ...change, why: acting.message });
      continue;
    }
    const group = byOwner.get(acting.uid) ?? { acting, changes: [] };
    byOwner.set(acting.uid, group);
    group.changes.push(change);
  }
  for (const { acting, changes: theirs } of byOwner.values()) {
    outcomes.push(...(await changedAs(acting, theirs)));
  }
  return outcomes;
}

/**
 * The owner of a directory can change it anyway; a file in a directory that only root can change is safe for root to
 * touch.
 */
async function actingOf(
  path: string,
  actingIn: (directory: string) => Promise<Acting | Error>,
): Promise<Acting | Error> {
  const inside = await actingIn(dirname(path));
  if (inside instanceof Error || inside.uid !== process.geteuid!()) return inside;
  return actingOn(path).catch((error: Error) => error);
}

async function changedAs(acting: Acting, changes: readonly ModeChange[]): Promise<ChangedMode[]> {
  // No one else has to know whose word they are.
  const asked = changes.map(({ path, from, to }) => ({
    path,
    from: from & PERMISSIONS,
    to: to & PERMISSIONS,
  }));
  try {
    const kept = await asOwner("changeModes", { changes: asked }, acting, DEADLINE);
    return changes.map((change, i) => {
      const why = kept[i]!;
      return why === null ? change : { ...change, why: keptText(why) };
    });
  } catch (error) {
    return changes.map((change) => ({ ...change, why: (error as Error).message }));
  }
}
