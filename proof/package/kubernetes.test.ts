import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Consumer } from "./consumer.js";

/** The entry point for clusters, whose peer only its users install. */
const PROVIDER = "@cdktf/provider-kubernetes";
const STRICT = ["--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--types", "node"];

let consumer: Consumer;
beforeAll(() => {
  consumer = new Consumer();
}, 60_000);
afterAll(() => consumer?.remove());

const ENTRIES = ["cdktf-portico", "cdktf-portico/testing", "cdktf-portico/runtime"];

test("nobody else needs the provider: the other entry points load without it, and this one names it", () => {
  for (const entry of ENTRIES) {
    expect(consumer.run(process.execPath, ["-p", `typeof require("${entry}")`])).toBe("object\n");
  }
  expect(() => consumer.run(process.execPath, ["-e", 'require("cdktf-portico/kubernetes")'])).toThrow(
    `Cannot find module '${PROVIDER}/`,
  );
});

test("the example of the page compiles, and gives Terraform and kubectl the same objects", () => {
  consumer.install(PROVIDER);
  const page = readFileSync(resolve(__dirname, "../../docs/kubernetes.md"), "utf8");
  consumer.write("main.ts", /^```ts\n([^]*?)^```$/m.exec(page)![1]!);
  expect(consumer.types([...STRICT, "main.ts"])).toBe("");
  consumer.bin("tsx", ["main.ts"]);
  const json = (file: string) => JSON.parse(readFileSync(join(consumer.folder, file), "utf8"));
  const { resource } = json("cdktf.out/stacks/cluster/cdk.tf.json");
  const { kind, items } = json("files.json");
  expect(kind).toBe("List");
  expect(items.map((item: { kind: string }) => item.kind)).toEqual([
    "ConfigMap",
    "NetworkPolicy",
    "Service",
    "Deployment",
    "PodDisruptionBudget",
  ]);
  expect(Object.keys(resource).sort()).toEqual([
    "kubernetes_config_map_v1",
    "kubernetes_deployment_v1",
    "kubernetes_network_policy_v1",
    "kubernetes_pod_disruption_budget_v1",
    "kubernetes_service_v1",
  ]);
}, 120_000);

test("the runtime fits into a ConfigMap beside the config", () => {
  const program = `
    const { Testing, TerraformStack } = require("cdktf");
    const { ContainerProxy } = require("cdktf-portico");
    const { KubernetesFrontEnd } = require("cdktf-portico/kubernetes");
    const stack = new TerraformStack(Testing.app(), "stack");
    const proxy = new ContainerProxy(stack, "proxy");
    const listeners = [proxy.addListener("http", { port: 8080, publishedPort: 80 })];
    proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    const props = { namespace: "files", proxy, image: "node:24.1.0-slim", runtime: "configMap" };
    const { manifests } = new KubernetesFrontEnd(stack, "files", props);
    console.log(Math.max(...manifests.map((one) => JSON.stringify(one).length)));`;
  const bytes = Number(consumer.run(process.execPath, ["-e", program]));
  expect(bytes).toBeGreaterThan(100_000);
  expect(bytes).toBeLessThan(1024 * 1024);
});
