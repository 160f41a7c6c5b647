import { TerraformVariable, Testing } from "cdktf";
import { Action, type ContainerProxy, ProblemError, TlsMaterial } from "../../src/index.js";
import { KubernetesFrontEnd, type KubernetesFrontEndProps } from "../../src/kubernetes/index.js";
import { renderProxyConfig } from "../../src/testing/index.js";
import { fileSync, IMAGE, proxy, site } from "./site.js";

/** `CODE PATH` of everything that is refused. */
function refused(
  props: object,
  change: (proxy: ContainerProxy) => void = () => undefined,
  make = proxy,
): string[] {
  try {
    site(props as Partial<KubernetesFrontEndProps>, (stack) => {
      const made = make(stack);
      change(made);
      return made;
    });
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    expect(error.problems.map(({ fix }) => fix)).not.toContain("");
    return error.problems.map(({ code, path }) => `${code} ${path}`);
  }
  return [];
}

describe("props", () => {
  test.each<[string, object, string]>([
    ["a name in upper case", { name: "Files" }, "kubernetes.bad-name stack/files.name"],
    ["a name that is too long", { name: "f".repeat(47) }, "kubernetes.bad-name stack/files.name"],
    ["a namespace with a dot", { namespace: "a.b" }, "kubernetes.bad-name stack/files.namespace"],
    [
      "a Secret with a slash",
      { tls: { secretName: "a/b" } },
      "kubernetes.bad-name stack/files.tls.secretName",
    ],
    ["no namespace", { namespace: undefined }, "config.missing-field stack/files.namespace"],
    ["a prop that does not exist", { replica: 2 }, "config.unknown-field stack/files.replica"],
    ["no pods", { replicas: 0 }, "config.out-of-range stack/files.replicas"],
    [
      "more pods at least than at most",
      { autoscaling: { min: 3, max: 2 } },
      "config.out-of-range stack/files.autoscaling.max",
    ],
    [
      "a fixed number with autoscaling",
      { replicas: 2, autoscaling: { min: 2, max: 3 } },
      "kubernetes.bad-value stack/files.replicas",
    ],
    [
      "words for memory",
      { resources: { memory: "512 MB" } },
      "kubernetes.bad-value stack/files.resources.memory",
    ],
    ["no CPU", { resources: { cpu: "0" } }, "kubernetes.bad-value stack/files.resources.cpu"],
    ["a grace in words", { transferGrace: "ten hours" }, "kubernetes.bad-value stack/files.transferGrace"],
    ["a grace below the drain", { transferGrace: "9h" }, "kubernetes.short-grace stack/files.transferGrace"],
    [
      "a volume without a source",
      { volumes: [{ mountPath: "/srv/media" }] },
      "kubernetes.bad-value stack/files.volumes[0]",
    ],
    [
      "a volume at a relative path",
      { volumes: [{ mountPath: "media", claimName: "media" }] },
      "config.bad-file-path stack/files.volumes[0].mountPath",
    ],
    [
      "two Secrets in one directory",
      { tls: [{ secretName: "a" }, { secretName: "b" }] },
      "kubernetes.bad-value stack/files",
    ],
    [
      "a policy that hides clients",
      { externalTrafficPolicy: "Cluster" },
      "kubernetes.client-address stack/files.externalTrafficPolicy",
    ],
    [
      "a node port of no listener",
      { nodePorts: { web: 30_080 } },
      "config.unknown-reference stack/files.nodePorts.web",
    ],
    [
      "a node port within the cluster",
      { exposure: "clusterIP", nodePorts: { https: 30_443 } },
      "kubernetes.bad-value stack/files.nodePorts",
    ],
    ["a label with spaces", { labels: { team: "our team" } }, "kubernetes.bad-value stack/files.labels.team"],
    [
      "a label by which pods are found",
      { labels: { "app.kubernetes.io/name": "files" } },
      "kubernetes.bad-name stack/files.labels.app.kubernetes.io/name",
    ],
    ["an https listener without a Secret", { tls: undefined }, "kubernetes.no-volume stack/proxy/https.tls"],
  ])("%s", (_, props, problem) => {
    expect(refused(props)).toEqual([problem]);
  });

  test.each([
    [{ transferGrace: 3600 }, "10h"],
    [{ transferGrace: "3600" }, "10h"],
    [{ resources: { cpu: 0.5 } }, "500m"],
    [{ resources: { memory: 512 } }, "512Mi"],
  ])("how a duration or quantity is written: %j", (props, example) => {
    expect(() => site(props as unknown as Partial<KubernetesFrontEndProps>)).toThrow(
      new RegExp(`allowed: .*"${example}".*\n +fix: .*"${example}"`),
    );
  });

  test("a value that Terraform knows only at apply", () => {
    const { stack } = site();
    const namespace = new TerraformVariable(stack, "namespace", { type: "string" }).stringValue;
    expect(refused({ namespace })).toEqual(["kubernetes.not-known stack/files.namespace"]);
  });
});

