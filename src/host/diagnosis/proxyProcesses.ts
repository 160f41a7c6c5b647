import { readFileSync } from "node:fs";
import { endpoint, type ProxyConfig } from "../../model/index.js";
import { listenOwner } from "../../runtime/listen/listenOwner.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { EvidenceFinding, ProxyProcesses } from "./evidence.js";
import type { Units, UnitState } from "./system/hostFacts.js";

/** Asks the main process, which asks its workers. */
export async function seeProcesses(
  config: ProxyConfig,
  units: Units | undefined,
  control: string | undefined,
  timeoutMs: number,
): Promise<ProxyProcesses> {
  const { proxy, proxySocket } = units ?? {};
  const strangers =
    proxy === undefined ? [] : strangersOf(config, [proxy, ...(proxySocket ? [proxySocket] : [])]);
  if (control === undefined || proxy?.state !== "active") return { silentWorkers: [], strangers };
  const outcome = await askMaster(control, { command: "holdings" }, timeoutMs);
  if (outcome.ok) {
    const silent = (outcome.value.workers ?? []).filter(({ holdings }) => holdings === undefined);
    return { silentWorkers: silent.map(({ pid }) => pid), strangers };
  }
  const [{ message }] = outcome.problems as [(typeof outcome.problems)[number]];
  return { silentMaster: message, silentWorkers: [], strangers };
}

/** systemd has the sockets of a unit that it starts on demand. */
const SYSTEMD = "1";

function strangersOf({ listeners }: ProxyConfig, units: readonly UnitState[]): EvidenceFinding[] {
  const names = units.map(({ name }) => name);
  const findings = listeners.flatMap(({ address, port }): EvidenceFinding[] => {
    const owner = listenOwner(address, port);
    const unit = owner === undefined || owner.pid === SYSTEMD ? undefined : unitOfProcess(owner.pid);
    if (owner === undefined || unit === undefined || names.includes(unit)) return [];
    const end = unit === "" ? `kill ${owner.pid}` : `systemctl disable --now ${unit}`;
    const fix = `${end} && systemctl enable --now ${names.toReversed().join(" ")}`;
    return [
      { at: endpoint({ host: address, port }), what: `${owner.text} listens there, not the proxy`, fix },
    ];
  });
  return findings;
}

/** The unit of the system that a process belongs to; empty if it belongs to none, undefined if it has ended. */
function unitOfProcess(pid: string): string | undefined {
  try {
    const [, unit = ""] = /^0::\/(?:[^/\n]+\.slice\/)*([^/\n]+\.service)/m.exec(
      readFileSync(`/proc/${pid}/cgroup`, "utf8"),
    ) ?? ["", ""];
    return unit.startsWith("user@") ? "" : unit;
  } catch {
    return undefined;
  }
}
