import { lstat, mkdir, readdir, readFile, rm, utimes } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import type { DefaultRoute } from "../diagnosis/defaultRoutes.js";
import type { ModeChange } from "../diagnosis/treePermissions.js";
import {
  type DeployedFile,
  type Deployment,
  DEPLOYMENT_FILE,
  DEPLOYMENT_STORE,
  type DeploymentIdentity,
  type FileRole,
  INCOMING_DIRECTORY,
  otherDeployment,
  problem,
  ProblemError,
} from "../../model/index.js";
import { COMMAND_SCRIPT } from "../../render/programScripts.js";
import {
  currentUser,
  isTemporary,
  makeDirectory,
  placeBytes,
  placeCopy,
  placeText,
  removeFile,
  removeIfEmpty,
  placeLink,
} from "./durableFiles.js";
import { type FileState, hashOf, isLacking } from "./fileState.js";
import { type Programs, runningPrograms } from "./programs.js";
import { systemdIsHere } from "./systemctl.js";
import type { SettingsEditRecord } from "../applicationSettings/index.js";
import { DEFAULT_HOST_PATHS } from "../../render/hostPaths.js";
import { renderUnit } from "../../render/systemdUnit.js";
import { sync } from "../../runtime/files/durable.js";
import { OOM_SCORE_ADJUST, RECORDS } from "./detached.js";

/** A state that a host was brought to, and in which it was seen to serve. */
export interface GoodState {
  readonly version: 1;
  /** The activation that made it. */
  readonly id: string;
  readonly activatedAt: string;
  /** Whose it is; absent if it was activated by hand, without an identity. */
  readonly identity?: DeploymentIdentity;
  readonly deployment: Deployment;
  /** Hash of the deployment document. */
  readonly document: string;
  /** The state of each path before the first deployment; `unknown` if the delivery had already written there. */
  readonly before: Readonly<Record<string, FileState | "unknown">>;
  /** Directories that were made. */
  readonly directories: readonly string[];
  /** Edits of the application's own files: one for each item, with its state before the first deployment. */
  readonly settings: readonly SettingsEditRecord[];
  /** The default routes that the host had while it was seen to serve. */
  readonly defaultRoutes?: readonly DefaultRoute[];
  /** Served directories that had something in them. */
  readonly filled?: readonly string[];
  /** Permissions of trees that were set, with the permissions before the first deployment. */
  readonly modes?: readonly ModeChange[];
  /** What earlier deployments did to the application's own files and this one no longer wants, until it is undone. */
  readonly leaving?: Leaving;
}

/** Edits and permissions that are no longer wanted. */
export interface Leaving {
  readonly settings: readonly SettingsEditRecord[];
  readonly modes: readonly ModeChange[];
  /** Daemons that read the edited files and are to run, in the order in which they start. */
  readonly daemons: readonly string[];
}

interface Logs {
  readonly version: 1;
  readonly paths: readonly string[];
}

/** A running activation, and everything needed to undo it; or a deactivation, and everything needed to finish it. */
export interface Journal {
  readonly version: 1;
  readonly kind: "activation" | "deactivation";
  readonly id: string;
  readonly startedAt: string;
  /** Every path that changes, with the state that a roll-back restores. */
  readonly files: readonly JournaledFile[];
  /** Directories that it makes. */
  readonly directories: readonly string[];
  /** Whether logs and certificates by ACME are removed as well. */
  readonly purge?: boolean;
  /** Edits of the application's own files. */
  readonly settings: readonly SettingsEditRecord[];
  /** Permissions of trees that it changes. */
  readonly modes?: readonly ModeChange[];
  /** Units that it may touch, as a roll-back should leave them. */
  readonly units: Readonly<Record<string, { readonly active: boolean; readonly enabled: boolean }>>;
  /** The deployment that was being activated. */
  readonly deployment: Deployment;
}

export interface JournaledFile {
  readonly path: string;
  readonly role: FileRole;
  /** The state that a roll-back restores. */
  readonly restore: FileState;
}

/**
 * The files that activation stores on a host, below `/var/lib/portico/deployment`, for root only:
 *
 *     state.json     the last good state
 *     journal.json   the activation in progress; exists only while the host is between two states
 *     logs.json      logs that the deployments of this host may have written, also those that were rolled back
 *     blobs/         contents by their SHA-256: of the last good state, of the state before Portico, and for a week of the
 *                    states between
 *     staging/       the new files as they will be, to be checked
 *     command        runs portico with the programs that `programs` names
 *     run/           programs of a deactivation, which removes the installed ones
 *
 * Next to it are `lock`, and `incoming/` with a directory for the uploads of each deployment.
 */
