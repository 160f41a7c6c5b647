import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TerraformStack, Testing } from "cdktf";
import { Action, ContainerProxy } from "../../src/index.js";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import { terraformIsHere, Workspace } from "./workspace.js";

/**
 * The order in which the real Terraform makes and destroys the resources of a front end in a cluster. There is no
 * cluster here: each resource is a `terraform_data` with its id, lifecycle and dependencies, and a rollout is a command.
 */
const run = terraformIsHere() ? describe : describe.skip;

interface Resource {
  readonly lifecycle?: object;
  readonly depends_on?: readonly string[];
}

run("a rollout", () => {
  const workspace = new Workspace();
  afterAll(() => workspace.remove());

  /** Applies the front end whose config responds with a status; whether that worked. */
  function apply(status: number, rolledOut: boolean): boolean {
    const stack = new TerraformStack(Testing.app({ outdir: workspace.folder }), "portico");
    const proxy = new ContainerProxy(stack, "proxy");
    const listeners = [proxy.addListener("http", { port: 8080, publishedPort: 80 })];
    const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    server.addRoute("all", { path: "/", action: Action.respond(status) });
    new KubernetesFrontEnd(stack, "files", { namespace: "files", proxy, image: "portico:0.1.0" });
    const { resource } = JSON.parse(Testing.synth(stack)) as {
      resource: Record<string, Record<string, Resource>>;
    };
    const all = Object.entries(resource).flatMap(([type, ofType]) =>
      Object.entries(ofType).map(([id, { lifecycle, depends_on, ...rest }]) => {
        const rollout = {
          triggers_replace: [rest],
          provisioner: [{ "local-exec": { command: String(rolledOut) } }],
        };
        return [
          `${type}_${id}`,
          {
            input: rest,
            lifecycle,
            depends_on: depends_on?.map((one) => `terraform_data.${one.replace(".", "_")}`),
            ...(type === "kubernetes_deployment_v1" ? rollout : {}),
          },
        ] as const;
      }),
    );
    mkdirSync(workspace.stack, { recursive: true });
    const text = JSON.stringify({ resource: { terraform_data: Object.fromEntries(all) } });
    writeFileSync(join(workspace.stack, "main.tf.json"), text);
    try {
      workspace.terraform("init", "-input=false");
      workspace.terraform("apply", "-input=false", "-auto-approve");
      return true;
    } catch {
      return false;
    }
  }

  const configMaps = (): string[] =>
    workspace
      .terraform("state", "list")
      .split("\n")
      .filter((line) => line.includes("config_map"));

  test("leaves one config when it succeeds, two when it fails, and the first one when it is taken back", () => {
    expect(apply(200, true)).toBe(true);
    const first = configMaps();
    expect(first).toHaveLength(1);
    expect(apply(404, false)).toBe(false);
    expect(configMaps()).toHaveLength(2);
    expect(configMaps()).toEqual(expect.arrayContaining(first));
    expect(apply(200, true)).toBe(true);
    expect(configMaps()).toEqual(first);
    expect(apply(204, true)).toBe(true);
    expect(configMaps()).toHaveLength(1);
    expect(configMaps()).not.toEqual(first);
  });
});
