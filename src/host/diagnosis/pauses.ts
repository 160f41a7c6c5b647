import { siteOf, withinRanges } from "../../model/serving.js";
import type { ProxyConfig } from "../../model/index.js";
import { askMaster } from "../../runtime/supervisor/control/askMaster.js";
import type { ListedPauses } from "../../runtime/supervisor/control/listedPauses.js";
import type { ExpectedProbe } from "./expected/expectedResponses.js";
import { type Verdict, warning } from "./verdict.js";

/** Maintenance and quiesce that refuse requests; undefined if none does, or the proxy cannot be asked. */
export async function seePauses(
  control: string | undefined,
  timeoutMs: number,
): Promise<ListedPauses | undefined> {
  if (control === undefined) return undefined;
  const outcome = await askMaster(control, { command: "pauses" }, timeoutMs);
  const pauses = outcome.ok ? outcome.value.pauses : undefined;
  const none =
    pauses === undefined || (pauses.maintenance.length === 0 && pauses.quiesce?.refusesSince === undefined);
  return none ? undefined : pauses;
}

/** The same rows without those that would be refused now: such a response shows nothing about the deployment. */
export function withoutPaused(
  rows: readonly ExpectedProbe[],
  { maintenance: { allow }, virtualServers }: ProxyConfig,
  pauses: ListedPauses | undefined,
): readonly ExpectedProbe[] {
  if (pauses === undefined) return rows;
  const isAllowed = withinRanges(allow);
  return rows.map((row) => {
    const { request } = row;
    const server = virtualServers.find(({ name }) => name === row.server);
    const isOf = ({ site }: { readonly site?: string | undefined }): boolean =>
      site === undefined || (server !== undefined && site === siteOf(server));
    // The row's requests are HEAD and GET, which only a quiesce of reads refuses.
    if (
      row.upstream !== undefined &&
      pauses.quiesce?.reads === true &&
      isOf(pauses.quiesce) &&
      pauses.quiesce.refusesSince !== undefined
    )
      return { ...row, notProbed: QUIESCED };
    const closed = pauses.maintenance.some(isOf);
    // A host asks its own address from this address.
    if (server === undefined || !closed || isAllowed(request.address)) return row;
    const reason = `site "${siteOf(server)}" is in maintenance`;
    return {
      ...row,
      notProbed: { reason, fix: "`portico maintenance off` ends the maintenance", unseen: true },
    };
  });
}

const QUIESCED = {
  reason: "requests to upstreams are refused for a command under portico quiesce",
  fix: "wait until the command has ended",
  unseen: true,
} as const;

/** A row of `portico doctor`. */
export function judgePauses({ maintenance, quiesce }: ListedPauses): Verdict {
  const lines = maintenance.map(({ site, since, until }) => {
    const end = until === undefined ? "" : `, until ${isoTime(until)}`;
    return `${site === undefined ? "every site" : site}: in maintenance since ${isoTime(since)}${end}`;
  });
  if (quiesce?.refusesSince !== undefined) {
    const to = quiesce.site === undefined ? "" : ` to site "${quiesce.site}"`;
    const what = `${quiesce.reads ? "all requests" : "requests that write"}${to}`;
    lines.push(
      `${what} are refused since ${isoTime(quiesce.refusesSince)}, for a command under portico quiesce`,
    );
  }
  const fix = maintenance.length > 0 ? "portico maintenance off" : "Wait until the command has ended.";
  return warning("a command makes the proxy refuse requests", lines, fix);
}

const isoTime = (ms: number): string => new Date(ms).toISOString();
