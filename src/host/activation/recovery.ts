import type { Report } from "./report.js";
import { type Problem, ProblemError } from "../../model/index.js";
import { finish } from "./leaving.js";
import { withLock } from "./lock.js";
import { programsOf } from "./programs.js";
import { rollBack } from "./rollBack.js";
import { changesServices, type Journal, openStore, type Store } from "./store.js";

/** The run that was cut off, and the parts that could not be fixed. */
export interface Recovered {
  readonly kind: Journal["kind"];
  readonly problems: readonly Problem[];
}

export interface RecoveryOptions {
  /** Folder to use as the host's `/`. */
  readonly root: string;
  readonly report: Report;
  /** Report the planned fixes, and change nothing. */
  readonly dryRun: boolean;
}

/**
 * Repairs a host on which something was cut off: rolls back an activation to the last good state, or completes a
 * deactivation. Undefined if nothing had been cut off. The caller holds the lock.
 */
export async function recover(
  store: Store,
  { root, report, dryRun }: RecoveryOptions,
): Promise<Recovered | undefined> {
  if (!dryRun) await store.sweep();
  const [journal, last] = [await store.readJournal(), await store.readState()];
  if (journal === undefined) {
    if (!dryRun) await store.closeJournal();
    return undefined;
  }
  const { kind } = journal;
  const what = `the ${kind} of ${journal.startedAt} was cut off`;
  if (dryRun) {
    report(`${what}: the next activation repairs this first; its steps may then differ`);
    return undefined;
  }
  if (journal.id === last?.id) {
    report(`${what} when its deployment served: finishing it`);
    await finish(store, last, report);
    return undefined;
  }
  const removing = kind === "deactivation";
  report(`${what}: ${removing ? "carrying on" : "rolling back"}`);
  const good = removing ? undefined : last;
  const problems = await rollBack(store, journal, good, changesServices(root), report);
  if ((await store.readJournal()) !== undefined) throw new ProblemError(problems);
  // It ran with the uploaded programs.
  if (changesServices(root) && good !== undefined) await store.writeCommand(programsOf(good.deployment));
  for (const p of problems) report(`  ${p.path}: ${p.message}`);
  return { kind, problems };
}

/** The same on its own, for the unit that runs at boot while a journal is open. */
export async function recoverHost({
  root,
  report,
  lockSeconds,
}: Pick<RecoveryOptions, "root" | "report"> & { readonly lockSeconds: number }): Promise<
  Recovered | undefined
> {
  const store = openStore(root);
  return withLock(store.lock, { what: "recovery" }, { lockSeconds, report }, async () => {
    const recovered = await recover(store, { root, report, dryRun: false });
    if (recovered?.kind === "deactivation") await store.remove();
    return recovered;
  });
}
