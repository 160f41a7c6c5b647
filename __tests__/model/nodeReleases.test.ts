import { nodeFixes } from "../../src/model/nodeReleases.js";

/** Until when Node gets fixes, as users read it. */
test.each([
  ["20.19.0", "2026-01-30", "fixed", "fixes until 2026-04-30"],
  ["20.19.0", "2026-01-31", "ends-soon", "fixes until 2026-04-30"],
  ["20.19.0", "2026-04-30T23:59:59Z", "ends-soon", "fixes until 2026-04-30"],
  ["20.20.2", "2026-05-01", "ended", "no fixes since 2026-04-30"],
  ["24.21.0", "2026-11-25", "fixed", "fixes until 2028-04-30"],
])("Node %s on %s: %s, %s", (version, day, state, text) => {
  expect(nodeFixes(version, Date.parse(day))).toEqual({ state, text });
});

test("a version that came later is not guessed at", () => {
  expect(nodeFixes("99.0.0", Date.parse("2026-11-25"))).toBeUndefined();
});
