import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../../testkit/waiting.js";
import { demand } from "./checks.js";
import type { Cluster } from "./cluster.js";
import { frontEnd, NAME, NAMESPACE, type Variant } from "./frontEnd.js";

export interface Pod {
  readonly name: string;
  readonly address: string;
  readonly ready: boolean;
  /** Asked to end. */
  readonly ending: boolean;
  readonly restarts: number;
  /** Of the container, as containerd knows it. */
  readonly container: string;
}

/** The front end in the cluster, and what is done to it. */
export class Scene {
  private current: Variant = { revision: "1" };

  constructor(
    readonly cluster: Cluster,
    private readonly folder: string,
  ) {}

  /** Applies the front end with something changed; waits for nothing. */
  async apply(change: Partial<Variant> = {}): Promise<void> {
    this.current = { ...this.current, ...change };
    const { ok, warned } = await this.cluster.apply(frontEnd(this.current).manifests);
    demand(ok && warned === "", warned);
  }

  /** Waits until the deployment is as it should be; pods of before may still be ending. */
  async settled(replicas = this.current.replicas ?? 2): Promise<void> {
    await this.kubectl("rollout", "status", `deployment/${NAME}`, "--timeout=120s");
    await eventually(async () => (await this.serving()).length === replicas, `for ${replicas} pods`, {
      ms: 30_000,
      everyMs: 250,
    });
  }

  /** Waits until the pods that were asked to end are gone. */
  async onlyServing(): Promise<void> {
    const ended = async (): Promise<boolean> => (await this.pods()).every(({ ending }) => !ending);
    await eventually(ended, "for pods to end", { ms: 60_000, everyMs: 500 });
  }

  kubectl(...args: readonly string[]): Promise<string> {
    return this.cluster.kubectl(["-n", NAMESPACE, ...args]);
  }

  /** All that there are, also those that end. */
  async pods(): Promise<Pod[]> {
    const { items } = await this.cluster.get<{ items: PodObject[] }>(
      "pods",
      "-n",
      NAMESPACE,
      "-l",
      `app.kubernetes.io/instance=${NAME}`,
    );
    return items.map(({ metadata, status }) => {
      const [container] = status.containerStatuses ?? [];
      return {
        name: metadata.name,
        address: status.podIP ?? "",
        ready: container?.ready === true,
        ending: metadata.deletionTimestamp !== undefined,
        restarts: container?.restartCount ?? 0,
        container: container?.containerID?.replace("containerd://", "") ?? "",
      };
    });
  }

  async serving(): Promise<Pod[]> {
    return (await this.pods()).filter((pod) => pod.ready && !pod.ending);
  }

  /** Process of a pod's container, as this machine numbers it. */
  processOf({ container }: Pod): number {
    const socket = join(this.folder, "containerd/c.sock");
    const tasks = execFileSync("ctr", ["-a", socket, "-n", "k8s.io", "tasks", "ls"], { encoding: "utf8" });
    const line = tasks.split("\n").find((one) => one.startsWith(container));
    demand(line !== undefined, `containerd runs no ${container}`);
    return Number(line.split(/\s+/)[1]);
  }

  /** Ports of the node that lead to the front end. */
  async nodePorts(): Promise<{ readonly http: number; readonly https: number }> {
    const { spec } = await this.cluster.get<ServiceObject>("service", NAME, "-n", NAMESPACE);
    const port = (wanted: string): number => spec.ports.find((one) => one.name === wanted)!.nodePort;
    return { http: port("http"), https: port("https") };
  }
}

/** How many pods were available at least while something is done. */
export async function leastAvailable(scene: Scene, work: () => Promise<void>): Promise<number> {
  const path = 'jsonpath={.status.availableReplicas}{" "}';
  const watch = scene.cluster.watch("deployment", NAME, "-n", NAMESPACE, "-o", path);
  const seen = text(watch.stdout!);
  try {
    await work();
  } finally {
    watch.kill();
  }
  return Math.min(...(await seen).trim().split(" ").map(Number));
}

interface PodObject {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string };
  readonly status: {
    readonly podIP?: string;
    readonly containerStatuses?: readonly {
      readonly ready: boolean;
      readonly restartCount: number;
      readonly containerID?: string;
    }[];
  };
}

interface ServiceObject {
  readonly spec: { readonly ports: readonly { readonly name: string; readonly nodePort: number }[] };
}
