import { Testing } from "cdktf";
import type { KubernetesFrontEndProps, Manifest } from "../../src/kubernetes/index.js";
import fc from "../../testkit/property.js";
import { fileSync, site } from "./site.js";
import { manifestsOf } from "./terraform.js";

/** Whatever is asked for, as far as it is accepted. */

const word = fc.stringMatching(/^[a-z]([a-z0-9-]{0,10}[a-z0-9])?$/);
const maybe = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined });
const annotations = maybe(fc.dictionary(word, fc.string({ maxLength: 20 }), { maxKeys: 2 }));
const labels = maybe(fc.dictionary(word, word, { maxKeys: 2 }));

const props: fc.Arbitrary<Partial<KubernetesFrontEndProps>> = fc.record({
  name: maybe(word),
  replicas: maybe(fc.integer({ min: 1, max: 1000 })),
  exposure: maybe(fc.constantFrom("loadBalancer", "nodePort", "clusterIP")),
  runtime: maybe(fc.constantFrom("image", "configMap")),
  runtimeBundle: fc.constant(__filename),
  ticketKeys: maybe(fc.record({ secretName: word, key: maybe(word) })),
  transferGrace: maybe(fc.constantFrom("10h", "700m", "86400s")),
  resources: maybe(
    fc.record({
      cpu: maybe(fc.constantFrom("250m", "1", "2.5")),
      cpuLimit: maybe(fc.constantFrom("3", "4000m")),
      memory: maybe(fc.constantFrom("256Mi", "1Gi")),
    }),
  ),
  networkPolicy: maybe(fc.boolean()),
  egressPorts: maybe(fc.array(fc.integer({ min: 1, max: 65_535 }), { maxLength: 3 })),
  labels,
  podAnnotations: annotations,
  serviceAnnotations: annotations,
  nodeSelector: labels,
  imagePullSecrets: maybe(fc.array(word, { maxLength: 2 })),
});

const made = (given: Partial<KubernetesFrontEndProps>) =>
  site(
    { ...given, volumes: [{ mountPath: "/srv/media", claimName: "media" }] },
    (stack) => fileSync(stack).proxy,
  );

// oxlint-disable-next-line typescript/no-explicit-any
const of = (all: readonly Manifest[], kind: string): any => all.find((one) => one.kind === kind);

test("manifests and resources are the same objects, and fit each other", () => {
  fc.assert(
    fc.property(props, (given) => {
      const { stack, frontEnd } = made(given);
      const { manifests } = frontEnd;
      const key = ({ kind, metadata }: Manifest) => `${kind} ${metadata.name}`;
      const sorted = (all: readonly Manifest[]) => [...all].sort((a, b) => (key(a) < key(b) ? -1 : 1));
      expect(sorted(manifestsOf(Testing.synth(stack)))).toEqual(sorted(manifests));
      expect(new Set(manifests.map(key)).size).toBe(manifests.length);

      const { selector, template } = of(manifests, "Deployment").spec;
      expect(template.metadata.labels).toMatchObject(selector.matchLabels);
      expect(of(manifests, "Service").spec.selector).toEqual(selector.matchLabels);
      expect(of(manifests, "PodDisruptionBudget").spec.selector).toEqual(selector);

      const pod = template.spec;
      const [container] = pod.containers;
      const volumes = pod.volumes.map(({ name }: { name: string }) => name);
      for (const { name } of container.volumeMounts) expect(volumes).toContain(name);
      const mounted = pod.volumes.flatMap(
        (one: { configMap?: { name: string } }) => one.configMap?.name ?? [],
      );
      const maps = manifests.filter(({ kind }) => kind === "ConfigMap").map(({ metadata }) => metadata.name);
      expect(mounted).toEqual(maps);
      const ports = container.ports.map(({ containerPort }: { containerPort: number }) => containerPort);
      for (const { targetPort } of of(manifests, "Service").spec.ports) expect(ports).toContain(targetPort);
      expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(36_000 + 15);
    }),
    { numRuns: 20 },
  );
});
