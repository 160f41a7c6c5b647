import { shownProperty } from "../diagnosis/shownUnit.js";
import { run } from "./systemctl.js";

/** What systemd has loaded of a unit, beside what it runs (`UnitStatus`). */
export interface LoadedUnit {
  readonly unit: string;
  /** `loaded`, `not-found`, `masked`, `bad-setting`, … */
  readonly load: string;
  /** `active`, `failed`, … */
  readonly active: string;
  readonly sub: string;
  /** `enabled`, `disabled`, `static`, … */
  readonly enabled: string;
  /** Whether its files have changed since systemd read them. */
  readonly outdated: boolean;
  /** The unit file. */
  readonly fragment: string;
  readonly dropIns: readonly string[];
  readonly mainPid: number;
}

/** Units as systemd has them loaded; undefined where it does not answer. */
export async function loadedUnits(units: readonly string[]): Promise<LoadedUnit[] | undefined> {
  if (units.length === 0) return [];
  const properties =
    "--property=LoadState,ActiveState,SubState,UnitFileState,NeedDaemonReload,FragmentPath,DropInPaths,MainPID";
  const { code, stdout } = await run(["systemctl", "show", properties, "--", ...units], 30);
  if (code !== 0) return undefined;
  const blocks = stdout.trimEnd().split("\n\n");
  return units.map((unit, i) => loadedUnitOf(unit, blocks[i] ?? ""));
}

/** What `systemctl show` prints of one unit. */
function loadedUnitOf(unit: string, block: string): LoadedUnit {
  const value = (name: string): string => shownProperty(block, name);
  return {
    unit,
    load: value("LoadState"),
    active: value("ActiveState"),
    sub: value("SubState"),
    enabled: value("UnitFileState"),
    outdated: value("NeedDaemonReload") === "yes",
    fragment: value("FragmentPath"),
    dropIns: value("DropInPaths").split(" ").filter(Boolean),
    mainPid: Number(value("MainPID")),
  };
}

/** States in which a unit starts with the host, or by what needs it. */
export const STARTS_WITH_HOST = /^(?:enabled|enabled-runtime|linked|alias|static|indirect|generated)$/;
