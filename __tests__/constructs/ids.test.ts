import { type TerraformStack, TerraformResource } from "cdktf";
import {
  Action,
  Application,
  ContainerFrontEnd,
  Delivery,
  FrontEndPair,
  Host,
  Listener,
  Mode,
  ReverseProxy,
  TlsMaterial,
  Upstream,
  VirtualServer,
} from "../../src/index.js";
import { KubernetesFrontEnd } from "../../src/kubernetes/index.js";
import { resolve } from "../../src/testing/index.js";
import { KubernetesProvider, frontEnd, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";
import { expectGolden } from "../render/golden.js";

/**
 * Construct paths and Terraform addresses are contract: overrides and imports of users name them, and Terraform replaces
 * a resource whose address changes. A line of the golden file changes only in a release that says so.
 */

const HOST_KEY = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=";
const address = "192.0.2.10";
const daemon = { command: ["/srv/d"], type: "exec", user: "sync" } as const;
const delivery = Delivery.ssh({ hostKey: HOST_KEY });
const service = { runtimeBundle: __filename };

const STACKS: Readonly<Record<string, (stack: TerraformStack) => unknown>> = {
  "plain HTTP, a local delivery": (stack) => frontEnd({ mode: Mode.plain() }, "files", stack),
  "TLS with everything": (stack) => {
    const files = frontEnd(
      {
        host: {
          address,
          netmask: "255.255.255.0",
          gateway: "192.0.2.1",
          ipv6Address: "2001:db8::10",
          delivery,
        },
        application: Application.fileSync({
          installDirectory: "/srv/sync",
          avatarDirectory: "/srv/avatars",
          daemons: { webApplication: daemon, fileServer: daemon, webdav: daemon },
        }),
        network: { interface: { name: "eth0" } },
        firewall: {},
        outputs: true,
      },
      "files",
      stack,
    );
    const office = files.proxy.addUpstream("office", { url: "http://192.0.2.20:8000" });
    const server = files.proxy.addVirtualServer("office", {
      serverNames: ["office.example.org"],
      listeners: [files.httpsListener],
      tls: TlsMaterial.selfSigned(),
    });
    server.addRoute("office", { path: "/", action: Action.proxy(office) });
  },
  "files on the host": (stack) =>
    frontEnd({ mode: Mode.tls({ material: TlsMaterial.fromFiles(FILES) }) }, "files", stack),
  "a pair": (stack) => {
    const host = { address: "192.0.2.11", netmask: "255.255.255.0", interface: "eth0", delivery };
    return new FrontEndPair(stack, "pair", {
      hosts: [host, { ...host, address: "192.0.2.12" }],
      virtualAddress: "192.0.2.20",
      mode: Mode.tls(),
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
      service,
    });
  },
  pods: (stack) => {
    new KubernetesProvider(stack, "kubernetes");
    const { proxy } = new ContainerFrontEnd(stack, "sync", {
      mode: Mode.tls(),
      serverNames: ["files.example.org"],
      upstreams: {
        web: { url: "http://web.sync.svc:8000" },
        webdav: { url: "http://webdav.sync.svc:8080" },
        fileServer: { url: "http://file-server.sync.svc:8082" },
      },
      application: Application.fileSync({ mediaDirectory: "/srv/media" }),
    });
    return new KubernetesFrontEnd(stack, "files", {
      namespace: "files",
      proxy,
      image: "registry.example/portico:0.1.0",
      tls: { secretName: "files-tls" },
      volumes: [{ mountPath: "/srv/media", claimName: "media" }],
    });
  },
};

const FILES = { certificate: "/etc/tls/cert.pem", key: "/etc/tls/key.pem" };

function idsOf(make: (stack: TerraformStack) => unknown): string[] {
  const stack = newStack();
  make(stack);
  synthesize(stack);
  return stack.node.findAll().flatMap((one) => {
    const { path, children } = one.node;
    // The paths of its children say this one's, and content has its file's.
    if (children.length > 0 || path.endsWith("/Content")) return [];
    if (!TerraformResource.isTerraformResource(one)) return [path];
    const { terraformResourceType: type, friendlyUniqueId: id } = one;
    // Their ids are hashes of their content.
    return [`${path}  ${type}.${id}`.replaceAll(/[0-9a-f]{10,}/gi, "HASH")];
  });
}

test("construct paths and Terraform addresses stay as they are", () => {
  // What one stack has like one before it is not said again.
  const lines = Object.entries(STACKS).flatMap(([name, make]) => [`# ${name}`, ...idsOf(make)]);
  expectGolden("ids.txt", `${[...new Set(lines)].join("\n")}\n`);
});

describe("listeners, virtual servers, upstreams and parts of the proxy itself", () => {
  const OWN = ["Config", "Tls", "DhParameters", "Listeners", "Upstreams", "VirtualServers"];

  test.each(["office", ...OWN])("may all have the id %s", (id) => {
    const stack = newStack();
    const proxy = new ReverseProxy(stack, "proxy", { host: new Host(stack, "host", { address }) });
    const tls = { material: TlsMaterial.selfSigned() };
    const listener = proxy.addListener(id, { port: 443, tls });
    const upstream = proxy.addUpstream(id, { url: "http://192.0.2.20:8000" });
    const server = proxy.addVirtualServer(id, { serverNames: ["_"], listeners: [listener], default: true });
    server.addRoute(id, { path: "/", action: Action.proxy(upstream) });
    synthesize(stack);
    expect(resolve(proxy, `https://${address}/`)).toMatchObject({
      listener: id,
      virtualServer: id,
      route: id,
      upstream: id,
    });
  });

  test("have the same place by `new` as by the proxy's methods; below another construct they stay there", () => {
    const stack = newStack();
    const proxy = new ReverseProxy(stack, "proxy", { host: new Host(stack, "host", { address }) });
    const http = new Listener(proxy, "a", { port: 80 });
    const server = new VirtualServer(proxy, "a", { serverNames: ["_"], listeners: [http], default: true });
    const upstreams = [proxy, stack].map((scope) => new Upstream(scope, "a", { url: "http://127.0.0.1:1" }));
    expect([http, server, ...upstreams].map(({ node }) => node.path)).toEqual([
      "stack/proxy/Listeners/a",
      "stack/proxy/VirtualServers/a",
      "stack/proxy/Upstreams/a",
      "stack/a",
    ]);
  });
});

describe("an id that the scope has already is refused with its code", () => {
  const site = () => {
    const stack = newStack();
    const host = new Host(stack, "host", { address });
    const proxy = new ReverseProxy(stack, "proxy", { host });
    const listener = proxy.addListener("l", { port: 80 });
    const server = proxy.addVirtualServer("s", { serverNames: ["_"], listeners: [listener], default: true });
    server.addRoute("r", { path: "/", action: Action.respond(200) });
    proxy.addUpstream("u", { url: "http://127.0.0.1:8000" });
    return { stack, host, proxy, server, listener };
  };

  test.each<[path: string, again: (s: ReturnType<typeof site>) => unknown]>([
    ["stack/proxy/Listeners/l", ({ proxy }) => proxy.addListener("l", { port: 81 })],
    ["stack/proxy/Upstreams/u", ({ proxy }) => proxy.addUpstream("u", { url: "http://127.0.0.1:1" })],
    [
      "stack/proxy/VirtualServers/s",
      ({ proxy, listener }) => proxy.addVirtualServer("s", { serverNames: ["a"], listeners: [listener] }),
    ],
    [
      "stack/proxy/VirtualServers/s/r",
      ({ server }) => server.addRoute("r", { path: "/a", action: Action.respond(200) }),
    ],
    ["stack/host", ({ stack }) => new Host(stack, "host", { address })],
    ["stack/proxy", ({ stack, host }) => new ReverseProxy(stack, "proxy", { host })],
    ["stack/proxy", ({ stack }) => frontEnd({}, "proxy", stack)],
  ])("%s", (path, again) => {
    const made = site();
    const id = path.slice(path.lastIndexOf("/") + 1);
    expect(problemsOf(() => again(made))).toMatchObject([
      { code: "config.duplicate-id", path, received: JSON.stringify(id) },
    ]);
    // The first is untouched.
    synthesize(made.stack);
  });
});
