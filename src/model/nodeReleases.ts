/** Until when each major version of Node gets fixes (https://github.com/nodejs/release#release-schedule). */
const END_OF_LIFE: Readonly<Record<number, string>> = {
  20: "2026-04-30",
  21: "2024-06-01",
  22: "2027-04-30",
  23: "2025-06-01",
  24: "2028-04-30",
  25: "2026-06-01",
  26: "2029-04-30",
};

/**
 * Until when a version of Node gets fixes, as a text for people; undefined for a major version that came after this
 * release.
 *
 * @param version such as `24.21.0`
 */
export function fixesUntil(version: string, now: number): string | undefined {
  const end = END_OF_LIFE[Number.parseInt(version, 10)];
  if (end === undefined) return undefined;
  return Date.parse(end) < now ? `no fixes since ${end}` : `fixes until ${end}`;
}
