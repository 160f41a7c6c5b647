import { readFileSync } from "node:fs";
import { demand } from "./checks.js";
import type { Cluster } from "./cluster.js";
import { frontEnd, fullFrontEnd } from "./frontEnd.js";
import type { Scene } from "./scene.js";

/** What the API server says of the manifests, and what the kernel says of the pods. */

export async function strictlyValid(cluster: Cluster): Promise<string> {
  const strict = ["--server-side", "--dry-run=server", "--validate=strict"];
  const seen: string[] = [];
  for (const all of [frontEnd({ revision: "1" }).manifests, fullFrontEnd()]) {
    const { ok, warned } = await cluster.apply(all, ...strict);
    demand(ok && warned === "", warned);
    seen.push(...all.map(({ kind }) => kind));
  }
  return `${seen.length} objects without a warning: ${[...new Set(seen)].join(", ")}`;
}

export async function confined(scene: Scene): Promise<string> {
  const pods = await scene.serving();
  for (const pod of pods) {
    const pid = scene.processOf(pod);
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const field = (name: string): string => new RegExp(`^${name}:\\s+(.*)$`, "m").exec(status)?.[1] ?? "";
    const [root] = readFileSync(`/proc/${pid}/mountinfo`, "utf8")
      .split("\n")
      .filter((line) => line.split(" ")[4] === "/");
    const options = root?.split(" ")[5]?.split(",") ?? [];
    demand(!/^0\s|\s0\s/.test(`${field("Uid")} `), `${pod.name} runs as root: ${field("Uid")}`);
    for (const set of ["CapPrm", "CapEff", "CapBnd"])
      demand(/^0+$/.test(field(set)), `${pod.name} has capabilities: ${set} ${field(set)}`);
    demand(field("NoNewPrivs") === "1", `${pod.name} may gain privileges`);
    demand(field("Seccomp") === "2", `${pod.name} may use every system call`);
    demand(options.includes("ro"), `the root of ${pod.name} is ${options.join(",")}`);
  }
  return `${pods.length} pods: not root, no capabilities, no new privileges, system calls filtered, read-only root`;
}
