import { secondsOf } from "../../src/model/text/duration.js";
import { TerraformVariable, Testing } from "cdktf";
import { Action, type ContainerProxy, ProblemError } from "../../src/index.js";
import { KubernetesFrontEnd, type KubernetesFrontEndProps } from "../../src/kubernetes/index.js";
import {
  bytesOf,
  FRONT_END_NAME,
  LABEL_NAME,
  labelProblems,
  nameProblems,
  type NameRule,
  OBJECT_NAME,
  quantityProblems,
  wholeCpus,
} from "../../src/kubernetes/names.js";
import { renderProxyConfig } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";
import { fileSync, IMAGE, proxy, site } from "./site.js";

const told = sayings("kubernetes");

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
    return told(error.problems).map(({ code, path }) => `${code} ${path}`);
  }
  return [];
}

describe("props", () => {
  test.each<[object, string]>([
    [{ name: "f".repeat(47) }, "kubernetes.bad-name name"],
    [{ namespace: "a.b" }, "kubernetes.bad-name namespace"],
    [{ tls: { secretName: "a/b" } }, "kubernetes.bad-name tls.secretName"],
    [{ namespace: undefined }, "config.missing-field namespace"],
    [{ proxy: {} }, "config.wrong-type proxy"],
    [{ replica: 2 }, "config.unknown-field replica"],
    [{ replicas: 0 }, "config.out-of-range replicas"],
    [{ autoscaling: { min: 3, max: 2 } }, "config.out-of-range autoscaling.max"],
    [{ replicas: 2, autoscaling: { min: 2, max: 3 } }, "kubernetes.bad-value replicas"],
    [{ resources: { cpuLimit: "two" } }, "kubernetes.bad-value resources.cpuLimit"],
    [{ ticketKeys: { secretName: "a/b" } }, "kubernetes.bad-name ticketKeys.secretName"],
    [{ imagePullSecrets: ["a", "b/c"] }, "kubernetes.bad-name imagePullSecrets[1]"],
    [{ nodeSelector: { disk: "very fast" } }, "kubernetes.bad-value nodeSelector.disk"],
    [{ nodePorts: { https: 0 } }, "config.out-of-range nodePorts.https"],
    [{ resources: { cpu: "0" } }, "kubernetes.bad-value resources.cpu"],
    [{ transferGrace: "ten hours" }, "kubernetes.bad-value transferGrace"],
    [{ transferGrace: "35999s" }, "kubernetes.short-grace transferGrace"],
    [{ volumes: [{ mountPath: "/", claimName: "a" }] }, "config.bad-file-path volumes[0].mountPath"],
    [{ volumes: [{ mountPath: "/a", claimName: "a/b" }] }, "kubernetes.bad-name volumes[0].claimName"],
    [{ volumes: [{ mountPath: "media", claimName: "media" }] }, "config.bad-file-path volumes[0].mountPath"],
    [{ tls: [{ secretName: "a" }, { secretName: "b" }] }, "kubernetes.bad-value stack/files"],
    [{ nodePorts: { web: 30_080 } }, "config.unknown-reference nodePorts.web"],
    [{ exposure: "clusterIP", nodePorts: { https: 30_443 } }, "kubernetes.bad-value nodePorts"],
    [{ labels: { team: "our team" } }, "kubernetes.bad-value labels.team"],
    [{ labels: { "app.kubernetes.io/name": "files" } }, "kubernetes.bad-name labels.app.kubernetes.io/name"],
    [{ tls: undefined }, "kubernetes.no-volume stack/proxy/Listeners/https.tls"],
  ])("%j is refused: %s", (props, problem) => {
    expect(refused(props).map((one) => one.replace(" stack/files.", " "))).toEqual([problem]);
  });

  test.each<[prop: string, props: (value: number) => object, min: number, max: number]>([
    ["replicas", (replicas) => ({ replicas }), 1, 1_000],
    [
      "autoscaling.min",
      (min) => ({ autoscaling: { min, max: Math.max(1, Math.min(min, 1_000)) } }),
      1,
      1_000,
    ],
    ["autoscaling.max", (max) => ({ autoscaling: { min: 1, max } }), 1, 1_000],
    ["autoscaling.cpuPercent", (cpuPercent) => ({ autoscaling: { min: 1, max: 2, cpuPercent } }), 1, 100],
    ["egressPorts[0]", (port) => ({ egressPorts: [port] }), 1, 65_535],
    ["nodePorts.https", (https) => ({ nodePorts: { https } }), 1, 65_535],
  ])("%s is a whole number in a range", (prop, props, min, max) => {
    for (const value of [min, max]) expect([value, ...refused(props(value))]).toEqual([value]);
    for (const value of [min - 1, max + 1, min + 0.5])
      expect([value, ...refused(props(value))]).toContain(`config.out-of-range stack/files.${prop}`);
  });

  test("small files fill a ConfigMap to its last byte", () => {
    const one = site();
    const config = one.frontEnd.manifests.find(({ kind }) => kind === "ConfigMap")!.data as Record<
      string,
      string
    >;
    const room = 1_048_576 - Buffer.byteLength(Object.values(config).join(""));
    const adding = (bytes: number) => (made: ContainerProxy) =>
      made.addFile("/srv/big.txt", "x".repeat(bytes));
    expect(refused({}, adding(room))).toEqual([]);
    expect(refused({}, adding(room + 1))).toEqual(["kubernetes.bad-value stack/files.proxy"]);
  });

  test.each([
    [{ transferGrace: 3600 }, "10h"],
    [{ transferGrace: "3600" }, "10h"],
    [{ resources: { cpu: 0.5 } }, "500m"],
    [{ resources: { memory: 512 } }, "512Mi"],
  ])("how a duration or quantity is written: %j", (props, example) => {
    const [one] = told(problemsOf(() => site(props as unknown as Partial<KubernetesFrontEndProps>)));
    const shown = expect.stringContaining(`"${example}"`);
    expect(one).toMatchObject({ allowed: shown, fix: shown });
  });

  test("an id that cannot be a name, unless there is a name", () => {
    const made = (name?: string) => () => {
      const stack = newStack();
      const tls = { secretName: "files-tls" };
      const props = { namespace: "files", proxy: proxy(stack), image: IMAGE, tls, name };
      return new KubernetesFrontEnd(stack, "Files", props);
    };
    expect(problemsOf(made()).map(({ code, path }) => [code, path])).toEqual([
      ["kubernetes.bad-name", "stack/Files.name"],
    ]);
    expect(made("files")).not.toThrow();
  });

  test("a value that Terraform knows only at apply", () => {
    const { stack } = site();
    const namespace = new TerraformVariable(stack, "namespace", { type: "string" }).stringValue;
    expect(refused({ namespace })).toEqual(["kubernetes.not-known stack/files.namespace"]);
    expect(refused({ resources: { memory: namespace }, imagePullSecrets: ["a", namespace] })).toEqual([
      "kubernetes.not-known stack/files.resources.memory",
      "kubernetes.not-known stack/files.imagePullSecrets[1]",
    ]);
  });
});

