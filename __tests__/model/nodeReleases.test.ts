import { nodeFixes } from "../../src/model/host/nodeReleases.js";

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

test.each([
  [20, "2026-04-30"],
  [21, "2024-06-01"],
  [22, "2027-04-30"],
  [23, "2025-06-01"],
  [24, "2028-04-30"],
  [25, "2026-06-01"],
  [26, "2029-04-30"],
  [27, "2030-04-30"],
])("Node %i gets fixes on %s, and no longer on the day after", (major, last) => {
  const said = [0, 1].map((days) => nodeFixes(`${major}.0.0`, Date.parse(last) + days * 86_400_000));
  expect(said).toEqual([
    { state: "ends-soon", text: `fixes until ${last}` },
    { state: "ended", text: `no fixes since ${last}` },
  ]);
});

test("a version that came later is not guessed at", () => {
  for (const version of ["28.0.0", "99.0.0"])
    expect(nodeFixes(version, Date.parse("2026-11-25"))).toBeUndefined();
});
