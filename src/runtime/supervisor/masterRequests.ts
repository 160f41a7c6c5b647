import { type ControlOutcome, type ControlRequest, ControlServer, type Done } from "./control/control.js";
import type { Program } from "./processes/handover.js";
import type { MasterLog } from "./report/masterLog.js";
import { holdingsText } from "../worker/holdings.js";
import type { CertificateManager } from "./served/certificateManager.js";
import type { ServedGuards } from "./served/servedGuards.js";
import type { ServedNotifications } from "./served/servedNotifications.js";
import type { ServedOverview } from "./served/servedOverview.js";
import type { ServedPauses } from "./served/servedPauses.js";
import type { ServedUpstreams } from "./served/servedUpstreams.js";
import type { Supervision } from "./processes/supervision.js";

/** The functions of a master that control requests use. */
export interface AskedMaster {
  reload(): Promise<ControlOutcome>;
  upgrade(program: Program): Promise<ControlOutcome>;
  status(): Done;
  readonly supervised: Pick<Supervision, "holdings">;
  readonly upstreams: Pick<ServedUpstreams, "list" | "drain">;
  readonly guards: Pick<ServedGuards, "list" | "unban">;
  readonly pauses: Pick<ServedPauses, "list" | "begin" | "end" | "quiesce" | "resume">;
  readonly notifications: Pick<ServedNotifications, "test" | "rolledBack">;
  readonly overview: Pick<ServedOverview, "ofSite">;
  readonly certificates: Pick<CertificateManager, "list" | "renew">;
}

/** Makes a master reachable at a path; if that fails, it serves anyway. */
export async function openControl(
  path: string | undefined,
  master: AskedMaster,
  logs: Pick<MasterLog, "write">,
): Promise<ControlServer | undefined> {
  if (path === undefined) return undefined;
  try {
    return await ControlServer.open(path, (request) => respond(master, request));
  } catch (error) {
    logs.write("error", `cannot be reached by \`portico reload\`: ${(error as Error).message}`);
    return undefined;
  }
}

async function respond(master: AskedMaster, request: ControlRequest): Promise<ControlOutcome> {
  switch (request.command) {
    case "status":
      return { ok: true, value: master.status() };
    case "holdings":
      return { ok: true, value: await holdings(master) };
    case "overview":
      return overview(master, request.site);
    case "certificates":
      return { ok: true, value: master.certificates.list() };
    case "renew":
      return master.certificates.renew(request.name);
    case "upstreams":
      return { ok: true, value: await master.upstreams.list() };
    case "drain":
    case "undrain":
      return master.upstreams.drain(request, request.command === "drain");
    case "bans":
      return master.guards.list();
    case "unban":
      return master.guards.unban(request.address);
    case "pauses":
      return master.pauses.list();
    case "maintenance":
      return request.begin === undefined
        ? master.pauses.end(request.site)
        : master.pauses.begin(request.begin, request.site);
    case "quiesce":
      return master.pauses.quiesce(request);
    case "resume":
      return master.pauses.resume(request.id);
    case "notify":
      return request.rolledBack === undefined
        ? master.notifications.test()
        : master.notifications.rolledBack(request.rolledBack.reason, request.rolledBack.fix);
    case "reload":
      return master.reload();
    case "upgrade":
      return master.upgrade(request);
  }
}

async function holdings({ supervised }: AskedMaster): Promise<Done> {
  const workers = await supervised.holdings();
  return { message: holdingsText(workers), warnings: [], workers };
}

async function overview({ overview: served }: AskedMaster, site?: string): Promise<ControlOutcome> {
  const made = await served.ofSite(site);
  if ("code" in made) return { ok: false, problems: [made] };
  const message = `serving since ${new Date(made.since).toISOString()}`;
  return { ok: true, value: { message, warnings: [], overview: made } };
}
