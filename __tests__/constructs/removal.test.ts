import {
  Action,
  Application,
  ContainerProxy,
  FrontEnd,
  Host,
  Listener,
  Mode,
  ReverseProxy,
  Route,
  TlsMaterial,
  Upstream,
  VirtualServer,
} from "../../src/index.js";
import { renderProxyConfig, resolve, synthesizedFile } from "../../src/testing/index.js";
import { Construct } from "constructs";
import { sayings } from "../../testkit/sayings.js";
import { frontEnd, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

/** Parts that are removed, what goes with them, and what may not be done with them afterwards. */

const said = sayings("removal");

/** A proxy with one of each. */
function parts() {
  const stack = newStack();
  const host = new Host(stack, "host", { address: "192.0.2.10" });
  const proxy = new ReverseProxy(stack, "proxy", { host });
  const listener = proxy.addListener("http", { port: 80 });
  const inside = proxy.addListener("inside", { port: 8080 });
  const upstream = proxy.addUpstream("app", { url: "http://127.0.0.1:3000" });
  const server = proxy.addVirtualServer("site", {
    ...{ serverNames: ["_"], default: true, listeners: [listener, inside] },
  });
  const route = server.addRoute("all", { path: "/", action: Action.proxy(upstream) });
  const other = server.addRoute("other", { path: "/other", action: Action.respond(204) });
  return { stack, proxy, listener, inside, upstream, server, route, other };
}
type Parts = ReturnType<typeof parts>;

const VS = "stack/proxy/VirtualServers";

describe("what was removed is not used afterwards", () => {
  const gone = Action.respond(410);
  const names = { serverNames: ["b.example"] };
  test.each<[string, (p: Parts) => { remove(): void }, (p: Parts) => unknown, string]>([
    [
      "a virtual server gets no route",
      (p) => p.server,
      (p) => p.server.addRoute("r", { path: "/r", action: gone }),
      `${VS}/site/r`,
    ],
    [
      "nor below a construct of it",
      (p) => p.server,
      (p) => new Route(new Construct(p.server, "group"), "r", { path: "/r", action: gone }),
      `${VS}/site/group/r`,
    ],
    ["nor a listener", (p) => p.server, (p) => p.server.addListeners(p.inside), `${VS}/site.addListeners`],
    [
      "a route of a removed virtual server gets no action",
      (p) => p.server,
      (p) => p.route.replaceAction(gone),
      `${VS}/site/all.replaceAction`,
    ],
    [
      "nor options",
      (p) => p.server,
      (p) => p.route.configure({ sendTimeoutMs: 1 }),
      `${VS}/site/all.configure`,
    ],
    [
      "a route gets no action",
      (p) => p.route,
      (p) => p.route.replaceAction(gone),
      `${VS}/site/all.replaceAction`,
    ],
    [
      "a route gets no options",
      (p) => p.route,
      (p) => p.route.configure({ responseHeaders: { set: { "X-A": "b" } } }),
      `${VS}/site/all.configure`,
    ],
    [
      "an upstream gets no route",
      (p) => p.upstream,
      (p) => p.server.addRoute("r", { path: "/r", action: Action.proxy(p.upstream) }),
      `${VS}/site/r.action.upstream`,
    ],
    [
      "an upstream gets no route by another action",
      (p) => p.upstream,
      (p) => p.other.replaceAction(Action.proxy(p.upstream)),
      `${VS}/site/other.action.upstream`,
    ],
    [
      "a listener gets no virtual server",
      (p) => p.inside,
      (p) => p.proxy.addVirtualServer("b", { ...names, listeners: [p.listener, p.inside] }),
      `${VS}/b.listeners[1]`,
    ],
    [
      "a listener is not added",
      (p) => p.inside,
      (p) => p.server.addListeners(p.listener, p.inside),
      `${VS}/site.addListeners.listeners[1]`,
    ],
  ])("%s", (_, part, use, path) => {
    const made = parts();
    use(made);
    const removed = parts();
    part(removed).remove();
    expect(said(problemsOf(() => use(removed)))).toMatchObject([{ code: "config.unknown-reference", path }]);
  });

  test("nothing is added below what was taken out of the tree by other means", () => {
    const { stack, proxy, upstream } = parts();
    stack.node.tryRemoveChild("proxy");
    for (const [Part, props] of [
      [Listener, { port: 81 }],
      [Upstream, { url: "http://127.0.0.1:1" }],
      [VirtualServer, { serverNames: ["_"], listeners: [] }],
    ] as const)
      expect(said(problemsOf(() => new Part(proxy, "part", props as never)))).toMatchObject([
        { code: "config.unknown-reference" },
      ]);
    // It belongs to no proxy, but it is gone as well.
    const files = new ContainerProxy(stack, "files");
    const site = files.addVirtualServer("s", {
      serverNames: ["_"],
      listeners: [files.addListener("l", { port: 8080 })],
    });
    const route = () => site.addRoute("r", { path: "/", action: Action.proxy(upstream) });
    expect(problemsOf(route)).toMatchObject([{ message: "is used after `remove()` of stack/proxy" }]);
  });
});

test.each<[string, (p: Parts) => { remove(): void }, (p: Parts) => Construct]>([
  ["listener", (p) => p.listener, (p) => p.proxy.addListener("http", { port: 80 })],
  ["upstream", (p) => p.upstream, (p) => p.proxy.addUpstream("app", { url: "http://127.0.0.1:4000" })],
  [
    "virtual server",
    (p) => p.server,
    (p) => p.proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [p.inside] }),
  ],
  ["route", (p) => p.route, (p) => p.server.addRoute("all", { path: "/", action: Action.respond(204) })],
])("another %s with the id of a removed one stays when that is removed again", (_, part, add) => {
  const made = parts();
  const first = part(made);
  first.remove();
  const second = add(made);
  first.remove();
  expect(second.node.scope!.node.tryFindChild(second.node.id)).toBe(second);
});

