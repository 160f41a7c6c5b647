import { randomUUID } from "node:crypto";
import { dirname } from "node:path";
import type { Problem } from "../../model/index.js";
import { READY_FILE } from "../../render/keepalived.js";
import { FORMER_ROTATION_FILE } from "../../render/logRotation.js";
import type { ActivationOptions } from "./activate.js";
import { editsOf, modesOf } from "./leaving.js";
import { withLock } from "./lock.js";
import { removeFile, removeLinkedIfEmpty } from "./durableFiles.js";
import { installedConfig, valueIn } from "./loaded.js";
import { rememberLogs } from "./logs.js";
import { runningPrograms } from "./programs.js";
import { recover } from "./recovery.js";
import { purge, rollBack } from "./rollBack.js";
import {
  changesServices,
  filesOf,
  type GoodState,
  isOther,
  type Journal,
  openStore,
  type Store,
} from "./store.js";
import { deliveredUnits, cameByDeployment, statusOf, unitsInQuestion } from "./transition.js";

export interface DeactivationOptions extends Pick<ActivationOptions, "root" | "lockSeconds" | "report"> {
  /** Whether the proxy's logs and its certificates by ACME are removed as well. */
  readonly purge: boolean;
  /** Id of the only deployment that may be removed; without one, whichever is there. */
  readonly identity?: string;
}

export interface Deactivated {
  /** Nothing is removed if there is no deployment, or only the one of the construct in `keptOf`. */
  readonly removed: "all" | "nothing" | { readonly keptOf: string };
  /** Problems of steps that failed. */
  readonly problems: readonly Problem[];
}

/**
 * Removes a deployment: its services stop, every file becomes what it was before Portico was deployed, and edits of the
 * application's settings are undone unless the item was changed since. Does as much as possible and returns the
 * problems. A deployment that took the place of this one stays.
 */
export async function deactivate(options: DeactivationOptions): Promise<Deactivated> {
  const store = openStore(options.root);
  const systemd = changesServices(options.root);
  return withLock(store.lock, { what: "deactivation" }, options, async () => {
    const found = await store.readState();
    if (options.identity !== undefined && isOther(found, options.identity)) {
      return { removed: { keptOf: found!.identity!.construct }, problems: [] };
    }
    if (options.purge) await purgeToo(store);
    const recovered = await recover(store, { ...options, dryRun: false });
    const last = await store.readState();
    if (last === undefined) {
      // A first activation that failed leaves no state, but its proxy may have had logs, an account and certificates.
      const left = options.purge ? await purge(store, options.report) : [];
      await removeAll(store);
      const problems = [...(recovered?.problems ?? []), ...left];
      return { removed: recovered === undefined && left.length === 0 ? "nothing" : "all", problems };
    }
    await rememberLogs(store, valueIn(await installedConfig(store, last.deployment)));
    const journal = { ...(await takingAway(last, systemd)), purge: options.purge };
    // The installed programs are removed below.
    if (systemd) await store.writeCommand(runningPrograms());
    await store.writeJournal(journal);
    const problems = await rollBack(store, journal, undefined, systemd, options.report);
    if ((await store.readJournal()) === undefined) await removeAll(store);
    return { removed: "all", problems };
  });
}

/** Removes the rest once all files and units are gone. */
async function removeAll(store: Store): Promise<void> {
  await removeFile(store.onHost(FORMER_ROTATION_FILE));
  await store.remove();
  // A runtime directory of a dynamic user that stays over restarts has a link, which systemd leaves behind.
  await removeLinkedIfEmpty(store.onHost(dirname(READY_FILE)));
}

/** Makes a deactivation that was cut off purge, whatever its original options. */
async function purgeToo(store: Store): Promise<void> {
  const journal = await store.readJournal();
  if (journal?.kind === "deactivation") await store.writeJournal({ ...journal, purge: true });
}

/** A journal whose roll-back leads to the host as it was before the first activation. */
async function takingAway(last: GoodState, systemd: boolean): Promise<Journal> {
  const units = await statusOf(unitsInQuestion(last.deployment), systemd);
  const ours = new Set(
    deliveredUnits(last.deployment.files)
      .filter(({ file }) => cameByDeployment(last, file.path))
      .map(({ unit }) => unit),
  );
  return {
    version: 1,
    kind: "deactivation",
    id: randomUUID(),
    startedAt: new Date().toISOString(),
    files: filesOf(last.deployment, last.document).flatMap(({ path, role }) => {
      const before = last.before[path] ?? "unknown";
      // The delivery that wrote the file in place also removes it.
      return before === "unknown" ? [] : [{ path, role, restore: before }];
    }),
    directories: last.directories,
    settings: editsOf(last),
    modes: modesOf(last),
    units: Object.fromEntries(
      [...units].map(([unit, { active, enabled }]) => [
        unit,
        ours.has(unit) ? { active: false, enabled: false } : { active, enabled },
      ]),
    ),
    deployment: last.deployment,
  };
}
