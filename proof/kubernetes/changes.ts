import { setTimeout as sleep } from "node:timers/promises";
import { eventually } from "../../testkit/waiting.js";
import { demand } from "./checks.js";
import { fetchAsClient } from "./clients.js";
import { NODE_ADDRESS } from "./cluster.js";
import { NAME, TLS_SECRET } from "./frontEnd.js";
import { leastAvailable, type Scene } from "./scene.js";

/** What an operator does, and what happens to a node, while clients are served. Each gives what was seen. */

/** The revision of the config that responds to a new client. */
async function revision(scene: Scene): Promise<string> {
  const { https } = await scene.nodePorts();
  const head = await fetchAsClient(`https://${NODE_ADDRESS}:${https}/sync/`, "-I");
  return /^x-revision: (.*?)\r?$/im.exec(head)?.[1] ?? "none";
}

export async function changedConfig(scene: Scene): Promise<string> {
  const before = await scene.serving();
  const least = await leastAvailable(scene, async () => {
    await scene.apply({ revision: "2" });
    await scene.settled();
  });
  const seen = await revision(scene);
  demand(seen === "2", `revision ${seen} responds`);
  demand(least >= before.length, `only ${least} pods were available`);
  const kept = (await scene.serving()).filter((pod) => before.some(({ name }) => name === pod.name));
  demand(kept.length === 0, `${kept.map(({ name }) => name).join(", ")} still serves`);
  return `${before.length} new pods serve it, at least ${least} were available throughout`;
}

/** A Secret whose key does not belong to its certificate: only the pods can notice. */
export async function badConfig(scene: Scene, brokenSecret: string): Promise<string> {
  const before = await scene.serving();
  const names = new Set(before.map(({ name }) => name));
  let tried = 0;
  let said = "";
  const least = await leastAvailable(scene, async () => {
    await scene.apply({ revision: "3", tlsSecret: brokenSecret });
    await eventually(
      async () => {
        const fresh = (await scene.pods()).filter(({ name, ending }) => !names.has(name) && !ending);
        tried = Math.max(tried, fresh.length);
        demand(!fresh.some(({ ready }) => ready), "a pod with the bad config became ready");
        const failed = fresh.find(({ restarts }) => restarts > 1);
        if (failed !== undefined) said = await scene.kubectl("logs", failed.name, "--previous", "--tail=20");
        return failed !== undefined;
      },
      "for the first pod to fail again and again",
      { ms: 60_000, everyMs: 1_000 },
    );
    await scene.kubectl("rollout", "undo", `deployment/${NAME}`);
    await scene.settled();
  });
  const after = await scene.serving();
  demand(tried === 1, `${tried} pods had the bad config at a time`);
  demand(least >= before.length, `only ${least} pods were available`);
  demand(
    after.every(({ name }) => names.has(name)),
    "a pod with the good config was replaced",
  );
  await scene.apply({ revision: "2", tlsSecret: TLS_SECRET });
  const code = /\[([a-z]+\.[a-z-]+)\]/.exec(said)?.[1] ?? said.slice(-300);
  return `one pod tried it and said ${code}; undone, the ${before.length} pods before served on`;
}

export async function scaled(scene: Scene): Promise<string> {
  await scene.kubectl("scale", `deployment/${NAME}`, "--replicas=4");
  await scene.settled(4);
  await scene.kubectl("scale", `deployment/${NAME}`, "--replicas=2");
  await scene.settled(2);
  return "2 pods, 4, and 2 again";
}

/** One after the other, as the disruption budget lets them go when a node is emptied. */
export async function deletedPods(scene: Scene): Promise<string> {
  const before = await scene.serving();
  for (const { name } of before) {
    await scene.kubectl("delete", "pod", name, "--wait=false");
    await eventually(
      async () => {
        const now = await scene.serving();
        return now.length === before.length && !now.some((pod) => pod.name === name);
      },
      "for a new pod",
      { ms: 30_000, everyMs: 250 },
    );
  }
  return `${before.length} pods, one after the other`;
}

/** How long nobody looks after the containers. */
const AWAY_MS = 3_000;

export async function crashedRuntime(scene: Scene): Promise<string> {
  const before = await scene.serving();
  await scene.cluster.crash("containerd");
  await scene.cluster.crash("kubelet");
  await sleep(AWAY_MS);
  scene.cluster.run("containerd");
  scene.cluster.run("kubelet");
  await scene.settled();
  // Proof that the node works again: a pod can begin.
  const { name } = before[0]!;
  await scene.kubectl("delete", "pod", name, "--wait=false");
  await eventually(async () => !(await scene.serving()).some((pod) => pod.name === name), "for its end");
  await scene.settled();
  const kept = (await scene.serving()).filter((pod) => before.some((old) => old.container === pod.container));
  demand(kept.length === before.length - 1, "containers did not survive the crash");
  return `containerd and kubelet killed and gone for ${AWAY_MS / 1000} s: the containers went on`;
}
