import { type Deployment, type Problem, problemTitle } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/askMaster.js";
import type { Report } from "./report.js";
import { controlSocketOf } from "./systemctl.js";

/**
 * Has the proxy of the last good state, which serves again, tell the targets of its notifications that an activation was
 * rolled back. It knows them and their secrets; this process, which is root, sends nothing anywhere. Never fails: who ran the
 * activation is told anyway.
 */
export async function tellOfRollBack(
  { services }: Deployment,
  [first]: readonly Problem[],
  report: Report,
): Promise<void> {
  const socket = await controlSocketOf(services.proxy.service).catch(() => undefined);
  if (socket === undefined || first === undefined) return;
  const [reason, fix] = [problemTitle(first), first.fix].map((text) => text.slice(0, TEXT_MAX));
  const request = { command: "notify", rolledBack: { reason: reason!, fix: fix! } } as const;
  const outcome = await askMaster(socket, request, RESPONSE_MS);
  const [refused] = outcome.ok ? [] : outcome.problems;
  // Most configs have no notifications.
  if (refused !== undefined && refused.code !== "control.no-notifications")
    report(`no notification was sent: ${problemTitle(refused)}`);
}

const RESPONSE_MS = 5_000;
const TEXT_MAX = 2_000;
