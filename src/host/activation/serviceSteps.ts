import { READERS_OF_HOST, type DeploymentServices, type FileRole } from "../../model/deployment.js";
import type { UnitAction, UnitStatus } from "./systemctl.js";

/** A thing that is done to a host; `files` stands for all files at once. */
export type ActivationStep =
  | { readonly do: "files" }
  | { readonly do: "daemon-reload" }
  | { readonly do: "network-reload" }
  | { readonly do: "upgrade"; readonly unit: string }
  | { readonly do: UnitAction; readonly unit: string };

/** Reloads and restarts that are needed because the loaded state differs from the installed files. */
export interface StaleState {
  /** Our units that systemd has to read again, and those that have to restart with it. */
  readonly units: ReadonlySet<string>;
  /** Whether systemd has to read units again. */
  readonly manager: boolean;
  /** The operation with which the running proxy loads its installed files. */
  readonly proxy: "nothing" | "reload" | "upgrade";
}

/** The input from which the steps are computed. */
export interface Situation {
  readonly services: DeploymentServices;
  /** Files that change; for removed files, the role they had. */
  readonly changed: readonly { readonly path: string; readonly role: FileRole }[];
  /** The application's own files that are edited. */
  readonly settings: ReadonlySet<string>;
  /** Whether only the host in the application's URLs changes (service 2.7). */
  readonly domainOnly: boolean;
  /** Whether a reload applies the change of the proxy's unit. */
  readonly reloadable: boolean;
  /** Every unit in question, as it is. */
  readonly now: ReadonlyMap<string, UnitStatus>;
  /** Units as they should be; all others stay as they are. */
  readonly wanted: ReadonlyMap<string, WantedUnit>;
  /** Set if the loaded state differs from the installed files. */
  readonly stale?: StaleState;
}

export interface WantedUnit {
  readonly active: boolean;
  /** undefined: as it is. */
  readonly enabled?: boolean;
}

/**
 * The steps from here to there, in the order of service 2.6: daemons down, the last one first; edits; daemon-reload;
 * daemons up, the first one first; the proxy last. Only services that a change affects (service 2.5) are touched.
 */
export function serviceSteps(given: Situation): ActivationStep[] {
  const { changed, settings } = given;
  const has = (...roles: FileRole[]): boolean => changed.some(({ role }) => roles.includes(role));
  const affected = affectedUnits(given);
  const unsettled = unsettledUnits(given, affected, has);
  const situation = { ...given, now: stopped(given.now, unsettled) };
  const before = [
    ...goingAway(situation),
    ...stopDaemons(situation, affected),
    ...unsettled.map((unit) => ({ do: "stop", unit }) as const),
  ];
  const edit: ActivationStep[] = changed.length > 0 || settings.size > 0 ? [{ do: "files" }] : [];
  const after: ActivationStep[] = [
    // A drop-in may have the role of the file it belongs to.
    ...(has("unit") || changed.some(({ path }) => isDropIn(path)) || situation.stale?.manager === true
      ? [{ do: "daemon-reload" } as const]
      : []),
    ...forget(situation),
    ...(has("network") ? [{ do: "network-reload" } as const] : []),
    ...enabling(situation, affected),
    ...reloadSteps(situation, situation.services.firewall, affected, has("firewall")),
    ...startDaemons(situation, affected),
    ...otherUnits(situation, affected),
    ...reloadSteps(situation, situation.services.keepalived, affected, has("keepalived")),
    ...proxySteps(situation, affected, has),
    ...readerSteps(situation, has),
  ];
  return [...before, ...edit, ...after];
}

/** Roles of files that the proxy reads: a change of one reloads, upgrades or restarts it. */
export const PROXY_ROLES: readonly FileRole[] = ["config", "tls", "page", "runtime", "node"];

/** The unit that a unit file, or a drop-in, belongs to. */
export function unitOf(path: string): string {
  const [name = "", directory = ""] = path.split("/").reverse();
  return isDropIn(path) ? directory.slice(0, -".d".length) : name;
}

/** Whether a file adds to a unit, as `web.service.d/portico.conf` does to `web.service`. */
export function isDropIn(path: string): boolean {
  return /\.(?:service|socket|timer|path|target)\.d\/[^/]+\.conf$/.test(path);
}