export class Store {
  readonly directory: string;

  /** @param root folder to use as the host's `/` */
  constructor(readonly root: string) {
    this.directory = join(root, DEPLOYMENT_STORE);
  }

  /** Outside the directory, because a deactivation removes that while others wait. */
  get lock(): string {
    return join(dirname(this.directory), "lock");
  }

  at(...names: string[]): string {
    return join(this.directory, ...names);
  }

  /** A path of the host below the root. */
  onHost(path: string): string {
    return join(this.root, path);
  }

  async prepare(): Promise<void> {
    await mkdir(dirname(this.directory), { recursive: true });
    await makeDirectory(this.directory, "0700");
    await makeDirectory(this.at("blobs"), "0700");
  }

  /** Removes half-written files that a killed process has left. */
  async sweep(): Promise<void> {
    for (const directory of [this.directory, this.at("blobs")]) {
      const names = await readdir(directory).catch((error: NodeJS.ErrnoException) => {
        if (error.code === "ENOENT") return [];
        throw error;
      });
      for (const name of names.filter(isTemporary)) await rm(join(directory, name), { force: true });
    }
  }

  readState(): Promise<GoodState | undefined> {
    return this.read<GoodState>("state.json");
  }

  readJournal(): Promise<Journal | undefined> {
    return this.read<Journal>("journal.json");
  }

  writeState(state: GoodState): Promise<void> {
    return placeText(this.at("state.json"), JSON.stringify(state));
  }

  /** Paths of logs that deployments may have written: this one, earlier ones, and those that were rolled back. */
  async readLogs(): Promise<readonly string[]> {
    return (await this.read<Logs>("logs.json", "Remove the file and activate again."))?.paths ?? [];
  }

  writeLogs(paths: readonly string[]): Promise<void> {
    return placeText(this.at("logs.json"), JSON.stringify({ version: 1, paths } satisfies Logs));
  }

  /** While it is open, a host that boots is repaired by it. */
  async writeJournal(journal: Journal): Promise<void> {
    if (changesServices(this.root)) await placeBootUnit(Object.keys(journal.units));
    await placeText(this.at("journal.json"), JSON.stringify(journal));
  }

  async closeJournal(): Promise<void> {
    await removeFile(this.at("journal.json"));
    if (changesServices(this.root)) await removeBootUnit();
  }

  /** Makes `command` run portico with these programs. */
  async writeCommand(programs: Programs): Promise<void> {
    // Each path has its line: paths are never part of a script.
    await placeText(this.at("programs"), programs.map((path) => `${path}\n`).join(""));
    await placeBytes(this.at("command"), Buffer.from(COMMAND_SCRIPT), { mode: "0700", ...currentUser() });
  }

  /** The programs that `command` runs; undefined if it is not as it was written. */
  async commandPrograms(): Promise<Programs | undefined> {
    try {
      const programs = (await readFile(this.at("programs"), "utf8")).trimEnd().split("\n");
      const { mode } = await lstat(this.at("command"));
      const text = await readFile(this.at("command"), "utf8");
      const isWhole = text === COMMAND_SCRIPT && (mode & 0o100) !== 0 && programs.length === 2;
      return isWhole ? (programs as unknown as Programs) : undefined;
    } catch {
      return undefined;
    }
  }

  /** Path of a blob; `has` checks that it exists and is intact. */
  blob(sha256: string): string {
    return this.at("blobs", sha256);
  }

  async has(sha256: string): Promise<boolean> {
    return (await hashOf(this.blob(sha256)).catch(() => "")) === sha256;
  }

  /** Keeps a copy of a file. */
  async keep(source: string, sha256: string): Promise<void> {
    if (await this.has(sha256)) return;
    await placeCopy(source, this.blob(sha256), { mode: "0600", ...currentUser() });
    if (await this.has(sha256)) return;
    const message = "changed while it was copied";
    throw new ProblemError([problem("activation.file-failed", source, message, { fix: "Try again." })]);
  }

