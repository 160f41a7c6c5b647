import { rmSync } from "node:fs";
import { uptime } from "node:os";
import * as z from "zod";
import { replaceSoon } from "../../files/durable.js";
import { FileRefused, readTrustedSync } from "../../files/trustedFile.js";

/** Why requests are refused for now. It is kept in a file, so that it outlasts a reload, an upgrade and a crash. */

const maintenance = z.object({
  /** Name of the site; without it, all. */
  site: z.string().optional(),
  /** Times in milliseconds since 1970: since when, and when it ends. */
  since: z.number(),
  until: z.number().optional(),
  message: z.string().optional(),
  /** Until when WebSockets stay open. */
  graceUntil: z.number(),
});

const quiesce = z.object({
  /** Chosen by the command that asked. */
  id: z.string(),
  reads: z.boolean(),
  site: z.string().optional(),
  minimumRate: z.number(),
  cutsSlow: z.boolean(),
  refuseMs: z.number(),
  limitMs: z.number(),
  since: z.number(),
  /** Milliseconds since the host started, which no clock can change: until when it holds unless it is renewed. */
  leaseUntil: z.number(),
  /** Since when new requests are refused, and until when at most: the same as above, but it is not renewed. */
  refusal: z.object({ since: z.number(), limitUntil: z.number() }).optional(),
});

const state = z.object({ maintenance: z.array(maintenance), quiesce: quiesce.optional() });

export type MaintenanceState = Readonly<z.output<typeof maintenance>>;
export type QuiesceState = Readonly<z.output<typeof quiesce>>;
export interface PauseState {
  readonly maintenance: readonly MaintenanceState[];
  readonly quiesce?: QuiesceState | undefined;
}

export const NOTHING: PauseState = { maintenance: [] };

/** Milliseconds since the host started; the same for all processes. */
export const hostUptime = (): number => uptime() * 1_000;

/** Longest time until a quiesce is renewed: a crash and the start after it take less. */
export const LEASE_MS = 30_000;

/**
 * @param onUnreadable called with the reason if the file cannot be read
 * @returns the pauses that still hold; none if there is no valid file
 */
export function readPauses(file: string, onUnreadable: (why: string) => void): PauseState {
  try {
    return stillHolds(state.parse(JSON.parse(readTrustedSync(file).toString("utf8"))));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const why = error instanceof FileRefused ? error.message : (code ?? "is not a file of portico's");
    if (code !== "ENOENT") onUnreadable(`${file}: ${why}`);
    return NOTHING;
  }
}

/** @throws if it cannot be written */
export function writePauses(file: string, pauses: PauseState): void {
  if (pauses.maintenance.length === 0 && pauses.quiesce === undefined) return rmSync(file, { force: true });
  replaceSoon(file, JSON.stringify(pauses));
}

/** The pauses that are not over yet. */
export function stillHolds({ maintenance: all, quiesce: one }: PauseState): PauseState {
  const [now, up] = [Date.now(), hostUptime()];
  const kept = all.filter(({ until = Infinity }) => until > now);
  // A lease that is longer than one can be is of an earlier start of the host.
  const holds = one !== undefined && endOf(one) > up && one.leaseUntil - up <= LEASE_MS;
  return holds ? { maintenance: kept, quiesce: one } : { maintenance: kept };
}

/** When it ends unless it is renewed, in milliseconds since the host started. */
export const endOf = ({ leaseUntil, refusal }: QuiesceState): number =>
  Math.min(leaseUntil, refusal?.limitUntil ?? Infinity);
