import { posix } from "node:path";
import { OWN_SITE, type SettingsItem, type Tree } from "../../../model/index.js";
import { DIRECTORIES, SETTINGS } from "../../../model/host/rows.js";
import type { Evidence, SeenResponse } from "../evidence.js";
import type { UnitState } from "../system/hostFacts.js";
import { isIn, servedTrees } from "../treePermissions.js";
import type { TreeViolation } from "../treePermissions.js";
import {
  describe,
  explained,
  failedBy,
  failure,
  hasStrangers,
  isStalled,
  notAsked,
  notSeen,
  ok,
  outage,
  type Question,
  responsesOf,
  short,
  unknown,
  type Verdict,
} from "../verdict.js";

/**
 * Rows that the deployment defines. Each row reports everything with its code: a tree that others cannot read, a daemon
 * that does not run or has a forbidden command, settings items that are not as listed, a response with a cause of that
 * code.
 */
export function deploymentQuestions({ deployment }: Evidence): Question[] {
  const rows = deployment?.rows ?? [];
  return rows.map(({ code, title, site = OWN_SITE }) => ({
    id: code,
    title,
    site,
    ask: (evidence, failed) => askRow(code, evidence, failed),
  }));
}

/** Something that makes a row fail. */
export interface RowFault {
  readonly cause: string;
  readonly evidence: readonly string[];
  readonly fix: string;
}

function askRow(code: string, evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const trees = (evidence.deployment?.trees ?? []).filter((tree) => tree.code === code);
  const faults = [
    ...commandFaults(evidence, code),
    ...settingsFaults(evidence, code),
    ...treeFaults(evidence, trees, code),
    ...(responseFault(evidence, code) ?? stoppedFaults(evidence, code)),
  ];
  const [first] = faults;
  if (first !== undefined && hasStrangers(evidence) && failed.has("proxy")) return explained("proxy");
  if (first !== undefined) {
    const seen = faults.flatMap((fault) => fault.evidence);
    return failure(first.cause, seen, first.fix);
  }
  if (trees.length > 0) return askTrees(evidence, trees, code, failed);
  if (hasItems(evidence, code)) return askItems(evidence);
  const responses = responsesOf(evidence, code);
  if (responses.length > 0) return ok(...responses.slice(0, 1).map(describe));
  const isPaused = evidence.pauses !== undefined;
  if (isPaused) return notAsked("A command makes the proxy refuse the requests of this row.");
  return (
    outage(evidence, failed) ??
    (isStalled(evidence) && failed.has("units")
      ? explained("units")
      : (evidence.place === "host" ? unknown : notAsked)("No response for this row was received."))
  );
}

/** Directories that static routes serve, as far as the deployment has no row for them. */
export function askDirectories(evidence: Evidence, failed: ReadonlySet<string>): Verdict {
  const trees = directories(evidence);
  const [fault] = treeFaults(evidence, trees, DIRECTORIES);
  if (fault !== undefined) return failure(fault.cause, fault.evidence, fault.fix);
  // Unlike a tree of the application, a served tree must have been checked completely.
  const unseen =
    evidence.trees?.unseen.filter(({ path }) => trees.some((tree) => isIn(path, tree.path))) ?? [];
  if (unseen.length > 0) return unknown(unseen.map(({ path, why }) => `${path}: ${why}`).join("; "));
  return askTrees(evidence, trees, DIRECTORIES, failed);
}

/** The served trees of the row `DIRECTORIES`. */
export const directories = ({ config, deployment }: Evidence): readonly Tree[] =>
  servedTrees(config, deployment?.trees).filter(({ code }) => code === DIRECTORIES);

function commandFaults({ deployment, units }: Evidence, code: string): RowFault[] {
  return (deployment?.services.daemons ?? []).flatMap(({ unit, command: rule, code: told }) => {
    const command = units?.daemons?.find(({ name }) => name === unit)?.command ?? "";
    if (told !== code || rule === undefined || !new RegExp(rule.never, "i").test(command)) return [];
    return [{ cause: rule.message, evidence: [`${unit}: ExecStart=${command}`], fix: rule.fix }];
  });
}

/** Items of a row that are not as listed. */
export function settingsFaults({ settings }: Evidence, row: string): RowFault[] {
  const wrong = settings?.deviations.filter(({ code = SETTINGS }) => code === row) ?? [];
  if (wrong.length === 0) return [];
  const fix = wrong.some(({ where }) => where.includes("database"))
    ? "Change the items in the application's web settings, which take priority over the files; then restart the application."
    : "Run `portico settings apply`, then restart the daemons that read the files.";
  const evidence = wrong.map(
    ({ item, wanted, found, where }) =>
      `${item} is ${found ?? "not set"} (${where}), and should be ${wanted}`,
  );
  return [{ cause: "items of the application's settings are not as deployed", evidence, fix }];
}

function hasItems({ deployment }: Evidence, row: string): boolean {
  const items = (deployment?.settings?.files ?? []).flatMap((file): readonly SettingsItem[] => file.items);
  return items.some(({ code }) => code === row);
}

