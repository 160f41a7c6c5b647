import { readdirSync } from "node:fs";
import { type GoodState } from "../../src/host/activation/store.js";
import { type DeploymentIdentity, ProblemError } from "../../src/model/index.js";
import { CONFIG, Site, type SiteFiles, siteFiles } from "./site.js";

/** Two deployments and one host: who may change it, and who not. Below a folder, with the real file system. */
const STATE = "/var/lib/portico/deployment/state.json";
const OURS: DeploymentIdentity = { id: "0b7a", construct: "stack/files/Host" };
const THEIRS: DeploymentIdentity = { id: "9f00", construct: "other/files/Host" };

let site: Site;
let ours: SiteFiles;
let theirs: SiteFiles;

beforeAll(async () => {
  ours = await siteFiles("ours");
  theirs = await siteFiles("theirs");
});
beforeEach(() => {
  site = new Site();
});
afterEach(() => site.remove());

const owner = (): GoodState["identity"] => (JSON.parse(site.read(STATE)) as GoodState).identity;

function activateAs(identity: DeploymentIdentity | undefined, files: SiteFiles, takeOver = false) {
  site.deliver(files);
  return site.activate({ takeOver, ...(identity && { identity }) });
}

test("another deployment is refused, with whose the host is and what to do, and nothing changes", async () => {
  await activateAs(OURS, ours);
  site.deliver(theirs);
  const before = site.snapshot();
  const state = site.read(STATE);
  for (const dryRun of [false, true]) {
    const error = await site.activate({ identity: THEIRS, dryRun }).catch((e: unknown) => e);
    expect(error).toBeInstanceOf(ProblemError);
    expect((error as ProblemError).problems).toEqual([
      {
        code: "activation.other-deployment",
        path: STATE,
        message: "this host already has another deployment, that of stack/files/Host",
        received: '"other/files/Host"',
        fix: expect.stringMatching(/renamed or moved.*`takeOver: true`/),
      },
    ]);
  }
  expect(site.snapshot()).toEqual(before);
  expect(site.read(STATE)).toBe(state);
  expect(readdirSync(site.at("/var/lib/portico/deployment"))).not.toContain("journal.json");
});

test("a takeover makes the host the other one's, and a destroy restores what was there before both", async () => {
  const untouched = site.snapshot();
  await activateAs(OURS, ours);
  const { plan } = await activateAs(THEIRS, theirs, true);
  expect(plan.files.map(({ path }) => path)).toContain(CONFIG);
  expect(owner()).toEqual(THEIRS);
  await expect(activateAs(OURS, ours)).rejects.toThrow("that of other/files/Host");

  const taken = site.snapshot();
  for (const purge of [false, true]) {
    expect(await site.deactivateAs(OURS.id, purge)).toEqual({
      removed: { keptOf: "other/files/Host" },
      problems: [],
    });
  }
  expect(site.snapshot()).toEqual(taken);
  expect(await site.deactivateAs(THEIRS.id)).toEqual({ removed: "all", problems: [] });
  expect(await site.deactivateAs(THEIRS.id)).toEqual({ removed: "nothing", problems: [] });
  const left = Object.keys(site.snapshot()).filter((name) => !(name in untouched));
  expect(left.filter((name) => !name.startsWith("/var"))).toEqual([]);
});

test.each<
  [string, DeploymentIdentity | undefined, DeploymentIdentity | undefined, DeploymentIdentity | undefined]
>([
  ["adopts a host that an earlier release deployed to", undefined, OURS, OURS],
  [
    "that was renamed keeps its host",
    OURS,
    { ...OURS, construct: "stack/renamed/Host" },
    { ...OURS, construct: "stack/renamed/Host" },
  ],
  ["by hand is for the deployment that the host has", OURS, undefined, OURS],
])("a deployment %s, whether files change or not", async (_, first, then, expected) => {
  for (const files of [ours, theirs]) {
    await activateAs(first, ours);
    await activateAs(then, files);
    expect(owner()).toEqual(expected);
    await site.deactivate();
  }
});

test("a takeover that fails leaves the host with the deployment that it had", async () => {
  await activateAs(OURS, ours);
  site.deliver({ ...theirs, [CONFIG]: { ...theirs[CONFIG]!, content: "no config" } });
  await expect(site.activate({ identity: THEIRS, takeOver: true })).rejects.toThrow(ProblemError);
  expect(owner()).toEqual(OURS);
  await activateAs(OURS, theirs);
});
