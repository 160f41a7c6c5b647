import type { TerraformStack } from "cdktf";
import {
  Application,
  ContainerFrontEnd,
  type ContainerProxy,
  DEFAULT_HOST_PATHS,
  Delivery,
  FrontEnd,
  FrontEndPair,
  Mode,
  TlsMaterial,
  type TlsOptions,
} from "../../src/index.js";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import type { ProxyConfig } from "../../src/model/index.js";
import { renderProxyConfig, resolve, synthesizedFiles } from "../../src/testing/index.js";
import { IMAGE } from "../kubernetes/site.js";
import { sayings } from "../../testkit/sayings.js";
import { KubernetesProvider, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

/** TLS without an HTTP port: nothing of a deployment opens, asks, or leads from one. */

const said = sayings("tls-alone");

const NAME = "files.example.org";
const PAGE = DEFAULT_HOST_PATHS.defaultPageDirectory;
const service = { runtimeBundle: __filename };
const host = { address: "192.0.2.10", ipv6Address: "2001:db8::10", publicName: NAME };
const common = { host, firewall: {}, activation: {}, service };
const delivery = Delivery.ssh({ hostKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" });
const hosts = ["192.0.2.11", "192.0.2.12"].map((address) => ({ address, interface: "eth0", delivery }));
const containers = { serverNames: [NAME], upstreams: { web: { url: "http://immich-server:2283" } } };

/** Each front end on a host that takes a mode. */
const ON_HOSTS = {
  "an ordinary application": (stack, mode) =>
    new FrontEnd(stack, "app", { ...common, mode, application: Application.server("http://127.0.0.1:3000") }),
  "the file-sync service": (stack, mode) =>
    new FrontEnd(stack, "app", {
      ...common,
      mode,
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
      rootRedirect: true,
    }),
  "an application with its own `/`": (stack, mode) =>
    new FrontEnd(stack, "app", { ...common, mode, application: Application.nextcloud() }),
  "the first host of a pair": (stack, mode) => pair(stack, mode).frontEnds[0],
  "the second host of a pair": (stack, mode) => pair(stack, mode).frontEnds[1],
} satisfies Record<string, (stack: TerraformStack, mode: Mode) => FrontEnd>;

function pair(stack: TerraformStack, mode: Mode): FrontEndPair {
  return new FrontEndPair(stack, "pair", {
    hosts: hosts as [(typeof hosts)[0], (typeof hosts)[0]],
    virtualAddress: "192.0.2.20",
    publicName: NAME,
    mode,
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
    firewall: {},
    service,
  });
}

const portsOf = ({ listeners }: ProxyConfig): number[] => [...new Set(listeners.map(({ port }) => port))];

describe.each(Object.entries(ON_HOSTS))("%s", (_, make) => {
  const made = (options: TlsOptions) => {
    const stack = newStack();
    const front = make(stack, Mode.tls(options));
    synthesize(stack);
    const texts = new Map(
      synthesizedFiles(front).map(({ path, content, placeholder }) => [
        path.split("/").pop()!,
        content ?? placeholder ?? "",
      ]),
    );
    return { front, text: (name: string): string => texts.get(name)! };
  };

  test("has a port of TLS only: in its config, its sockets, its firewall and what its checks ask for", () => {
    const { front, text } = made({ httpPort: false });
    const config = renderProxyConfig(front);
    expect(portsOf(config)).toEqual([443]);
    expect(config.virtualServers.map(({ name }) => name)).not.toContain("redirect");
    expect([front.listeners.http, front.listeners.http6, front.site.redirect, front.mode.httpPort]).toEqual(
      Array(4).fill(undefined),
    );
    expect(
      text("portico.socket")
        .match(/ListenStream=.*/g)!
        .join(),
    ).toMatch(/^[^,]*:443(,[^,]*:443)*$/);
    expect(text("firewall.nft")).not.toMatch(/\b80\b/);
    const { network, expect: rows } = front.activation!.deployment;
    expect(network!.exposedPorts).not.toContain(80);
    expect(network!.portForwards!.map(({ port }) => port)).toEqual([443]);
    const servers = config.virtualServers.map(({ name }) => name);
    expect(rows!.filter(({ request }) => !servers.includes(request.server))).toEqual([]);
    expect(rows!.filter(({ name }) => /redirect|over http$/.test(name))).toEqual([]);
    expect(() => resolve(front, `http://${NAME}/`)).toThrow("reaches no listener");
    const isServed = config.virtualServers.some(({ routes }) =>
      routes.some(({ action }) => action.type === "staticFiles" && action.directory === PAGE),
    );
    expect([front.defaultPage !== undefined, text("index.html") !== undefined]).toEqual([isServed, isServed]);
  });

  test("has port 80 too if nothing else is said", () => {
    const { front, text } = made({});
    expect(portsOf(renderProxyConfig(front))).toEqual([80, 443]);
    expect(text("portico.socket")).toMatch(/ListenStream=.*:80$/m);
    expect(text("firewall.nft")).toMatch(/\b80\b/);
    expect(front.activation!.deployment.network!.portForwards!.map(({ port }) => port)).toEqual([80, 443]);
  });
});

/** The text that runs the containers of a proxy. */
const IN_CONTAINERS: Record<string, (stack: TerraformStack, sync: ContainerProxy) => string> = {
  Compose: (_, proxy) => proxy.composeFiles({ image: "portico:1" }).get("portico.yml")!,
  Kubernetes: (stack, proxy) => {
    new KubernetesProvider(stack, "kubernetes");
    const props = { namespace: "files", proxy, image: IMAGE, tls: { secretName: "files-tls" } };
    return new KubernetesFrontEnd(stack, "front", props).manifestsText;
  },
};

test.each(Object.entries(IN_CONTAINERS))("%s publishes the port of TLS only", (_, run) => {
  const of = (mode: Mode): string => {
    const stack = newStack();
    const { proxy } = new ContainerFrontEnd(stack, "app", {
      ...containers,
      application: Application.immich(),
      mode,
    });
    return run(stack, proxy);
  };
  expect(of(Mode.tls())).toMatch(/\b8080\b/);
  expect(of(Mode.tls({ httpPort: false }))).not.toMatch(/\b(80|8080)\b|redirect/);
});

test("the default server of an HTTP port that is not there is a problem with its way out", () => {
  const mode = Mode.tls({ httpPort: false });
  const files = ON_HOSTS["the file-sync service"](newStack(), mode);
  expect(files.httpsListener).toBe(files.listeners.https);
  const sync = new ContainerFrontEnd(newStack(), "app", {
    ...containers,
    application: Application.immich(),
    mode,
  });
  for (const front of [files, sync])
    expect(said(problemsOf(() => front.defaultServer))).toMatchObject([
      { code: "config.unknown-reference", fix: expect.stringContaining("`httpPort: false`") },
    ]);
});

test("a certificate is proved on the port of TLS, or by DNS, and not over HTTP", () => {
  const account = { email: "admin@example.org", agreeToTerms: true };
  const material = (challenge?: "http-01" | "tls-alpn-01"): TlsMaterial =>
    TlsMaterial.acme({ ...account, challenge });
  for (const make of [ON_HOSTS["an ordinary application"], ON_HOSTS["the file-sync service"]]) {
    const front = (challenge?: "http-01" | "tls-alpn-01"): FrontEnd =>
      make(newStack(), Mode.tls({ httpPort: false, material: material(challenge) }));
    expect(front().proxy.problems).toEqual([]);
    expect(front("tls-alpn-01").proxy.problems).toEqual([]);
    expect(said(front("http-01").proxy.problems)).toMatchObject([
      { code: "acme.no-http-listener", fix: expect.stringMatching(/`httpPort`.*`dns-01`/) },
    ]);
  }
});

test.each([[true], [0], ["80"], [null]])("%j is no HTTP port", (httpPort) => {
  const refused = said(problemsOf(() => Mode.tls({ httpPort: httpPort as never })));
  expect(refused).toMatchObject([{ path: "Mode.tls.httpPort" }]);
});

test("plain HTTP has a port", () => {
  expect(problemsOf(() => Mode.plain({ httpPort: false as never }))).toMatchObject([
    { code: "config.wrong-type", path: "Mode.plain.httpPort" },
  ]);
});