/** Whether a file is the own one of a unit, not a drop-in. */
export const isUnit = (path: string, unit: string): boolean => path.endsWith(`/${unit}`);

/** Which change affects which component (service 2.5). */
function affectedUnits({ services, changed, settings, stale, reloadable }: Situation): Set<string> {
  const units = changed
    .filter(({ role, path }) => role === "unit" && !(reloadable && isUnit(path, services.proxy.service)))
    .map(({ path }) => unitOf(path));
  return new Set([...units, ...(stale?.units ?? []), ...settingsReaders(services, settings)]);
}

/** Units of the daemons that read one of the settings files. */
export function settingsReaders({ daemons = [] }: DeploymentServices, files: ReadonlySet<string>): string[] {
  return daemons
    .filter(({ restartOn = [] }) => restartOn.some((file) => files.has(file)))
    .map(({ unit }) => unit);
}

/** Daemons in the order in which they stop; they start in the reverse one. */
const daemons = ({ services }: Situation): string[] =>
  (services.daemons ?? []).map(({ unit }) => unit).toReversed();

/** Daemons that do not stop before the edits. */
const runningOn = ({ domainOnly, services }: Situation): string[] =>
  (domainOnly ? (services.daemons ?? []) : [])
    .filter(({ domainChange }) => domainChange === "restart")
    .map(({ unit }) => unit);

function known(situation: Situation): string[] {
  const { proxy, firewall, keepalived } = situation.services;
  const others = [firewall, keepalived, ...Object.values(READERS_OF_HOST)].filter(
    (unit) => unit !== undefined,
  );
  return [...daemons(situation), proxy.service, proxy.socket, ...others];
}

function goingAway(situation: Situation): ActivationStep[] {
  const { now, wanted } = situation;
  const others = [...wanted.keys()].filter((unit) => !known(situation).includes(unit));
  return [...others, ...known(situation)].flatMap((unit): ActivationStep[] => {
    const want = wanted.get(unit);
    return [
      ...(want?.active === false && isStoppable(now.get(unit)) ? [{ do: "stop", unit } as const] : []),
      ...(want?.enabled === false && now.get(unit)?.enabled === true
        ? [{ do: "disable", unit } as const]
        : []),
    ];
  });
}

/** Whether a stop ends anything: also a start that is under way, or the next one of a crash loop. */
const isStoppable = (status?: UnitStatus): boolean => status?.active === true || status?.unsettled === true;

/**
 * Units that change while they start, or while systemd waits to start them again (a crash loop alternates between
 * both). Such a unit cannot reload, and a start would join the job that began with the old files: it is stopped first.
 */
function unsettledUnits(
  situation: Situation,
  affected: ReadonlySet<string>,
  has: (...roles: FileRole[]) => boolean,
): string[] {
  const { proxy } = situation.services;
  const proxyChanges = affected.has(proxy.service) || affected.has(proxy.socket) || has(...PROXY_ROLES);
  return [...daemons(situation), proxy.service].filter((unit) => {
    const status = situation.now.get(unit);
    if (status?.unsettled !== true || situation.wanted.get(unit)?.active !== true) return false;
    return !status.active || (unit === proxy.service && proxyChanges);
  });
}

function stopped(now: Situation["now"], units: readonly string[]): Situation["now"] {
  return new Map(
    [...now].map(([unit, status]) => [unit, units.includes(unit) ? { ...status, active: false } : status]),
  );
}

function stopDaemons(situation: Situation, affected: ReadonlySet<string>): ActivationStep[] {
  const { now } = situation;
  return daemons(situation)
    .filter((unit) => affected.has(unit) && now.get(unit)?.active === true)
    .filter((unit) => !isLeaving(situation, unit))
    .filter((unit) => !runningOn(situation).includes(unit))
    .map((unit) => ({ do: "stop", unit }));
}

const isLeaving = ({ wanted }: Situation, unit: string): boolean => wanted.get(unit)?.active === false;

/** A unit that failed keeps its state until that is reset, and may refuse to start because it failed too often. */
function forget({ now, wanted }: Situation): ActivationStep[] {
  return [...wanted.keys()]
    .filter((unit) => now.get(unit)?.failed === true)
    .map((unit) => ({ do: "reset-failed", unit }));
}