describe("what is said", () => {
  const said = (props: object, change: (proxy: ContainerProxy) => void = () => undefined) => {
    try {
      site(props as Partial<KubernetesFrontEndProps>, (stack) => {
        const made = proxy(stack);
        change(made);
        return made;
      });
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      return told(error.problems).map(({ message, received, allowed, fix }) => [
        message,
        received,
        allowed,
        fix,
      ]);
    }
    return [];
  };

  test("of ranges, each with its own", () => {
    const out = (received: number, from: number, to: number) => [
      "is out of range",
      String(received),
      `a whole number from ${from} to ${to}`,
      "Use a value in the allowed range.",
    ];
    const autoscaling = { min: 0, max: 1001, cpuPercent: 101 };
    expect(said({ autoscaling, egressPorts: [0] })).toEqual([
      out(0, 1, 1000),
      out(1001, 1, 1000),
      out(101, 1, 100),
      out(0, 1, 65_535),
    ]);
    expect(said({ replicas: 1001 })).toEqual([out(1001, 1, 1000)]);
  });

  test("of a volume with no source, and with two", () => {
    const volume = { mountPath: "/a" };
    const nfs = { server: "b", path: "/c" };
    const more = [undefined, "either `claimName` or `nfs`", "Set either `claimName` or `nfs`."];
    expect(said({ volumes: [volume, { ...volume, claimName: "a", nfs }] })).toEqual([
      ["has no source", ...more],
      ["has two sources", ...more],
    ]);
  });

  test("of a node port: the listeners that there are, without those on loopback", () => {
    const change = (one: ContainerProxy): void => {
      addServer(one, { port: 8080, address: "127.0.0.1" });
      addServer(one, { port: 8081 }, "third");
    };
    expect(said({ nodePorts: { more: 30_000 } }, change).map(([, , allowed]) => allowed)).toEqual([
      "https, third",
    ]);
  });

  test("of hidden clients, unless every listener is told of them", () => {
    const proxyProtocol = { from: ["10.0.0.0/8"] };
    const cluster = { externalTrafficPolicy: "Cluster" };
    expect(said(cluster, (one) => addServer(one, { port: 8080, proxyProtocol })).length).toBe(1);
    expect(said({ ...cluster, exposure: "clusterIP" })).toEqual([]);
  });
});

