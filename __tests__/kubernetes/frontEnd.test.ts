import { Testing } from "cdktf";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Action, type ContainerProxy } from "../../src/index.js";
import { KubernetesFrontEnd, type Manifest, type PodResources } from "../../src/kubernetes/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { expectGolden, folded } from "../render/golden.js";
import { newStack } from "../../testkit/stacks.js";
import { fileSync, fullSite, IMAGE, proxy, site, type Site } from "./site.js";
import { manifestsOf } from "./terraform.js";

type Tree = Record<string, never>;

/** The object of a kind; deep fields are read without types, as a cluster has them. */
// oxlint-disable-next-line typescript/no-explicit-any
const of = ({ frontEnd }: Site, kind: string): any => frontEnd.manifests.find((one) => one.kind === kind);
const podOf = (one: Site) => of(one, "Deployment").spec.template.spec;

/** Names that the provider has in another way, where they are a user's own. */
const calledAsLists = (): Site =>
  site(
    {
      labels: { ports: "a", containers: "b" },
      podAnnotations: { volumes: "c" },
      serviceAnnotations: { metrics: "d" },
      nodeSelector: { tolerations: "e" },
    },
    (stack) => {
      const one = proxy(stack);
      one.addFile("/srv/www/ports", "f");
      return one;
    },
  );

