import type { Deployment } from "../../model/index.js";
import { DOCTOR_UNIT } from "../../render/doctorUnits.js";
import { readTrustedSync } from "../../runtime/files/trustedFile.js";
import { brokenProgram } from "../diagnosis/system/brokenPrograms.js";
import type { EvidenceFinding } from "../diagnosis/evidence.js";
import { showUnits, type ShownUnit, startsWithHost } from "../diagnosis/system/shownUnits.js";
import type { LoadedByHost } from "./loaded.js";
import type { WantedUnit } from "./serviceSteps.js";
import type { Store } from "./store.js";
import { statusOf } from "./systemctl.js";
import { deliveredUnits, wantedUnits } from "./transition.js";
import { readdirSync, readFileSync } from "node:fs";

/** How units differ from what a deployment wants of them. The list of what it wants is the one of an activation. */
export async function unitFindings(
  deployment: Deployment,
  { units }: LoadedByHost,
  { store, again }: { readonly store: Store; readonly again: string },
): Promise<EvidenceFinding[]> {
  const delivered = new Map(deliveredUnits(deployment.files).map(({ unit, file }) => [unit, file.path]));
  const dropIns = new Set(deployment.files.map(({ path }) => path));
  const wanted = await wantedUnits({ deployment, contents: contentsOf(store, deployment) });
  const shown = await showUnits(
    [...wanted.keys()].filter((unit) => !delivered.has(unit)),
    SHOW_SECONDS,
  );
  const others = "code" in shown ? [] : shown;
  const own = (units ?? []).flatMap((unit) => [
    ...ownFindings(unit, delivered.get(unit.unit)!, dropIns, again),
    ...stateFindings(unit, wanted.get(unit.unit), deployment),
  ]);
  return [
    ...own,
    ...others.flatMap((unit) => stateFindings(unit, { active: true, enabled: true }, deployment)),
  ];
}

/** Unit files as they were delivered; where the store has lost one, the file on the host. */
function contentsOf(store: Store, { files }: Deployment): ReadonlyMap<string, string> {
  return new Map(
    files.flatMap(({ path, sha256 }): [string, string][] => {
      const from = [store.blob(sha256), store.onHost(path)].find(isRead);
      return from === undefined ? [] : [[sha256, from]];
    }),
  );
}

/** A file that is missing, or that is not read, has findings of its own. */
function isRead(path: string): boolean {
  try {
    return readTrustedSync(path).length > 0;
  } catch {
    return false;
  }
}

/**
 * Differences of a deployed unit: it should be loaded from its own file, in its current version, with nothing added.
 */
function ownFindings(
  { unit, load, outdated, fragment, dropIns }: ShownUnit,
  file: string,
  delivered: ReadonlySet<string>,
  fix: string,
): EvidenceFinding[] {
  const foreign = dropIns.filter((path) => !delivered.has(path) && path.includes(`/${unit}.d/`));
  return [
    ...(outdated ? [{ at: unit, what: "its files have changed since systemd read them", fix }] : []),
    ...(load === "loaded" && fragment !== file
      ? [{ at: unit, what: `is loaded from ${fragment}`, fix: `rm ${fragment}, then ${fix}` }]
      : []),
    ...foreign.map((path) => ({
      at: unit,
      what: `${path} adds to the unit, but is not part of the deployment`,
      fix: `rm ${path}, then ${fix}`,
    })),
  ];
}