  /**
   * Removes contents that no document names: uploads that the host has now, contents that have not been needed for
   * {@link KEPT_MS}, and uploads as old, which an apply has abandoned. Another apply of the same deployment may be under
   * way. It has uploaded what it changes, and relies on finding here what was in place when it began.
   * @param last the state before this one
   */
  async collectGarbage(
    state: GoodState,
    last: GoodState | undefined,
    incoming: string | undefined,
  ): Promise<void> {
    const states = last === undefined ? [state] : [state, last];
    const wanted = namesOf([...keptFiles(state), ...contentsBefore(state).map(([, before]) => before)]);
    const replaced = namesOf(last === undefined ? [] : keptFiles(last));
    // Large, and kept only for a roll-back.
    const nodes = namesOf(
      states.flatMap(({ deployment }) => deployment.files.filter(({ role }) => role === "node")),
    );
    for (const name of await readdir(this.at("blobs"))) {
      const blob = this.at("blobs", name);
      if (wanted.has(name)) continue;
      if (replaced.has(name)) await utimes(blob, new Date(), new Date());
      else if (nodes.has(name) || (await isOld(blob))) await rm(blob, { force: true });
    }
    await rm(this.at("run"), { recursive: true, force: true });
    if (incoming === undefined) return;
    const delivered = namesOf(filesOf(state.deployment, state.document));
    for (const name of await readdir(incoming)) {
      const upload = /^([0-9a-f]{64})(?:\..*)?$/.exec(name);
      const path = join(incoming, name);
      const isOurs = upload !== null || /^run\.|\.sh$/.test(name);
      if ((upload !== null && delivered.has(upload[1]!)) || (isOurs && (await isOld(path))))
        await rm(path, { recursive: true, force: true });
    }
    // The uploads of other deployments, whose names are in no state any more.
    const all = this.onHost(INCOMING_DIRECTORY);
    for (const name of await readdir(all).catch(() => [])) {
      if (name !== basename(incoming) && (await isOld(join(all, name))))
        await rm(join(all, name), { recursive: true, force: true });
    }
  }

  /** Forgets the last good state. */
  forget(): Promise<void> {
    return removeFile(this.at("state.json"));
  }

  /** Removes everything, the lock included. */
  async remove(): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
    await rm(this.lock, { force: true });
    await removeIfEmpty(dirname(this.directory));
  }

  private async read<T extends { version: number }>(name: string, fix?: string): Promise<T | undefined> {
    const text = await readFile(this.at(name), "utf8").catch((error: NodeJS.ErrnoException) => {
      if (isLacking(error)) return undefined;
      throw error;
    });
    if (text === undefined) return undefined;
    try {
      const value = JSON.parse(text) as T;
      if (value.version === 1) return value;
    } catch {
      // Reported below.
    }
    const message = "was not written by this release of portico";
    const at = this.at(name);
    throw new ProblemError([problem("activation.damaged-store", at, message, { ...(fix && { fix }) })]);
  }
}

/** An apply that was planned on an earlier state, or that failed, may be run for so long. */
const KEPT_MS = 7 * 24 * 3_600_000;

const namesOf = (files: readonly { readonly sha256: string }[]): ReadonlySet<string> =>
  new Set(files.map(({ sha256 }) => sha256));

const isOld = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(() => undefined);
  return found !== undefined && Date.now() - found.mtimeMs > KEPT_MS;
};

/** Whether units are touched: with any root other than the host's own there are only files. */
export const changesServices = (root: string): boolean => root === "/";

/** Refuses a host that cannot be changed by this process. Makes nothing: that is for an activation, which has the lock. */
export function openStore(root: string): Store {
  if (changesServices(root)) {
    if (process.geteuid!() !== 0) {
      throw new ProblemError([problem("activation.not-root", "", "only root can change the host")]);
    }
    if (!systemdIsHere()) {
      throw new ProblemError([problem("activation.no-systemd", "/run/systemd/system", "does not exist")]);
    }
  }
  return new Store(root);
}

/** Every file of a deployment, the document itself at the end. */
export function filesOf(deployment: Deployment, document: string): readonly DeployedFile[] {
  return [...deployment.files, { path: DEPLOYMENT_FILE, mode: "0640", sha256: document, role: "other" }];
}

/**
 * Files of a good state whose contents the store keeps. Node is large, and the installed file is the only copy: a
 * broken one is replaced by a new delivery.
 */
export function keptFiles({
  deployment,
  document,
}: Pick<GoodState, "deployment" | "document">): readonly DeployedFile[] {
  return filesOf(deployment, document).filter(({ role }) => role !== "node");
}