describe("a proxy that pods cannot run", () => {
  test.each<[string, (proxy: ContainerProxy) => void, string]>([
    [
      "a listener whose name a Service does not accept",
      (one) => addServer(one, { port: 8080, name: "More_Listeners" }),
      "kubernetes.bad-name stack/proxy/Listeners/more.name",
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
      "a metrics listener on an address of its own",
      (one) => one.addConfigOverride("metricsListener", { address: "10.0.0.8", port: 9181 }),
      "kubernetes.bad-address stack/proxy.metricsListener.address",
    ],
    [
      "a maintenance",
      (one) => one.addConfigOverride("maintenance", { graceMs: 0 }),
      "kubernetes.bad-value stack/proxy.maintenance",
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
      "an upstream on a Unix socket",
      (one) => route(one, Action.proxy(one.addUpstream("local", { url: "unix:/run/app.sock" }))),
      "kubernetes.loopback-upstream stack/proxy/Upstreams/local.url",
    ],
    [
      "checks of servers",
      (one) => {
        const servers = [{ url: "http://a" }, { url: "http://b" }];
        route(one, Action.proxy(one.addUpstream("far", { servers, health: { tcp: true } })));
      },
      "kubernetes.bad-value stack/proxy/Upstreams/far.health",
    ],
    [
      "roots for an upstream that no volume has",
      (one) => {
        const tls = { caFile: "/etc/secrets/a" };
        route(one, Action.proxy(one.addUpstream("far", { url: "https://far", tls })));
      },
      "kubernetes.no-volume stack/proxy/Upstreams/far.tls.caFile",
    ],
    [
      "a secret that no volume has",
      (one) =>
        route(
          one,
          Action.proxy(one.upstreams[0]!, { setHeadersFromCredential: { "X-A": "/etc/secrets/a" } }),
        ),
      "kubernetes.no-volume stack/proxy/VirtualServers/site/more.action.setHeadersFromCredential.X-A",
    ],
    [
      "an error page that no volume has",
      (one) => withErrorPage(one, "/etc/pages/down.html"),
      "kubernetes.no-volume stack/proxy/VirtualServers/paged.errorPages[0].file",
    ],
    [
      "a log file",
      (one) => one.addConfigOverride("logs.access", { path: "/var/log/portico/access.log" }),
      "kubernetes.no-volume stack/proxy.logs.access",
    ],
    [
      "a config with mistakes",
      (one) => one.addConfigOverride("workers", 0),
      "config.out-of-range stack/proxy.workers",
    ],
  ])("%s", (_, change, problem) => {
    expect(refused({}, change)).toEqual([problem]);
  });

  test("an error page may be in a volume, a file of the proxy's, or the config", () => {
    const file = "/etc/pages/down.html";
    const volumes = [{ mountPath: "/etc/pages", claimName: "pages" }];
    expect(refused({ volumes }, (one) => withErrorPage(one, file))).toEqual([]);
    const withFile = (one: ContainerProxy): void => {
      one.addFile(file, "<p>{{status}}");
      withErrorPage(one, file);
    };
    expect(refused({}, withFile)).toEqual([]);
  });

  test("a port is free from 1024 on", () => {
    const problem = "kubernetes.privileged-port stack/proxy/Listeners/more.port";
    expect(refused({}, (one) => addServer(one, { port: 1023 }))).toEqual([problem]);
    expect(refused({}, (one) => addServer(one, { port: 1024 }))).toEqual([]);
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
    expect(renderProxyConfig(stack).limits.connectionsMax).toBe(142);
  });

  test("media of the service without their volume", () => {
    const [first] = refused({}, undefined, (stack) => fileSync(stack).proxy);
    expect(first).toBe("kubernetes.no-volume stack/sync/Proxy/VirtualServers/application/media.action");
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

const withErrorPage = (one: ContainerProxy, file: string) =>
  one.addVirtualServer("paged", {
    serverNames: ["paged.example"],
    listeners: [one.listeners[0]!],
    errorPages: [
      { statuses: [502], file },
      { statuses: [404], html: "<p>Not here." },
    ],
  });

const route = (one: ContainerProxy, action: Action) =>
  one.virtualServers[0]!.addRoute("more", { path: "/more", action });

test.each([
  ["registry.example/portico", true],
  ["registry.example:5000/portico", true],
  ["registry.example/portico:latest", true],
  ["a:5000/b", true],
  ["registry.example/portico:0.1.0", false],
  ["a:latest-1", false],
  [`a:latest@sha256:${"0".repeat(64)}`, false],
  [`registry.example/portico@sha256:${"a".repeat(64)}`, false],
])("an image whose content may change is warned of: %s", (image, warned) => {
  const { frontEnd } = site({ image });
  const messages = frontEnd.node.metadata
    .map(({ data }) => String(data))
    .filter((text) => text.includes("rollback"));
  expect(told(messages.map((text) => text.replace(image, "IMAGE"))).length).toBe(warned ? 1 : 0);
  expect(() => Testing.synth(frontEnd.deployment.cdktfStack as never, true)).not.toThrow();
});

describe("what Kubernetes accepts", () => {
  const named = (rule: NameRule) => (name: string) => nameProblems("p", name, rule);
  const label = (value: unknown) => told(labelProblems("p", { key: value }));
  type Rule = [
    what: string,
    problems: (text: string) => readonly unknown[],
    taken: string[],
    refused: string[],
  ];
  test.each<Rule>([
    [
      "a name of a front end",
      named(FRONT_END_NAME),
      ["a", "a-b", "a1", "f".repeat(46)],
      ["", "1a", "a-", "-a", "A", "a.b", "f".repeat(47), "a\n"],
    ],
    [
      "a namespace",
      named(LABEL_NAME),
      ["1", "1a", "a-b", "f".repeat(63)],
      ["", "a.b", "-a", "a-", "f".repeat(64)],
    ],
    [
      "a name of an object",
      named(OBJECT_NAME),
      ["1", "a.b-c", "f".repeat(253)],
      ["", ".a", "a.", "A", "a/b", "f".repeat(254)],
    ],
    [
      "the key of a label",
      (key) => labelProblems("p", { [key]: "" }),
      ["a", "A", "a.b_c-D", "example.org/a", "x/A9", "a1/b"],
      ["", "-a", "a-", "_a", "a/", "/a", "A.org/a", "-x/a", "x-/a", "a/b/c", "a b", " a", "a\n", "x_y/a"],
    ],
    [
      "the value of a label",
      label,
      ["", "a", "a.b_c-D", "x".repeat(63)],
      ["-a", "a-", "a b", " a", "x".repeat(64)],
    ],
    [
      "CPUs",
      (text) => quantityProblems("p", "cpu", text),
      ["2", "16", "0.5", "1.125", "500m"],
      ["", "0", "0m", "0.0", "1.1234", "m", "1.", ".5", "500 m", "x2", "2x", "1.5m"],
    ],
    [
      "memory",
      (text) => quantityProblems("p", "memory", text),
      ["512Mi", "1G", "1073741824", "1k", "2Ki", "1Ti"],
      ["", "0", "0Mi", "1.5Gi", "512 Mi", "1m", "Mi", "1K", "1ki", "1i", "x1", "1Gix"],
    ],
  ])("%s", (_, problems, accepted, refused) => {
    expect(accepted.filter((text) => problems(text).length > 0)).toEqual([]);
    expect(refused.filter((text) => problems(text).length !== 1)).toEqual([]);
  });

  test("a label is text, and has a key of its own", () => {
    expect(label(5)).toMatchObject([{ code: "kubernetes.bad-value", path: "p.key" }]);
    expect(labelProblems("p", { key: "x" }, ["key"])).toMatchObject([{ code: "kubernetes.bad-name" }]);
  });

  test("quantities and durations in numbers", () => {
    const cpus = { 2: 2, "500m": 1, "1000m": 1, "1001m": 2, "0.5": 1, "2.5": 3 };
    expect(Object.keys(cpus).map(wholeCpus)).toEqual(Object.values(cpus));
    const bytes = {
      7: 7,
      "2k": 2e3,
      "2Ki": 2048,
      "30M": 3e7,
      "3Mi": 3 * 2 ** 20,
      "1G": 1e9,
      "1Gi": 2 ** 30,
      "1T": 1e12,
      "1Ti": 2 ** 40,
    };
    expect(Object.keys(bytes).map(bytesOf)).toEqual(Object.values(bytes));
    const seconds = { "90s": 90, "30m": 1_800, "10h": 36_000, "1s": 1, "9999999s": 9_999_999 };
    expect(Object.keys(seconds).map(secondsOf)).toEqual(Object.values(seconds));
    const none = ["", "0s", "01s", "10", "10 h", "h", "1d", "x1s", "1sx", "12345678s", "1.5h"];
    expect(none.map(secondsOf).filter((one) => one !== undefined)).toEqual([]);
  });
});
