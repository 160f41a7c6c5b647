import { existsSync } from "node:fs";
import { type CommandResult, run } from "../diagnosis/system/command.js";
import { hasStartLinks, showUnits, type ShownUnit } from "../diagnosis/system/shownUnits.js";
import { type Problem, problem, ProblemError } from "../../model/index.js";

/** The state of a unit in systemd. */
export interface UnitStatus {
  /** Whether there is such a unit. */
  readonly known: boolean;
  /** Whether systemd refuses to start it (`systemctl mask`). */
  readonly masked: boolean;
  readonly active: boolean;
  /** Whether it has a job, or will have one: it is starting, stopping, or has died and will be started again. */
  readonly unsettled: boolean;
  readonly failed: boolean;
  readonly enabled: boolean;
}

export type UnitAction =
  | "stop"
  | "start"
  | "restart"
  | "reload"
  | "reload-or-restart"
  | "enable"
  | "reenable"
  | "disable"
  | "reset-failed";

/** Whether systemd runs this machine. */
export function systemdIsHere(): boolean {
  return existsSync("/run/systemd/system");
}

/** Units by name, as they are now. */
export async function unitStatus(units: readonly string[]): Promise<Map<string, UnitStatus>> {
  const shown = await showUnits(units, COMMAND_SECONDS);
  if ("code" in shown) throw commandFailed("systemctl show", shown);
  return new Map(shown.map((unit) => [unit.unit, statusOf(unit)]));
}

export function statusOf({ type, load, active, sub, startLinks }: ShownUnit): UnitStatus {
  // A service that waits for a restart is `activating` too, but can be neither reloaded nor used; and an `activating`
  // oneshot service has no process that would continue.
  const starts = active === "activating" && !sub.startsWith("auto-restart") && type !== "oneshot";
  return {
    known: load !== "not-found",
    masked: load === "masked",
    active: active === "active" || active === "reloading" || starts,
    unsettled: active === "activating" || active === "deactivating",
    failed: active === "failed",
    enabled: hasStartLinks(startLinks),
  };
}

/** Does it and waits until it is done; a failure contains the messages of systemctl and the unit. */
export async function actOnUnit(action: UnitAction, unit: string): Promise<void> {
  const since = Math.floor(Date.now() / 1000);
  const outcome = await run(["systemctl", action, "--", unit], ACTION_SECONDS);
  if (outcome.code === 0) return;
  if (action === "disable" && /does not exist/.test(outcome.stderr)) return removeLinks(unit);
  const said = await run(
    ["journalctl", "--unit", unit, `--since=@${since}`, "--lines=12", "--output=cat", "--no-pager"],
    COMMAND_SECONDS,
  );
  const own = said.code === 0 ? said.stdout.trim() : "";
  // The unit's lines must not look like ours.
  const quoted = own === "" ? "" : `\n${unit} said:\n${own.replace(/^/gm, "  | ")}`;
  throw commandFailed(`systemctl ${action} ${unit}`, outcome, quoted);
}

/**
 * Stops a unit. A daemon that exits with an error then has failed, and would stay in systemd's lists after its unit file is
 * gone: that it failed is forgotten.
 */
export async function stopUnit(unit: string): Promise<void> {
  await actOnUnit("stop", unit);
  if ((await unitStatus([unit])).get(unit)?.failed === true) await actOnUnit("reset-failed", unit);
}

/** A unit whose file was removed cannot be disabled, but the links that would start it are still there. */
async function removeLinks(unit: string): Promise<void> {
  const links = ["-type", "l", "-path", `*.wants/${unit}`, "-delete"];
  await mustRun(["find", "/etc/systemd/system", ...links], COMMAND_SECONDS);
}

/** Control socket of a running proxy; undefined if there is none. */
export async function controlSocketOf(unit: string): Promise<string | undefined> {
  const shown = await mustRun(
    ["systemctl", "show", "--property=RuntimeDirectory", "--value", "--", unit],
    COMMAND_SECONDS,
  );
  const [directory = ""] = shown.trim().split(" ");
  const socket = `/run/${directory}/control.sock`;
  return directory !== "" && existsSync(socket) ? socket : undefined;
}

export async function reloadServiceManager(): Promise<void> {
  await mustRun(["systemctl", "daemon-reload"], COMMAND_SECONDS);
}

/** Makes systemd-networkd load its changed files, if it manages the network here. */
export async function reloadNetwork(): Promise<void> {
  const status = await unitStatus(["systemd-networkd.service"]);
  if (status.get("systemd-networkd.service")?.active === true) {
    await mustRun(["networkctl", "reload"], COMMAND_SECONDS);
  }
}

async function mustRun(command: readonly [string, ...string[]], seconds: number): Promise<string> {
  const outcome = await run(command, seconds);
  if (outcome.code === 0) return outcome.stdout;
  throw commandFailed(command.join(" "), outcome);
}

function commandFailed(command: string, { code, stderr, stdout }: CommandResult, more = ""): ProblemError {
  const said = stderr.trim() || stdout.trim();
  return new ProblemError([commandProblem(command, `failed with status ${code}: ${said}${more}`)]);
}

export function commandProblem(command: string, message: string): Problem {
  return problem("activation.command-failed", command, message);
}

const COMMAND_SECONDS = 60;
/** Longer than units take to start and stop: a proxy may wait minutes for its last requests. */
const ACTION_SECONDS = 900;