describe("a proxy that pods cannot run", () => {
  test.each<[string, (proxy: ContainerProxy) => void, string]>([
    [
      "a listener on a privileged port",
      (one) => addServer(one, { port: 80 }),
      "kubernetes.privileged-port stack/proxy/more.port",
    ],
    [
      "a listener on an address of a host",
      (one) => addServer(one, { port: 8080, address: "192.0.2.10" }),
      "kubernetes.bad-address stack/proxy/more.address",
    ],
    [
      "a listener whose name a Service does not accept",
      (one) => addServer(one, { port: 8080, name: "More_Listeners" }),
      "kubernetes.bad-name stack/proxy/more.name",
    ],
    [
      "a health listener that the kubelet does not reach",
      (one) => one.addConfigOverride("healthListener", { address: "127.0.0.1", port: 9180 }),
      "kubernetes.bad-address stack/proxy.healthListener.address",
    ],
    [
      "a health listener on an address of its own",
      (one) => one.addConfigOverride("healthListener", { address: "10.0.0.8", port: 9180 }),
      "kubernetes.bad-address stack/proxy.healthListener.address",
    ],
    [
      "no health listener",
      (one) => one.addConfigOverride("healthListener", undefined),
      "kubernetes.bad-value stack/proxy.healthListener",
    ],
    [
      "a health listener on a public address",
      (one) => one.addConfigOverride("healthListener", { address: "8.8.8.8", port: 9180 }),
      "config.public-health-listener stack/proxy.healthListener.address",
    ],
    [
      "an upstream on loopback",
      (one) => route(one, Action.proxy(one.addUpstream("local", { url: "http://127.0.0.1:8000" }))),
      "kubernetes.loopback-upstream stack/proxy/local.url",
    ],
    [
      "files that no volume has",
      (one) => route(one, Action.staticFiles("/srv/other")),
      "kubernetes.no-volume stack/proxy/site/more.action",
    ],
    [
      "a log file",
      (one) => one.addConfigOverride("logs.access", { path: "/var/log/portico/access.log" }),
      "kubernetes.no-volume stack/proxy.logs.access",
    ],
    [
      "more small files than a ConfigMap holds",
      (one) => one.addFile("/srv/big.txt", "x".repeat(1024 * 1024)),
      "kubernetes.bad-value stack/files.proxy",
    ],
    [
      "a config with mistakes",
      (one) => one.addConfigOverride("workers", 0),
      "config.out-of-range stack/proxy.workers",
    ],
    [
      "a certificate by ACME",
      (one) => {
        const material = TlsMaterial.acme({
          email: "a@example.org",
          agreeToTerms: true,
          names: ["example.org"],
        });
        addServer(one, { port: 8444, publishedPort: 443, tls: { material } });
        addServer(one, { port: 8080, publishedPort: 80 }, "http");
      },
      "kubernetes.acme stack/proxy/more.tls",
    ],
  ])("%s", (_, change, problem) => {
    expect(refused({}, change)).toEqual([problem]);
  });

  test("a proxy of another front end, unless its pods are the same", () => {
    const { stack, frontEnd } = site();
    const second = (id: string, memory: string) =>
      new KubernetesFrontEnd(stack, id, {
        namespace: id,
        proxy: stack.node.findChild("proxy") as ContainerProxy,
        image: IMAGE,
        tls: { secretName: "files-tls" },
        resources: { memory },
      });
    expect(() => second("other", "1Gi")).toThrow(
      "stack/other.proxy: also runs in the pods of another front end",
    );
    expect(second("same", "512Mi").problems).toEqual([]);
    expect(frontEnd.problems).toEqual([]);
    expect(renderProxyConfig(stack).limits.connectionsMax).toBe(255);
  });

  test("media of the service without their volume", () => {
    const [first] = refused({}, undefined, (stack) => fileSync(stack).proxy);
    expect(first).toBe("kubernetes.no-volume stack/sync/Proxy/application/media.action");
    const volumes = [{ mountPath: "/srv", claimName: "data" }];
    expect(refused({ volumes }, undefined, (stack) => fileSync(stack).proxy)).toEqual([]);
  });
});

const addServer = (
  one: ContainerProxy,
  listener: Parameters<ContainerProxy["addListener"]>[1],
  id = "more",
) => {
  const listeners = [one.addListener(id, listener)];
  one.addVirtualServer(`${id}-server`, { serverNames: ["_"], listeners, default: true });
};

const route = (one: ContainerProxy, action: Action) =>
  one.virtualServers[0]!.addRoute("more", { path: "/more", action });

test.each([
  ["registry.example/portico", true],
  ["registry.example:5000/portico", true],
  ["registry.example/portico:latest", true],
  ["registry.example/portico:0.1.0", false],
  [`registry.example/portico@sha256:${"a".repeat(64)}`, false],
])("an image whose content may change is warned of: %s", (image, warned) => {
  const { frontEnd } = site({ image });
  const messages = frontEnd.node.metadata
    .map(({ data }) => String(data))
    .filter((text) => text.includes("rollback"));
  expect(messages.length).toBe(warned ? 1 : 0);
  expect(() => Testing.synth(frontEnd.deployment.cdktfStack as never, true)).not.toThrow();
});
