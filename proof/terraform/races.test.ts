import { spawn } from "node:child_process";
import { copyFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random, SEED, seedOf } from "../../testkit/random.js";
import { terraformIsHere, Workspace } from "./workspace.js";

const run = terraformIsHere() ? describe : describe.skip;

const ROUNDS = 6;

run("two local applies of one deployment at once, each with its copy of the state", () => {
  const workspaces = [new Workspace(), new Workspace()] as const;
  const [{ root }] = workspaces;
  const app = join(__dirname, "appWithActivation.ts");
  const there = (): string =>
    JSON.parse(readFileSync(join(root, "var/lib/portico/deployment/state.json"), "utf8")).document;
  const share = (from: number): void =>
    copyFileSync(
      join(workspaces[from]!.folder, "terraform.tfstate"),
      join(workspaces[1 - from]!.folder, "terraform.tfstate"),
    );

  const apply = async (workspace: Workspace, delayMs: number): Promise<{ green: boolean; said: string }> => {
    await sleep(delayMs);
    const child = spawn("terraform", ["apply", "-input=false", "-auto-approve", "-no-color"], {
      cwd: workspace.stack,
      env: workspace.environment,
    });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
    const code = await new Promise((done) => child.once("close", done));
    return { green: code === 0, said };
  };

  afterAll(() => {
    for (const workspace of workspaces) workspace.remove();
  });

  test("whoever ends green had the host; who fails applies again", async () => {
    for (const workspace of workspaces) {
      workspace.synthesize(app, { PORTICO_PAGE: "first\n", PORTICO_ROOT: root });
      workspace.terraform("init", "-input=false");
    }
    workspaces[0].apply();
    share(0);
    for (let round = 0; round < ROUNDS; round++) {
      const random = new Random(seedOf(SEED, round));
      for (const [i, workspace] of workspaces.entries())
        workspace.synthesize(app, { PORTICO_PAGE: `${round} ${i}\n`, PORTICO_ROOT: root });
      const ahead = random.pick(2);
      const ended = await Promise.all(
        workspaces.map((workspace, i) => apply(workspace, i === ahead ? 0 : random.upTo(2000))),
      );
      const last = there();
      for (const { green, said } of ended) {
        if (green) expect(said).toMatch(/the host has the document [0-9a-f]{64}, activated at /);
        else expect(said).toMatch(/activation\.(?:other-document|corrupt-blob|file-failed)|other apply/);
      }
      // Who fails is not done: its plan has something to do, and its next apply succeeds.
      const loser = ended.findIndex(({ green, said }) => !green || !said.includes(`document ${last}`));
      if (loser === -1) {
        share(0);
        continue;
      }
      expect(workspaces[loser]!.plan()).not.toEqual([]);
      const again = await apply(workspaces[loser]!, 0);
      expect(again).toMatchObject({
        green: true,
        said: expect.stringContaining(`the host has the document ${there()}`),
      });
      share(loser);
    }
  }, 600_000);
});
