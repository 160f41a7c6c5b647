import { breakInTurn, diagnosis, failed } from "./brokenHost.js";
import { FileSyncHost } from "./fileSyncHost.js";

/** Ways to break a host itself: its files, units, packet filter and addresses. */
let site: FileSyncHost;
beforeAll(async () => {
  site = await FileSyncHost.boot("breakages");
}, 600_000);
afterAll(() => site?.remove());

breakInTurn("Delivered files", () => site);
breakInTurn("System and network", () => site);

test("nothing is left broken", async () => {
  expect(failed(await diagnosis(site))).toEqual([]);
});