/** The objects as lines, with the config as a part of them; `render/` has its text. */
function linesOf({ frontEnd }: Site): string {
  const whole = JSON.stringify(
    frontEnd.manifests,
    (key, value: unknown) => (key === "portico.json" ? (JSON.parse(value as string) as unknown) : value),
    2,
  );
  // What a compressed file looks like differs between versions of Node.
  const fixed = whole.replace(/(files-runtime-)\w+/g, "$1HASH").replace(/("portico.mjs.gz": ").*"/, '$1…"');
  // A comma tells the last of several only, which may be another one.
  return `${folded(fixed.split("\n"))
    .map((line) => line.replace(/,$/, ""))
    .join("\n")}\n`;
}

describe("the manifests", () => {
  test("of the smallest front end, and what the whole service with everything that has a prop has besides", () => {
    const smallest = linesOf(site());
    expectGolden("kubernetes-smallest.txt", smallest);
    expectGolden("kubernetes-full.diff", linesOf(fullSite()), smallest);
  });

  test("are a List that kubectl reads", () => {
    const { frontEnd } = site();
    const list = { apiVersion: "v1", kind: "List", items: frontEnd.manifests };
    expect(frontEnd.manifestsText).toBe(`${JSON.stringify(list, null, 2)}\n`);
    const config: string = of(site(), "ConfigMap").data["portico.json"];
    expect(config).toBe(`${JSON.stringify(JSON.parse(config), null, 2)}\n`);
  });

  test.each([
    ["the smallest front end", () => site()],
    ["the whole service", fullSite],
    ["a Service within the cluster", () => site({ exposure: "clusterIP", networkPolicy: false })],
    ["data that is called as lists are", calledAsLists],
  ])("are the same objects as the resources: %s", (_, make) => {
    const { stack, frontEnd } = make();
    const byKind = (all: readonly Manifest[]) =>
      [...all].sort((a, b) => (`${a.kind}${a.metadata.name}` < `${b.kind}${b.metadata.name}` ? -1 : 1));
    expect(byKind(manifestsOf(Testing.synth(stack)))).toEqual(byKind(frontEnd.manifests));
  });

  test("have texts that Terraform takes as they are", () => {
    const { resource } = JSON.parse(Testing.synth(fullSite().stack));
    const [service] = Object.values<{ metadata: { annotations: object } }>(resource.kubernetes_service_v1);
    expect(Object.values(service!.metadata.annotations)).toEqual(["100%%{y}"]);
  });

  test("have the same text every time", () => {
    expect(fullSite().frontEnd.manifestsText).toBe(fullSite().frontEnd.manifestsText);
  });
});

test("the Service has no port of a listener that only the pod itself reaches", () => {
  const { ports } = of(
    site({}, (stack) => {
      const one = proxy(stack);
      const listeners = [one.addListener("inside", { port: 8080, address: "127.0.0.1" })];
      one.addVirtualServer("inside-server", { serverNames: ["_"], listeners, default: true });
      return one;
    }),
    "Service",
  ).spec;
  expect(ports.map(({ name }: { name: string }) => name)).toEqual(["https"]);
});

test("metrics have a port of the pod, which pods of the cluster reach, unless they are for the pod alone", () => {
  const metrics = (metricsListener: object): Site =>
    site({}, (stack) => {
      const one = proxy(stack);
      one.addConfigOverride("metricsListener", metricsListener);
      return one;
    });
  const open = metrics({ address: "0.0.0.0", port: 9181, anyAddress: true });
  expect(podOf(open).containers[0].ports).toContainEqual({
    ...{ name: "metrics", containerPort: 9181, protocol: "TCP" },
  });
  expect(of(open, "NetworkPolicy").spec.ingress[1]).toEqual({
    from: [{ namespaceSelector: {} }],
    ports: [{ port: 9181, protocol: "TCP" }],
  });
  const inPod = metrics({ address: "127.0.0.1", port: 9181 });
  expect(JSON.stringify(podOf(inPod).containers[0].ports)).not.toContain("metrics");
  expect(of(inPod, "NetworkPolicy").spec.ingress).toHaveLength(1);
});

test("a ConfigMap brings the runtime of this package to an image without one", () => {
  const { frontEnd } = site({ runtime: "configMap" });
  const { binaryData } = frontEnd.manifests.find(({ metadata }) => metadata.name.includes("runtime"))!;
  const [packed] = Object.values(binaryData as Record<string, string>);
  const runtime = readFileSync(join(__dirname, "../../dist/portico.mjs"));
  expect(gunzipSync(Buffer.from(packed!, "base64")).equals(runtime)).toBe(true);
});

describe("the config", () => {
  test("is the one that tests of the stack see", () => {
    const one = site();
    const { data } = of(one, "ConfigMap");
    const { $schema: _, ...config } = JSON.parse(data["portico.json"]);
    expect(renderProxyConfig(one.stack)).toMatchObject({
      ...config,
      healthListener: { address: "0.0.0.0", port: 9180 },
      timeouts: { drainDelayMs: 15_000, drainMs: 36_000_000 },
      logs: { access: { stream: "stdout" }, error: { stream: "stderr" } },
      workers: 1,
    });
    expect(data["dhparam2048.pem"]).toContain("BEGIN DH PARAMETERS");
  });

  test("in another ConfigMap is in other pods: the name is in their template, and the old one stays for the old ones", () => {
    const changed = (status: number): Site =>
      site({}, (stack) => {
        const one = proxy(stack);
        one.virtualServers[0]!.addRoute("more", { path: "/more", action: Action.respond(status) });
        return one;
      });
    const names = [changed(204), changed(404), changed(204)].map((one) => {
      const { name } = of(one, "ConfigMap").metadata;
      expect(podOf(one).volumes[0]).toEqual({ name: "config", configMap: { name } });
      return name as string;
    });
    expect(names[0]).toBe(names[2]);
    expect(names[0]).not.toBe(names[1]);
    const { resource } = JSON.parse(Testing.synth(changed(204).stack));
    const [configMap] = Object.values<Tree>(resource.kubernetes_config_map_v1);
    expect(configMap).toMatchObject({ lifecycle: { create_before_destroy: true }, immutable: true });
    const [id] = Object.keys(resource.kubernetes_config_map_v1);
    expect(id).toContain(names[0]!.slice(-10));
    const [deployment] = Object.values<Tree>(resource.kubernetes_deployment_v1);
    expect(deployment!.depends_on).toContain(`kubernetes_config_map_v1.${id}`);
  });

  test("has the settings that the proxy was given", () => {
    const one = site({ transferGrace: "10m" }, (stack) => {
      const made = proxy(stack);
      made.addConfigOverride("timeouts.drainMs", 600_000);
      made.addConfigOverride("workers", 3);
      return made;
    });
    expect(renderProxyConfig(one.stack)).toMatchObject({ workers: 3, timeouts: { drainMs: 600_000 } });
    expect(podOf(one).terminationGracePeriodSeconds).toBe(600 + 15 + 15);
  });

  test("that changes afterwards is reported when the app is synthesized", () => {
    const { stack, frontEnd } = site();
    expect(() => Testing.synth(stack, true)).not.toThrow();
    const server = renderedServer(stack);
    server.addRoute("late", { path: "/late", action: Action.respond(204) });
    expect(() => Testing.synth(stack, true)).toThrow("kubernetes.changed-later");
    expect(frontEnd.manifestsText).not.toContain("/late");
  });
});

const renderedServer = (stack: Site["stack"]) =>
  (stack.node.findChild("proxy") as ReturnType<typeof proxy>).virtualServers[0]!;

describe("the pods", () => {
  test("stop when their transfers have ended: the grace covers delay and drain", () => {
    expect(podOf(site()).terminationGracePeriodSeconds).toBe(36_000 + 15 + 15);
    expect(podOf(site({ transferGrace: "11h" })).terminationGracePeriodSeconds).toBe(39_600 + 15 + 15);
  });

  test("have a grace of whole seconds that is long enough, whatever the times of the proxy are", () => {
    const one = site({}, (stack) => {
      const made = proxy(stack);
      made.addConfigOverride("timeouts", { drainMs: 2_000_001, drainDelayMs: 1_001_000 });
      return made;
    });
    expect(podOf(one).terminationGracePeriodSeconds).toBe(2001 + 1001 + 15);
    const other = site({}, (stack) => {
      const made = proxy(stack);
      made.addConfigOverride("timeouts", { drainMs: 1, drainDelayMs: 1 });
      return made;
    });
    expect(podOf(other).terminationGracePeriodSeconds).toBe(1 + 1 + 15);
  });

  test("are two, unless said otherwise", () => {
    const replicasOf = (props: { replicas?: number }): unknown => of(site(props), "Deployment").spec.replicas;
    expect([{}, { replicas: 1 }, { replicas: 5 }].map(replicasOf)).toEqual([2, 1, 5]);
  });

  test("become more when they use 70 % of the CPUs that are kept for them, unless said otherwise", () => {
    const metricsOf = (cpuPercent?: number): unknown =>
      of(site({ autoscaling: { min: 2, max: 3, cpuPercent } }), "HorizontalPodAutoscaler").spec.metrics;
    const at = (averageUtilization: number): unknown => [
      { type: "Resource", resource: { name: "cpu", target: { type: "Utilization", averageUtilization } } },
    ];
    expect([metricsOf(), metricsOf(71)]).toEqual([at(70), at(71)]);
  });

  test("have a worker for each CPU that is kept for them", () => {
    const { stack } = site({ resources: { cpu: "2500m" } });
    expect(renderProxyConfig(stack).workers).toBe(3);
    expect(renderProxyConfig(site({ resources: { cpu: "2", cpuLimit: "2" } }).stack).workers).toBe("auto");
  });

  test("have a limit of memory in any case, and one of CPUs where it is given", () => {
    const resourcesOf = (resources: PodResources): unknown =>
      podOf(site({ resources })).containers[0].resources;
    const requests = { cpu: "2", memory: "1Gi" };
    expect(resourcesOf(requests)).toStrictEqual({ requests, limits: { memory: "1Gi" } });
    expect(resourcesOf({ ...requests, cpuLimit: "3" })).toStrictEqual({
      requests,
      limits: { cpu: "3", memory: "1Gi" },
    });
  });

  describe("have limits that suit their memory", () => {
    const limitsOf = (
      resources: PodResources | undefined,
      own: (made: ContainerProxy) => void = () => undefined,
    ): unknown[] => {
      const one = site(resources === undefined ? {} : { resources }, (stack) => {
        const made = proxy(stack);
        own(made);
        return made;
      });
      const { connectionsMax, concurrentStreamsMax } = renderProxyConfig(one.stack).limits;
      return [connectionsMax, concurrentStreamsMax];
    };

    test.each<[string, PodResources | undefined, number, number?]>([
      ["the default", undefined, 142],
      ["256 MiB", { memory: "256Mi" }, 64],
      ["1 GiB and two workers", { cpu: "2", memory: "1Gi" }, 146],
      ["workers by a limit of CPUs", { cpuLimit: "1500m", memory: "1Gi" }, 146],
      ["as many workers as memory has room for", { cpuLimit: "64", memory: "256Mi" }, 29],
      ["decimal units", { memory: "512M" }, 134],
      ["bytes", { memory: "536870912" }, 142],
      ["less than a worker needs", { memory: "20Mi" }, 1],
      ["room for more streams", { memory: "8Gi" }, 1_034, 68],
      ["more than any limit", { memory: "1Ti" }, 16_384, 128],
    ])("%s", (_, resources, connections, streams = 16) => {
      expect(limitsOf(resources)).toEqual([connections, streams]);
    });

    test("by the proxy's own number of workers", () => {
      const workers = (value: unknown) =>
        limitsOf(undefined, (made) => made.addConfigOverride("workers", value));
      expect([workers(2), workers("auto")]).toEqual([
        [68, 16],
        [19, 16],
      ]);
    });

    test("unless the proxy has its own, each by itself", () => {
      const stack = newStack();
      const limits = { connectionsMax: 9_000, requestLineBytesMax: 1_024 };
      const { proxy: own } = fileSync(stack, { limits });
      new KubernetesFrontEnd(stack, "files", {
        namespace: "files",
        proxy: own,
        image: IMAGE,
        tls: { secretName: "files-tls" },
        volumes: [{ mountPath: "/srv/media", claimName: "media" }],
      });
      expect(renderProxyConfig(stack).limits).toMatchObject({ ...limits, concurrentStreamsMax: 16 });
      expect(
        limitsOf(undefined, (made) => made.addConfigOverride("limits.concurrentStreamsMax", 100)),
      ).toEqual([142, 100]);
    });
  });

  test("accept the taints that are given, of any effect", () => {
    const tolerations = [
      { key: "edge", operator: "Exists", effect: "NoSchedule" },
      { key: "edge", operator: "Equal", value: "yes", effect: "PreferNoSchedule" },
      { effect: "NoExecute", operator: "Exists" },
    ] as const;
    expect(podOf(site({ tolerations })).tolerations).toEqual(tolerations);
  });

  test("have a volume for each Secret with a certificate", () => {
    const more = ["b", "c"].map((secretName) => ({ secretName, directory: `/run/${secretName}` }));
    const tls = [{ secretName: "a" }, ...more];
    const volumes = podOf(site({ tls })).volumes as { name: string; secret?: { secretName: string } }[];
    expect(
      volumes.flatMap(({ name, secret }) => (secret === undefined ? [] : [[name, secret.secretName]])),
    ).toEqual([
      ["tls", "a"],
      ["tls-2", "b"],
      ["tls-3", "c"],
    ]);
  });

  test("unpack the runtime that the ConfigMap holds", () => {
    const one = fullSite();
    const packed = one.frontEnd.manifests.find((manifest) => "binaryData" in manifest)!;
    const { "portico.mjs.gz": data } = packed.binaryData as Record<string, string>;
    const folder = mkdtempSync(join(tmpdir(), "portico-unpack-"));
    writeFileSync(join(folder, "portico.mjs.gz"), Buffer.from(data!, "base64"));
    const [unpack] = podOf(one).initContainers;
    const [node, option, program] = unpack.command as [string, string, string];
    expect([node, option]).toEqual(["node", "-e"]);
    const [from, to] = unpack.volumeMounts.map(({ mountPath }: { mountPath: string }) => mountPath);
    const here = program.replace(`${from}/`, `${folder}/`).replace(`${to}/`, `${folder}/`);
    execFileSync(process.execPath, [option, here]);
    expect(readFileSync(join(folder, "portico.mjs"))).toEqual(readFileSync(`${__dirname}/site.ts`));
    expect(podOf(one).containers[0]).toMatchObject({
      command: ["node", `${to}/portico.mjs`],
      args: ["serve", "/etc/portico/portico.json"],
    });
    rmSync(folder, { recursive: true });
  });

  test("see every file that the config names", () => {
    const one = fullSite();
    const places = podOf(one).containers[0].volumeMounts.map(({ mountPath }: Tree) => mountPath) as string[];
    expect(places).toEqual([
      "/etc/portico/portico.json",
      "/etc/portico/dhparam2048.pem",
      "/usr/share/portico/default/index.html",
      "/usr/lib/portico",
      "/etc/portico/tls",
      "/etc/portico/ticket-keys",
      "/srv/media",
      "/srv/avatars",
    ]);
    expect(renderProxyConfig(one.stack).ticketKeys).toMatchObject({
      file: "/etc/portico/ticket-keys/secret",
      rotateMs: 3_600_000,
    });
  });
});

describe("the Service", () => {
  test("publishes the ports that clients use, once for both families", () => {
    const one = site({}, (stack) => {
      const made = proxy(stack);
      const tls = made.listeners[0]!.tls!;
      const https6 = made.addListener("https6", { address: "::", port: 8443, publishedPort: 443, tls });
      made.addVirtualServer("site6", { serverNames: ["_"], listeners: [https6], default: true });
      return made;
    });
    const { spec } = of(one, "Service");
    expect(spec.ports).toEqual([{ name: "https", port: 443, targetPort: 8443, protocol: "TCP" }]);
    expect(spec).toMatchObject({ type: "LoadBalancer", externalTrafficPolicy: "Local" });
    expect(spec.ipFamilyPolicy).toBe("PreferDualStack");
  });

  test("may lead through other nodes where the PROXY protocol names the client", () => {
    const one = site({ externalTrafficPolicy: "Cluster" }, (stack) => {
      const made = proxy(stack);
      made.addConfigOverride("listeners[0].proxyProtocol", { from: ["10.0.0.0/8"] });
      // Nobody from elsewhere reaches it.
      const listeners = [made.addListener("inside", { port: 8080, address: "127.0.0.1" })];
      made.addVirtualServer("inside-server", { serverNames: ["_"], listeners, default: true });
      return made;
    });
    expect(of(one, "Service").spec.externalTrafficPolicy).toBe("Cluster");
  });

  test.each([
    ["loadBalancer", "LoadBalancer", "Local"],
    ["nodePort", "NodePort", "Local"],
    ["clusterIP", "ClusterIP", undefined],
  ] as const)("is of the type that its exposure says: %s", (exposure, type, externalTrafficPolicy) => {
    expect(of(site({ exposure, networkPolicy: false }), "Service").spec).toMatchObject({
      type,
      ...(externalTrafficPolicy && { externalTrafficPolicy }),
    });
  });

  test("has no policy for addresses where only the cluster reaches it", () => {
    expect(of(site({ exposure: "clusterIP" }), "Service").spec).not.toHaveProperty("externalTrafficPolicy");
  });
});

describe("the network policy", () => {
  test("names the ports of listeners, upstreams and DNS", () => {
    const { spec } = of(fullSite(), "NetworkPolicy");
    const ports = (rules: { ports: { port: number }[] }[]) =>
      rules.flatMap((rule) => rule.ports.map(({ port }) => port));
    expect(ports(spec.ingress)).toEqual([8080, 8443]);
    expect(ports(spec.egress)).toEqual([53, 53, 8000, 8080, 8081, 8082]);
  });

  test("can be left out", () => {
    expect(of(site({ networkPolicy: false }), "NetworkPolicy")).toBeUndefined();
  });
});

test("the service in a cluster responds as on a host", () => {
  const { stack } = site(
    { volumes: [{ mountPath: "/srv/media", claimName: "media" }] },
    (one) => fileSync(one).proxy,
  );
  const at = (url: string) => resolve(stack, url);
  expect(at("http://files.example.org/sync/x")).toMatchObject({
    kind: "redirect",
    location: "https://files.example.org/sync/x",
  });
  expect(at("https://files.example.org/sync/x")).toMatchObject({ upstreamUrl: "http://web.sync.svc:8000" });
  expect(at("https://files.example.org/synchttp/x")).toMatchObject({ requestLine: "GET /x HTTP/1.1" });
  expect(at("https://files.example.org/syncmedia/a.png")).toMatchObject({ file: "/srv/media/a.png" });
  expect(at("http://192.0.2.1/")).toMatchObject({ file: "/usr/share/portico/default/index.html" });
});
