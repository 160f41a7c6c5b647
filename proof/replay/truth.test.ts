import { SEED } from "../../testkit/random.js";
import { replayedAgainstTruth } from "./truth.js";

/** A short form of `npm run replay-truth`. */
test("what replay says of requests is what the old and the new config serve", async () => {
  const { requests, changed, actions, wrong } = await replayedAgainstTruth(SEED, 2_000);
  expect(wrong).toEqual([]);
  expect(requests).toBe(2_000);
  // All of it occurs, or nothing was tested.
  expect(Object.keys(actions).sort()).toEqual(["error", "proxy", "redirect", "respond", "staticFile"]);
  expect(changed).toBeGreaterThan(requests / 10);
}, 120_000);