/** Differences in what a unit does: it should run, now and after the next boot, and its processes should go on. */
function stateFindings(
  shown: ShownUnit,
  want: WantedUnit | undefined,
  deployment: Deployment,
): EvidenceFinding[] {
  const { unit, load, startLinks } = shown;
  const { proxy, firewall } = deployment.services;
  const isOfProxy = unit === proxy.service || unit === proxy.socket;
  const halted = haltedFindings(shown);
  // Rows of their own: whether these run, and whether the proxy starts with the host.
  if (isOfProxy) return [...lostProgram(shown, want, deployment), ...halted];
  const starts = want?.enabled === true;
  const runs = want?.active === true && unit !== firewall;
  if (load === "masked")
    return [
      { at: unit, what: "is masked", fix: `systemctl unmask ${unit} && systemctl enable --now ${unit}` },
    ];
  if (load === "not-found") return [{ at: unit, what: "does not exist", fix: `Install ${unit} again` }];
  const lost = lostProgram(shown, want, deployment);
  if (lost.length > 0) return lost;
  // The doctor's unit fails if its last run found a problem.
  if (shown.active === "failed" && unit !== DOCTOR_UNIT)
    return [{ at: unit, what: "has failed", fix: `systemctl restart ${unit}; journalctl -u ${unit}` }];
  const isEnabled = !starts || startsWithHost(startLinks);
  const links = startLinks || "not enabled";
  if (runs && !statusOf(shown).active) {
    const also = isEnabled ? "" : `, and ${links}: it does not start at boot`;
    const what = `is ${stateOf(shown)}: it should run${also}`;
    return [{ at: unit, what, fix: `systemctl ${isEnabled ? "start" : "enable --now"} ${unit}` }];
  }
  return [
    ...halted,
    ...(isEnabled
      ? []
      : [
          {
            at: unit,
            what: `is ${links}: it does not start at boot`,
            fix: `systemctl enable --now ${unit}`,
          },
        ]),
  ];
}

const stateOf = ({ active, sub }: ShownUnit): string =>
  sub.startsWith("auto-restart") ? "waiting to be started again" : active;

/** A program that was removed runs on, and does not start again. Delivered programs have findings as files. */
function lostProgram(
  { unit, command }: ShownUnit,
  want: WantedUnit | undefined,
  { files }: Deployment,
): EvidenceFinding[] {
  const [program = ""] = command.split(" ");
  const isOfHost = program.startsWith("/") && !files.some(({ path }) => path === program);
  const broken = want?.active === true && isOfHost ? brokenProgram(program) : undefined;
  if (broken === undefined) return [];
  const what = `its program ${program} ${broken.what}: it cannot start`;
  return [{ at: unit, what, fix: `${broken.fix}, then systemctl restart ${unit}` }];
}

function haltedFindings({ unit, group, freezer }: ShownUnit): EvidenceFinding[] {
  if (freezer === "frozen")
    return [{ at: unit, what: "is frozen (systemctl freeze)", fix: `systemctl thaw ${unit}`, stalls: true }];
  const pids = stoppedProcesses(group);
  if (pids.length === 0) return [];
  const what = `its process ${pids.join(" and ")} was stopped by a signal, and does nothing`;
  return [{ at: unit, what, fix: `systemctl kill --signal=SIGCONT ${unit}`, stalls: true }];
}

const SHOW_SECONDS = 30;

/** Processes of a control group, and of the groups below it, that a signal has stopped (SIGSTOP): they do nothing. */
function stoppedProcesses(group: string): number[] {
  return group === "" || group === "/" ? [] : processesOf(group).filter(isStopped);
}

/** The places of systemd's control groups: version 2, or beside version 1. */
const ROOTS = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd"];

/** Processes of a control group, and of the groups below it. */
function processesOf(group: string): number[] {
  for (const root of ROOTS) {
    const found = listed(`${root}${group}`);
    if (found !== undefined) return found;
  }
  return [];
}

function listed(directory: string): number[] | undefined {
  try {
    const own = readFileSync(`${directory}/cgroup.procs`, "utf8").split("\n").filter(Boolean).map(Number);
    const below = readdirSync(directory, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    return [...own, ...below.flatMap(({ name }) => listed(`${directory}/${name}`) ?? [])];
  } catch {
    // It ended meanwhile, or the groups are elsewhere.
    return undefined;
  }
}

function isStopped(pid: number): boolean {
  try {
    // The name, in brackets, may contain anything.
    return /\) [Tt] /.test(readFileSync(`/proc/${pid}/stat`, "latin1"));
  } catch {
    return false;
  }
}
