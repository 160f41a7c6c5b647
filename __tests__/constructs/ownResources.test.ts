import { DefaultTokenResolver, StringConcat, type TerraformResource, Tokenization } from "cdktf";
import * as kubernetes from "../../src/constructs/providers/cdktn/kubernetesResources.js";
import * as local from "../../src/constructs/providers/cdktn/localResources.js";
import * as tls from "../../src/constructs/providers/cdktn/tlsResources.js";
import { newStack } from "../../testkit/stacks.js";

/** Resources of `cdktn-portico`, which are written from the providers' schemas: everything has the provider's name. */

type Made = TerraformResource & Record<string, unknown>;
type Type = new (scope: unknown, id: string, config: object) => Made;
const TYPES = { ...kubernetes, ...local, ...tls } as unknown as Record<string, Type>;

const resolved = (scope: Made, value: unknown): unknown =>
  Tokenization.resolve(value, {
    scope,
    resolver: new DefaultTokenResolver(new StringConcat()),
    preparing: false,
  });

/** As Terraform gets it. */
const written = (one: Made): object => {
  const { resource } = resolved(one, one.toTerraform()) as { resource: Record<string, { x: object }> };
  return resource[one.terraformResourceType]!.x;
};

/** As a name of either language: `contentBase64Sha256`, `content_base64sha256`. */
const plain = (name: string): string => name.replaceAll("_", "").toLowerCase();

test.each([
  ["ConfigMapV1", "kubernetes_config_map_v1", "annotations labels data binaryData"],
  [
    "DeploymentV1",
    "kubernetes_deployment_v1",
    "annotations labels limits matchLabels nodeSelector options requests volumeAttributes",
  ],
  ["HorizontalPodAutoscalerV2", "kubernetes_horizontal_pod_autoscaler_v2", "annotations labels matchLabels"],
  ["NetworkPolicyV1", "kubernetes_network_policy_v1", "annotations labels matchLabels"],
  ["PodDisruptionBudgetV1", "kubernetes_pod_disruption_budget_v1", "annotations labels matchLabels"],
  ["ServiceV1", "kubernetes_service_v1", "annotations labels selector"],
])("%s is a %s, and keys of its %s are data", (name, type, maps) => {
  const stack = newStack();
  const data = Object.fromEntries(maps.split(" ").map((map) => [map, { "a.B": "c", someKey: "d" }]));
  const made = new TYPES[name]!(stack, "x", { ...data, spec: { someField: [{ ...data, toPorts: 1 }] } });
  const snake = (text: string): string => text.replace(/[A-Z]/g, (one) => `_${one.toLowerCase()}`);
  const renamed = Object.fromEntries(Object.entries(data).map(([map, value]) => [snake(map), value]));
  expect(made.terraformResourceType).toBe(type);
  expect(written(made)).toEqual({
    ...{ ...renamed, spec: { some_field: [{ ...renamed, to_ports: 1 }] } },
    "//": expect.anything() as unknown,
  });
});

test.each([
  ["File", "local_file"],
  ["SensitiveFile", "local_sensitive_file"],
  ["PrivateKey", "tls_private_key"],
  ["SelfSignedCert", "tls_self_signed_cert"],
])("%s is a %s, whose attributes are read and changed by their names", (name, type) => {
  const stack = newStack();
  const made = new TYPES[name]!(stack, "x", {});
  const members = Object.entries(Object.getOwnPropertyDescriptors(TYPES[name]!.prototype));
  const read = members.filter(([, { get }]) => get !== undefined).map(([member]) => member);
  expect(read.length).toBeGreaterThan(5);
  for (const member of read) {
    const [, attribute] = new RegExp(`^\\$\\{${type}\\.x\\.(\\w+)\\}$`).exec(
      String(resolved(made, made[member])),
    )!;
    expect(plain(attribute!)).toBe(plain(member));
  }
  const changed = members.filter(([, { set }]) => set !== undefined).map(([member]) => member);
  for (const member of changed) made[member] = `${member}!`;
  expect(changed.length).toBeGreaterThan(0);
  for (const member of changed) {
    const [attribute] = Object.entries(written(made)).find(([, value]) => value === `${member}!`)!;
    expect(plain(attribute)).toBe(plain(member));
  }
});
