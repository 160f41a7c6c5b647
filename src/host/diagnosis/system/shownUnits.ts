import { type CommandResult, run } from "./command.js";

/** The loaded state of a unit, with the values of `systemctl show`. */
export interface ShownUnit {
  readonly unit: string;
  /** `notify`, `oneshot`, …; empty for a unit that is no service. */
  readonly type: string;
  /** `loaded`, `not-found`, `masked`, `bad-setting`, … */
  readonly load: string;
  /** `active`, `inactive`, `failed`, … */
  readonly active: string;
  readonly sub: string;
  /** Whether links start it with the host: `enabled`, `disabled`, `static`, … */
  readonly startLinks: string;
  /** Whether its files have changed since systemd read them. */
  readonly outdated: boolean;
  /** The unit file. */
  readonly fragment: string;
  readonly dropIns: readonly string[];
  /** The unit's main process; 0 if it has none. */
  readonly mainPid: number;
  /** Program and arguments of the first ExecStart. */
  readonly command: string;
  /** The unit's control group, such as `/system.slice/portico.service`; empty if it has none. */
  readonly group: string;
  /** `running`, `frozen` (`systemctl freeze`), … */
  readonly freezer: string;
}

const PROPERTIES =
  "Type,LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,FragmentPath,DropInPaths,MainPID,ExecStart,ControlGroup,FreezerState";

/** @returns the units in order, or the outcome of the command if systemd does not respond */
export async function showUnits(
  units: readonly string[],
  seconds: number,
): Promise<ShownUnit[] | CommandResult> {
  if (units.length === 0) return [];
  const outcome = await run(["systemctl", "show", `--property=${PROPERTIES}`, "--", ...units], seconds);
  if (outcome.code !== 0) return outcome;
  const blocks = outcome.stdout.split("\n\n");
  return units.map((unit, i) => shownUnit(unit, blocks[i]!));
}

/** Parses the output of `systemctl show` about one unit. */
export function shownUnit(unit: string, block: string): ShownUnit {
  const value = (name: string): string => new RegExp(`^${name}=(.*)$`, "m").exec(block)?.[1] ?? "";
  return {
    unit,
    type: value("Type"),
    load: value("LoadState"),
    active: value("ActiveState"),
    sub: value("SubState"),
    startLinks: value("UnitFileState"),
    outdated: value("NeedDaemonReload") === "yes",
    fragment: value("FragmentPath"),
    dropIns: value("DropInPaths").split(" ").filter(Boolean),
    mainPid: Number(value("MainPID")),
    command: /argv\[\]=(.*?) ; ignore_errors=/.exec(value("ExecStart"))?.[1] ?? "",
    group: value("ControlGroup"),
    freezer: value("FreezerState"),
  };
}

/** Whether a unit has links by which it starts with the machine, by its `UnitFileState`. */
export const hasStartLinks = (state: string): boolean =>
  /^(?:enabled|enabled-runtime|linked|alias)$/.test(state);

/** Whether a unit starts with the host, by links or because another unit needs it. */
export const startsWithHost = (state: string): boolean =>
  hasStartLinks(state) || /^(?:static|indirect|generated)$/.test(state);
