import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { BUNDLE } from "../../build/paths.js";
import { proxyConfigText } from "../../src/render/index.js";
import { demand } from "./checks.js";
import { runAsClient } from "./clients.js";
import { frontEnd, NAME } from "./frontEnd.js";
import type { Scene } from "./scene.js";
import { MEDIA_PATH, SITE_HOST } from "./site.js";

/** Where the cloud's load balancer would listen: the clients' packets to it come to the node. */
export const PUBLIC_ADDRESS = "192.0.2.80";

/** Does what a cloud does for a Service of type LoadBalancer: says which address it has given it. */
export async function giveAddress(scene: Scene): Promise<void> {
  const status = { status: { loadBalancer: { ingress: [{ ip: PUBLIC_ADDRESS }] } } };
  const merge = ["--subresource=status", "--type=merge", "--patch", JSON.stringify(status)];
  await scene.kubectl("patch", "service", NAME, ...merge);
}

/** `portico check --live` by a client outside, on the ports that clients use. */
export async function expectedResponses(scene: Scene, folder: string): Promise<string> {
  await giveAddress(scene);
  const file = join(folder, "expected.json");
  writeFileSync(file, proxyConfigText(frontEnd({ revision: "1" }).config));
  const site = ["--host", SITE_HOST, "--connect", PUBLIC_ADDRESS, "--image-path", MEDIA_PATH];
  const { out, errors } = await runAsClient(
    process.execPath,
    BUNDLE,
    "check",
    file,
    "--live",
    "--json",
    ...site,
  );
  const checked = JSON.parse(out) as Checked;
  demand(checked.responses !== undefined, `${out} ${errors}`);
  const failed = checked.responses.filter(({ pass }) => !pass);
  demand(
    failed.length === 0,
    failed
      .map(({ name, request, expected, seen }) => `${name}: ${request}: ${seen}, not ${expected}`)
      .join("; "),
  );
  return `${checked.responses.length} of ${checked.responses.length} at ${PUBLIC_ADDRESS}: ${checked.responses.map(({ name }) => name).join(", ")}`;
}

interface Checked {
  readonly responses?: readonly {
    readonly name: string;
    readonly pass: boolean;
    readonly request: string;
    readonly expected: string;
    readonly seen: string;
  }[];
}
