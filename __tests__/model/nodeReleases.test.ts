import { fixesUntil } from "../../src/model/nodeReleases.js";

/** Until when Node gets fixes, as users read it. */
test.each([
  ["20.19.0", "2026-04-29", "fixes until 2026-04-30"],
  ["20.20.2", "2026-05-01", "no fixes since 2026-04-30"],
  ["24.21.0", "2026-11-25", "fixes until 2028-04-30"],
  ["99.0.0", "2026-11-25", undefined],
])("Node %s on %s: %s", (version, day, says) => {
  expect(fixesUntil(version, Date.parse(day))).toBe(says);
});
