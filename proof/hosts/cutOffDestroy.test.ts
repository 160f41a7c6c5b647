import { CutOffHost } from "./cutOffHost.js";

/** From a bare host to the first deployment and back again. */
let site: CutOffHost;
beforeAll(async () => {
  site = await CutOffHost.boot("cut-off-destroy");
}, 600_000);
afterAll(() => site?.remove());

test(
  "a first deployment and a destroy, cut off at every step",
  () => site.cutOffEverywhere("base", "none", false),
  900_000,
);

test("every kind of step was there", () => {
  const kinds = ["daemon-reload", "disable", "enable", "start", "stop"];
  expect([...site.kinds].sort()).toEqual(kinds);
});