function enabling({ now, wanted }: Situation, affected: ReadonlySet<string>): ActivationStep[] {
  return [...wanted].flatMap(([unit, { enabled }]): ActivationStep[] => {
    if (enabled !== true) return [];
    if (now.get(unit)?.enabled !== true) return [{ do: "enable", unit }];
    // The targets that want it may have changed.
    return affected.has(unit) ? [{ do: "reenable", unit }] : [];
  });
}

/** Units that must reload, not restart: during a restart there would be no rules, or no address. */
function reloadSteps(
  situation: Situation,
  unit: string | undefined,
  affected: ReadonlySet<string>,
  fileChanged: boolean,
): ActivationStep[] {
  if (unit === undefined || situation.wanted.get(unit)?.active !== true) return [];
  if (situation.now.get(unit)?.active !== true) return [{ do: "start", unit }];
  return fileChanged || affected.has(unit) ? [{ do: "reload-or-restart", unit }] : [];
}

/** Last, because they refuse to read logs that do not exist yet; a file that is gone has to be forgotten as well. */
function readerSteps({ now, wanted }: Situation, has: (...roles: FileRole[]) => boolean): ActivationStep[] {
  return Object.entries(READERS_OF_HOST).flatMap(([role, unit]): ActivationStep[] => {
    if (now.get(unit)?.active !== true)
      return wanted.get(unit)?.active === true ? [{ do: "start", unit }] : [];
    return has(role as FileRole) ? [{ do: "reload-or-restart", unit }] : [];
  });
}

function startDaemons(situation: Situation, affected: ReadonlySet<string>): ActivationStep[] {
  const { now } = situation;
  return daemons(situation)
    .reverse()
    .flatMap((unit): ActivationStep[] => {
      if (isLeaving(situation, unit)) return [];
      const active = now.get(unit)?.active === true;
      if (affected.has(unit) && active) {
        return [{ do: runningOn(situation).includes(unit) ? "restart" : "start", unit }];
      }
      return !active && situation.wanted.get(unit)?.active === true ? [{ do: "start", unit }] : [];
    });
}

function otherUnits(situation: Situation, affected: ReadonlySet<string>): ActivationStep[] {
  const { now, wanted } = situation;
  return [...new Set([...wanted.keys(), ...affected])]
    .filter((unit) => !known(situation).includes(unit) && !isLeaving(situation, unit))
    .flatMap((unit): ActivationStep[] => {
      if (now.get(unit)?.active === true) return affected.has(unit) ? [{ do: "restart", unit }] : [];
      return wanted.get(unit)?.active === true ? [{ do: "start", unit }] : [];
    });
}

function proxySteps(
  situation: Situation,
  affected: ReadonlySet<string>,
  has: (...roles: FileRole[]) => boolean,
): ActivationStep[] {
  const { service, socket } = situation.services.proxy;
  if (situation.wanted.get(service)?.active !== true) return [];
  const active = (unit: string): boolean => situation.now.get(unit)?.active === true;
  // systemd restarts a socket only while no service uses it.
  if (affected.has(socket) && active(socket)) {
    return [
      ...(active(service) ? [{ do: "stop", unit: service } as const] : []),
      { do: "restart", unit: socket },
      { do: "start", unit: service },
    ];
  }
  if (!active(socket) || !active(service)) {
    return [
      ...(active(service) ? [{ do: "stop", unit: service } as const] : []),
      ...(active(socket) ? [] : [{ do: "start", unit: socket } as const]),
      { do: "start", unit: service },
    ];
  }
  if (affected.has(service)) return [{ do: "restart", unit: service }];
  const stale = situation.stale?.proxy;
  if (has("runtime", "node") || stale === "upgrade") {
    // TLS files reach the proxy only through a reload, which also reports whether they were accepted.
    return [
      { do: "upgrade", unit: service },
      ...(has("tls") ? [{ do: "reload", unit: service } as const] : []),
    ];
  }
  return has("config", "tls", "page") || stale === "reload" || situation.reloadable
    ? [{ do: "reload", unit: service }]
    : [];
}

/** A step as a command that users could type. */
export function formatStep(step: ActivationStep): string {
  switch (step.do) {
    case "files":
      return "write files";
    case "daemon-reload":
      return "systemctl daemon-reload";
    case "network-reload":
      return "networkctl reload";
    case "upgrade":
      return `portico upgrade (${step.unit})`;
    default:
      return `systemctl ${step.do} ${step.unit}`;
  }
}
