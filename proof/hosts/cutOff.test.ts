import { CutOffHost } from "./cutOffHost.js";

let site: CutOffHost;
beforeAll(async () => {
  site = await CutOffHost.boot("cut-off");
}, 600_000);
afterAll(() => site?.remove());

test(
  "an upgrade of the proxy, cut off at every kind of step",
  () => site.cutOffEverywhere("base", "release", true),
  900_000,
);

test(
  "a change of everything, cut off at every kind of step",
  () => site.cutOffEverywhere("walled", "other", true),
  900_000,
);

test(
  "a destroy and a first deployment, cut off at every kind of step",
  () => site.cutOffEverywhere("base", "none", false),
  900_000,
);

test(
  "a site with units and settings of its own comes and goes, cut off at every step",
  () => site.cutOffEverywhere("walled", "sites", false, true),
  1_800_000,
);

test("every kind of step was there", () => {
  const kinds = ["daemon-reload", "disable", "enable", "networkctl reload", "reenable", "reload"];
  const more = ["reload-or-restart", "reset-failed", "restart", "start", "stop", "upgrade"];
  expect([...site.kinds].sort()).toEqual([...kinds, ...more]);
});