describe("a listener that is removed", () => {
  const host = { address: "192.0.2.10", publicName: "files.example.org" };
  const common = { host, firewall: {}, activation: {}, service: { runtimeBundle: __filename } };
  const make = {
    web: (mode: Mode) =>
      new FrontEnd(newStack(), "app", {
        ...common,
        mode,
        application: Application.server("http://127.0.0.1:3"),
      }),
    files: (mode: Mode) =>
      new FrontEnd(newStack(), "app", {
        ...common,
        mode,
        application: Application.fileSync({ installDirectory: "/srv/sync" }),
      }),
  };

  test.each(["web", "files"] as const)("is like one that was never there (%s)", (kind) => {
    const without = make[kind](Mode.tls({ httpPort: false }));
    const front = make[kind](Mode.tls());
    front.listeners.http!.remove();
    front.site.redirect!.remove();
    if (kind === "files") front.defaultServer.remove();
    expect(renderProxyConfig(front)).toEqual(renderProxyConfig(without));
    const [deployment, other] = [front, without].map((one) => one.activation!.deployment);
    expect(deployment!.network).toEqual(other!.network);
    expect(deployment!.expect).toEqual(other!.expect);
    const own = [front, without].map((one) =>
      ["/etc/systemd/system/portico.socket", "/etc/portico/firewall.nft"].map(
        (path) => synthesizedFile(one, path).content,
      ),
    );
    expect(own[0]).toEqual(own[1]);
    expect(own[0]!.join()).toContain(":443");
    expect(deployment!.network!.exposedPorts).toEqual([22, 443]);
    synthesize(front.node.root.node.children[0] as never);
  });

  test("leaves its virtual servers to their other listeners, and is refused where there is none", () => {
    const { proxy, listener, inside, server } = parts();
    const stray = proxy.addVirtualServer("stray", { serverNames: ["a.example"], listeners: [listener] });
    stray.addRoute("r", { path: "/", action: Action.respond(204) });
    listener.remove();
    expect(server.listeners).toEqual([inside]);
    expect(proxy.config.listeners.map(({ name }) => name)).toEqual(["inside"]);
    expect(said(proxy.problems)).toMatchObject([
      {
        code: "config.out-of-range",
        path: `${VS}/stray.listeners`,
        message: expect.stringContaining("stack/proxy/Listeners/http"),
        fix: expect.stringContaining("`addListeners`"),
      },
    ]);
    stray.addListeners(inside);
    expect(proxy.problems).toEqual([]);
    expect(resolve(proxy, "http://a.example:8080/")).toMatchObject({ status: 204 });
    inside.remove();
    stray.remove();
    server.remove();
    expect(proxy.problems.map(({ path }) => path)).toEqual([
      "stack/proxy.listeners",
      "stack/proxy.virtualServers",
    ]);
  });

  test("may have had the only TLS of a virtual server", () => {
    const { proxy } = parts();
    const inside = proxy.addListener("shop", { port: 8081 });
    const material = TlsMaterial.fromFiles({ certificate: "/srv/cert.pem", key: "/srv/key.pem" });
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    const shop = proxy.addVirtualServer("shop", {
      ...{ serverNames: ["shop.example"], listeners: [inside, https], tls: material },
      ...{ hsts: { includeSubDomains: false }, default: true },
    });
    shop.addRoute("r", { path: "/", action: Action.respond(204) });
    expect(proxy.problems).toEqual([]);
    https.remove();
    expect(said(proxy.problems).map(({ code, path }) => [code, path])).toEqual([
      ["config.hsts-without-tls", `${VS}/shop.hsts`],
      ["config.tls-unexpected", `${VS}/shop.tls`],
    ]);
  });
});

test("a router forwards no port of a removed listener", () => {
  const front = frontEnd({ mode: Mode.plain(), outputs: true, host: { address: "192.168.1.10" } });
  const inside = front.proxy.addListener("inside", { port: 8090 });
  for (const server of [front.site.virtualServer, front.defaultServer]) server.addListeners(inside);
  front.listeners.http!.remove();
  expect(front.portForwards).toEqual([]);
  const outputs = Object.values(synthesize(front.node.scope as never).output!);
  expect(outputs.find(({ description }) => /NAT/.test(description))!.value).toEqual([]);
});
