import { chmodCommand, shown } from "../../runtime/files/pathText.js";
import { type TreeFinding, NEEDED, SHOWN_MAX, type Walked } from "./treeWalk.js";
import { KEPT_TEXTS, type ModeChange, PERMISSIONS } from "./modes.js";
import { errnoReason } from "./refused.js";

/** Texts for the findings of a walk. All text is made here, by the process that shows it. */

/** A finding as it is shown. */
export interface TreeViolation extends Pick<TreeFinding, "code" | "kind" | "outside"> {
  readonly path: string;
  /** Four octal digits. */
  readonly mode: string;
  readonly lacks: "read" | "execute" | "read and execute";
  /** What to do about it. */
  readonly fix: string;
  /** Why activation would not fix it itself. */
  readonly notFixable?: string;
}

export interface WalkResponse {
  /** The first thousand. */
  readonly violations: readonly TreeViolation[];
  readonly violationCount: number;
  /** Changes that fix them, where that is possible. */
  readonly changes: readonly ModeChange[];
  readonly looked: number;
  readonly complete: boolean;
  readonly unseen: readonly { readonly path: string; readonly why: string }[];
}

/** A finding that is another user's word. */
export interface ToldFinding {
  readonly uid: number;
  /** Whether that user decides about the path: root's own way to it ends in a directory of that user. */
  readonly decidesAbout: (path: string) => boolean;
}

/** @param told whose word it is, if the process has not seen it itself */
export function described(walked: Walked, told?: ToldFinding): WalkResponse {
  const { findings, looked, complete, unseen } = walked;
  return {
    violations: findings.slice(0, SHOWN_MAX).map((finding) => violationOf(finding, told)),
    violationCount: findings.length,
    changes: findings.flatMap((finding) => changesOf(finding, told)),
    looked,
    complete,
    unseen: unseen.map(({ path, why }) => ({
      path: shown(path),
      why: why === "links" ? "(too many symbolic links)" : errnoReason(why),
    })),
  };
}

const LACKS = { 4: "read", 1: "execute", 5: "read and execute" } as const;

function violationOf(
  { path, code, kind, mode, outside, held }: TreeFinding,
  told: ToldFinding | undefined,
): TreeViolation {
  const isTheirs = told?.decidesAbout(path) ?? true;
  const held_ = heldText(held);
  return {
    path: shown(path),
    code,
    kind,
    mode: mode.toString(8).padStart(4, "0"),
    lacks: LACKS[(NEEDED[kind] & ~mode) as keyof typeof LACKS],
    fix: isTheirs ? chmodCommand(kind === "directory" ? "o+rx" : "o+r", path) : LOOK_AT_LINK,
    outside: outside || !isTheirs,
    notFixable: held_,
  };
}

/** A user can put a link to any file into his tree, and would have root open that file to everyone. */
const LOOK_AT_LINK = "a link in the tree leads there: remove the link, unless every user may read its target";

function heldText(held: TreeFinding["held"]): string | undefined {
  return typeof held === "number" ? `it belongs to user ${held}` : held && KEPT_TEXTS[held];
}

function changesOf(
  { path, kind, mode, outside, held }: TreeFinding,
  told: ToldFinding | undefined,
): ModeChange[] {
  if (outside || held !== undefined || told?.decidesAbout(path) === false) return [];
  const from = mode & PERMISSIONS;
  return [{ path, from, to: from | NEEDED[kind], uid: told?.uid }];
}