/** Files that were there before the first deployment, by their paths. */
export function contentsBefore({ before }: GoodState): [path: string, FileState & { kind: "file" }][] {
  return Object.entries(before).flatMap(([path, state]): [string, FileState & { kind: "file" }][] =>
    typeof state === "object" && state.kind === "file" ? [[path, state]] : [],
  );
}

/** Every file of a good state, as it was. */
export function goodFiles({ deployment, document }: GoodState): { path: string; state: FileState }[] {
  return filesOf(deployment, document).map((file) => ({ path: file.path, state: stateOf(file) }));
}

/** A deployed file as it is on the host. */
export function stateOf(file: DeployedFile): FileState {
  return { kind: "file", sha256: file.sha256, mode: file.mode, ...OWNER };
}

/** Deployed files belong to root; below a folder, to the user who runs the activation. */
const OWNER = currentUser();

type Owned = Pick<GoodState, "identity">;

/**
 * Refuses a host that has another deployment: it would be replaced, and its next apply or destroy would then remove this
 * one. A run without an identity, by hand, is for whichever deployment is there.
 */
export function refuseOther(
  last: Owned | undefined,
  { identity, takeOver = false }: { readonly identity?: DeploymentIdentity; readonly takeOver?: boolean },
): void {
  if (takeOver || identity === undefined || !isOther(last, identity.id)) return;
  throw new ProblemError([otherDeployment(identity, last!.identity!.construct)]);
}

/** Whether a host has another deployment; not if it has none, or one without an identity. */
export function isOther(last: Owned | undefined, id: string): boolean {
  return last?.identity !== undefined && last.identity.id !== id;
}

/** Whether two states say the same about whose they are, the name for messages included. */
export function sameIdentity(one: Owned, other: Owned): boolean {
  return one.identity?.id === other.identity?.id && one.identity?.construct === other.identity?.construct;
}

/**
 * While a journal is open, a unit on the disk makes the next boot repair the host. After a power failure, daemons would
 * otherwise start, or fail to start, with the files of two deployments until the next deployment.
 */

const NAME = "portico-recovery.service";
const UNIT = `${DEFAULT_HOST_PATHS.unitDirectory}/${NAME}`;
const WANTS = `${DEFAULT_HOST_PATHS.unitDirectory}/multi-user.target.wants`;

/**
 * Installs it. systemd reads it at boot, so no reload is needed now.
 * @param units units that a recovery stops and starts
 */
async function placeBootUnit(units: readonly string[]): Promise<void> {
  const programs = runningPrograms();
  // They were just uploaded, and may not be on the disk yet.
  for (const path of programs) await sync(path);
  const bytes = Buffer.from(bootUnit(programs, units));
  await placeBytes(UNIT, bytes, { mode: "0644", uid: 0, gid: 0 });
  await makeDirectory(WANTS);
  await placeLink(`${WANTS}/${NAME}`, `../${NAME}`);
}

/** Removes the unit. A unit that stays does nothing without a journal, and the next run removes it. */
async function removeBootUnit(): Promise<void> {
  try {
    await removeFile(`${WANTS}/${NAME}`);
    await removeIfEmpty(WANTS);
    await removeFile(UNIT);
  } catch {
    // A read-only file system, for example.
  }
}

export function bootUnit(programs: Programs, units: readonly string[]): string {
  return renderUnit({
    Unit: {
      Description: "portico finishes or undoes an activation that was cut off",
      ConditionPathExists: `${DEPLOYMENT_STORE}/journal.json`,
      RequiresMountsFor: DEPLOYMENT_STORE,
      // The boot's own jobs first: a daemon that started in between would run with files that are then replaced.
      After: ["network.target", "remote-fs.target", ...units].join(" "),
      StartLimitIntervalSec: 0,
    },
    Service: {
      // No unit waits for it, and so it can start units.
      Type: "exec",
      ExecStart: { command: [...programs, "recover", "--record", `${RECORDS}/boot.record`] },
      RuntimeDirectory: RECORDS.slice("/run/".length),
      RuntimeDirectoryMode: "0700",
      RuntimeDirectoryPreserve: true,
      Restart: "on-abnormal",
      RestartSec: 1,
      OOMScoreAdjust: OOM_SCORE_ADJUST,
      KillMode: "mixed",
      TimeoutStopSec: 900,
    },
    Install: { WantedBy: "multi-user.target" },
  });
}
