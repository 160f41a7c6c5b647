import { breakInTurn, diagnosis, DOCTOR, failed } from "./brokenHost.js";
import { FileSyncHost } from "./fileSyncHost.js";

/** Ways to break what is above the host itself: logs, the application, the activation and what it keeps. */
let site: FileSyncHost;
beforeAll(async () => {
  site = await FileSyncHost.boot("breakages-above");
}, 600_000);
afterAll(() => site?.remove());

breakInTurn("Logs", () => site);
breakInTurn("The application", () => site);
breakInTurn("Activation and its store", () => site);

test("nothing is left broken, and the secret key was never shown", async () => {
  expect(failed(await diagnosis(site))).toEqual([]);
  const { stdout } = await site.host.run(`${DOCTOR} --json; ${DOCTOR}`);
  expect(stdout).not.toContain("not to be shown");
});
