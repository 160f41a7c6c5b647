import { copyFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Random, SEED, seedOf } from "../../testkit/random.js";
import { terraformIsHere, Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import { bootHost, type Result, type TestHost } from "./harness/index.js";

/**
 * Two administrators, each with a copy of one state and without a lock, apply to one real host at the same time. Then the
 * host's programs are replaced by others that succeed and do nothing.
 */
const run = terraformIsHere() ? describe : describe.skip;

const ROUNDS = 4;
const STATE = "/var/lib/portico/deployment/state.json";
const NODE = "/usr/lib/portico/node";

run("two applies of one deployment at once", () => {
  let host: TestHost;
  const workspaces = [new Workspace(), new Workspace()] as const;
  const deployments: Deployment[] = [];

  const share = (from: number): void => {
    const [state, copy] = [from, 1 - from].map((i) => join(workspaces[i]!.folder, "terraform.tfstate"));
    copyFileSync(state!, copy!);
  };

  const there = async (): Promise<string> =>
    /"document":"([0-9a-f]{64})"/.exec(await host.must(`cat ${STATE}`))![1]!;

  const told = ({ stdout }: Result): string | undefined =>
    /the host has the document ([0-9a-f]{64}), activated at 2/.exec(stdout)?.[1];

  beforeAll(async () => {
    host = await bootHost({ name: "races" });
    const ssh = {
      privateKeyFile: host.sshKey,
      hostKey: await host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub"),
      whenDestroyed: "purge",
    } as const;
    for (const workspace of workspaces) deployments.push(new Deployment(host, ssh, workspace));
    await deployments[0]!.installApplication();
    for (const deployment of deployments) {
      await deployment.buildRuntime();
      deployment.synthesize();
      deployment.init();
    }
    await deployments[0]!.apply();
    share(0);
  }, 900_000);

  afterAll(async () => {
    for (const deployment of deployments) deployment.remove();
    await host?.stop();
  });

  test.each(Array.from({ length: ROUNDS }, (_, i) => i))(
    "round %i: whoever ends green had the host, and a retry finds its uploads",
    async (round) => {
      const random = new Random(seedOf(SEED, round));
      for (const [i, deployment] of deployments.entries()) {
        // Both change the runtime, so that both upload the largest file that the store keeps.
        await deployment.buildRuntime(`9.${round}.${random.is(0.5) ? 0 : i}`);
        deployment.synthesize({ probeSeconds: 30 + 2 * round + i, health: random.is(0.5) });
      }
      const ahead = random.pick(2);
      const results = await Promise.all(
        deployments.map(async (deployment, i) => {
          if (i !== ahead) await sleep(random.upTo(6000));
          return deployment.tryApply();
        }),
      );
      const last = await there();
      for (const result of results) {
        const said = result.stdout + result.stderr;
        expect(said).not.toMatch(/missing-blob|corrupt-blob|incomplete-upload|was not delivered/);
        if (result.code === 0) expect(told(result)).toMatch(/^[0-9a-f]{64}$/);
        else expect(said).toMatch(/activation\.other-document|activation\.busy/);
      }
      const winner = results.findIndex((result) => result.code === 0 && told(result) === last);
      expect(winner).not.toBe(-1);
      expect(await deployments[winner]!.planned()).toEqual([]);
      // A loser that failed has something to do; it and one that was green before the other may apply again.
      const loser = 1 - winner;
      if (results[loser]!.code !== 0) {
        expect(await deployments[loser]!.planned()).not.toEqual([]);
        const text = await deployments[loser]!.apply();
        expect(text).toContain(`the host has the document ${await there()}, activated at `);
        share(loser);
      } else share(winner);
    },
    600_000,
  );

  test("a destroy with a Node that is /bin/true, empty or missing fails, and the services run", async () => {
    const [deployment] = deployments;
    await host.must(`mv ${NODE} ${NODE}.away`);
    for (const [how, why] of [
      [`cp /bin/true ${NODE}`, "is not Node, or Node does not run on this host"],
      [`: > ${NODE}`, "is empty"],
      [`rm ${NODE}`, "is missing"],
    ]) {
      await host.must(how!);
      const { code, stdout, stderr } = await deployment!.terraform(
        "destroy -input=false -auto-approve -no-color",
      );
      const said = stdout + stderr;
      expect([code, said]).toEqual([1, expect.stringContaining(`${NODE}: ${why} [activation.lost-program]`)]);
      expect(said).toMatch(/Nothing was removed, and the services still run\./);
      expect(await host.must("systemctl is-active portico.service")).toBe("active\n");
      const command = await host.run("/var/lib/portico/deployment/command doctor");
      expect([command.code, command.stderr]).toEqual([
        1,
        expect.stringContaining(`${NODE}: ${why} [activation`),
      ]);
    }
    // As the message says.
    await deployment!.apply();
    const { code, stdout } = await deployment!.terraform("destroy -input=false -auto-approve -no-color");
    expect([code, stdout]).toEqual([0, expect.stringContaining("the deployment is gone")]);
    expect((await host.run(`ls ${STATE} ${NODE}`)).code).not.toBe(0);
  }, 900_000);
});
