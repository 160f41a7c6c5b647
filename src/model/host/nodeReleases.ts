/** Until when each major version of Node gets fixes: schedule.json of https://github.com/nodejs/Release, as of 2026-07-02. */
const END_OF_LIFE: Readonly<Record<number, string>> = {
  20: "2026-04-30",
  21: "2024-06-01",
  22: "2027-04-30",
  23: "2025-06-01",
  24: "2028-04-30",
  25: "2026-06-01",
  26: "2029-04-30",
  27: "2030-04-30",
};

/** Time in which another version can be chosen, tried and deployed. */
const SOON_DAYS = 90;

/** Until when a version of Node gets fixes. */
export interface NodeFixes {
  readonly state: "fixed" | "ends-soon" | "ended";
  /** The state in words. */
  readonly text: string;
}

/**
 * Until when a version of Node gets fixes; undefined for a major version that came after this release.
 *
 * @param version such as `24.21.0`
 */
export function nodeFixes(version: string, now: number): NodeFixes | undefined {
  const end = END_OF_LIFE[Number.parseInt(version, 10)];
  if (end === undefined) return undefined;
  // The last day is one with fixes.
  const days = (Date.parse(end) - now) / 86_400_000 + 1;
  if (days <= 0) return { state: "ended", text: `no fixes since ${end}` };
  return { state: days <= SOON_DAYS ? "ends-soon" : "fixed", text: `fixes until ${end}` };
}
