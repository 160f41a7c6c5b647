import { CutOffHost } from "./cutOffHost.js";

/** From one deployment to another. */
let site: CutOffHost;
beforeAll(async () => {
  site = await CutOffHost.boot("cut-off");
}, 600_000);
afterAll(() => site?.remove());

test(
  "an upgrade of the proxy, cut off at every step",
  () => site.cutOffEverywhere("base", "release", true),
  900_000,
);

test(
  "a change of everything, cut off at every step",
  () => site.cutOffEverywhere("walled", "other", true),
  900_000,
);

test("every kind of step was there", () => {
  const kinds = ["daemon-reload", "networkctl reload", "reenable", "reload", "reload-or-restart"];
  const more = ["reset-failed", "restart", "start", "stop", "upgrade"];
  expect([...site.kinds].sort()).toEqual([...kinds, ...more]);
});