function askItems(evidence: Evidence): Verdict {
  const { settings } = evidence;
  if (settings === undefined) return notSeen(evidence, "The application's settings");
  const { problems, database } = settings;
  return problems.length > 0 ? unknown(problems.map(short).join("; ")) : ok(database);
}

function treeFaults(evidence: Evidence, trees: readonly Tree[], code: string): RowFault[] {
  const links = [...emptyFaults(evidence, trees), ...linkFaults(evidence, trees)];
  const lacking = violationsOf(evidence, code);
  const [tree] = trees;
  if (lacking.length === 0 || tree === undefined) return links;
  const fixes = lacking.slice(0, SHOWN_MAX).map(({ fix }) => fix);
  return [...links, { cause: tree.message, evidence: listed(lacking), fix: fixes.join("; ") }];
}

const emptyFaults = ({ drift }: Evidence, trees: readonly Tree[]): RowFault[] =>
  (drift?.emptied ?? [])
    .filter(({ at }) => trees.some(({ path }) => path === at))
    .map(({ at, what, fix }) => ({
      cause: "a served directory has lost its files: its disk may not be mounted",
      evidence: [`${at}: ${what}`],
      fix,
    }));

const linkFaults = ({ links = [] }: Evidence, trees: readonly Tree[]): RowFault[] =>
  links
    .filter(({ directory }) => trees.some(({ path }) => isIn(directory, path)))
    .map(({ directory, uid, target }) => ({
      cause: "the proxy does not follow a symbolic link on the path of a served directory",
      evidence: [`${directory}: a link of user ${uid} leads to ${target}`],
      fix: 'Remove the link. To serve its target, use the path of the target in the route, or set symlinks to "anywhere".',
    }));

const violationsOf = ({ trees }: Evidence, code: string): TreeViolation[] =>
  trees?.violations.filter((violation) => violation.code === code) ?? [];

const listed = (violations: readonly TreeViolation[]): string[] =>
  violations.slice(0, SHOWN_MAX).map(({ path, lacks }) => `${path}: others lack ${lacks}`);

/** Violations reported in one row; the next run shows the others. */
const SHOWN_MAX = 10;

function responseFault(evidence: Evidence, code: string): [RowFault] | undefined {
  const wrong = failedBy(evidence, code).filter((seen) => !isOfOtherTree(evidence, seen, code));
  const [first] = wrong;
  if (first === undefined) return undefined;
  const { cause, expected, fix = `It should be: ${expected}.`, settings } = first.checked;
  // A response that shows wrong settings comes from a running daemon.
  const daemons = settings === undefined ? daemonsOf(evidence, code) : [];
  const states = daemons.map(({ name, state }) => `${name}: ${state}`);
  const starts = daemons.filter(isStopped).map(({ name }) => `systemctl start ${name}`);
  return [{ cause: cause!, evidence: [...wrong.map(describe), ...states], fix: [fix, ...starts].join(" ") }];
}

/** Whether only the trees of another row that explains the response are not as they should be. */
const isOfOtherTree = (evidence: Evidence, { checked: { because = [] } }: SeenResponse, code: string) =>
  violationsOf(evidence, code).length === 0 &&
  because.some((other) => violationsOf(evidence, other).length > 0);

function daemonsOf({ deployment, units }: Evidence, code: string): UnitState[] {
  const own = (deployment?.services.daemons ?? []).filter((daemon) => daemon.code === code);
  return own.flatMap(({ unit }) => units?.daemons?.find(({ name }) => name === unit) ?? []);
}

const isStopped = ({ state }: UnitState): boolean => !["active", "activating", "reloading"].includes(state);

const stoppedFaults = (evidence: Evidence, code: string): RowFault[] =>
  daemonsOf(evidence, code)
    .filter(isStopped)
    .map(({ name, state }) => ({
      cause: `${name} does not run`,
      evidence: [`${name}: ${state}`],
      fix: `systemctl start ${name}; if that fails: journalctl -u ${name}`,
    }));

function askTrees(
  evidence: Evidence,
  trees: readonly Tree[],
  code: string,
  failed: ReadonlySet<string>,
): Verdict {
  const { trees: seen } = evidence;
  const paths = trees.map(({ path }) => path);
  if (seen === undefined)
    return (
      outage(evidence, failed) ?? notSeen(evidence, `Whether other users can read ${paths.join(" and ")}`)
    );
  // A directory on the way to several trees is reported once.
  const above = seen.violations.filter(
    (violation) =>
      violation.code !== code && paths.some((path) => path.startsWith(posix.join(violation.path, "/"))),
  );
  if (above.length > 0) return explained(above[0]!.code, ...listed(above));
  // A tree whose owner's process does not respond is not one that is in order.
  if (seen.looked === 0 && seen.unseen.length > 0)
    return unknown(seen.unseen.map(({ path, why }) => `${path}: ${why}`).join("; "));
  return ok(`${seen.looked} files and directories of all trees were checked`);
}
