import { overridePathProblems } from "../../src/constructs/proxy/configOverrides.js";
import { Action, Host, Mode, ReverseProxy, TlsMaterial } from "../../src/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { frontEnd, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

const said = sayings("overrides");

function proxyWithRoute() {
  const stack = newStack();
  const proxy = new ReverseProxy(stack, "proxy", { host: new Host(stack, "host", { address: "192.0.2.1" }) });
  const listener = proxy.addListener("http", { port: 80 });
  const server = proxy.addVirtualServer("site", { serverNames: ["a"], listeners: [listener], default: true });
  const route = server.addRoute("r", { path: "/", action: Action.respond(200) });
  return { stack, proxy, server, route };
}

describe("addConfigOverride", () => {
  test("sets, adds and deletes fields of the config, in order, and leaves the props alone", () => {
    const { stack, proxy, server } = proxyWithRoute();
    proxy.addConfigOverride("limits.headBytesMax", 4096);
    proxy.addConfigOverride("virtualServers[0].routes[0].action.status", 410);
    proxy.addConfigOverride("virtualServers[0].serverNames[1]", "b");
    proxy.addConfigOverride("logs.error", undefined);
    expect(proxy.config.limits).toEqual({ headBytesMax: 4096 });
    expect(proxy.config.virtualServers[0]).toMatchObject({
      serverNames: ["a", "b"],
      routes: [{ action: { status: 410 } }],
    });
    expect(proxy.config.logs).not.toHaveProperty("error");
    proxy.addConfigOverride("virtualServers[0].serverNames[0]", undefined);
    proxy.addConfigOverride("virtualServers[0].routes[0].action.body", "gone");
    expect(proxy.config.virtualServers[0]).toMatchObject({
      name: "site",
      serverNames: ["b"],
      routes: [{ name: "r", path: "/", action: { type: "respond", status: 410, body: "gone" } }],
    });
    expect(server.serverNames).toEqual(["a"]);
    expect(proxy.problems).toEqual([]);
    synthesize(stack);
  });

  test.each([
    [
      "virtualServers[0].routes[0].action.status",
      99,
      "stack/proxy/VirtualServers/site/r.action.status",
      "config.out-of-range",
    ],
    ["limits", { headBytesMax: 1 }, "stack/proxy.limits.headBytesMax", "config.out-of-range"],
    ["limit", 1, "stack/proxy.limit", "config.unknown-field"],
  ])("%s = %j is refused at synth, with construct and override", (path, value, at, code) => {
    const { stack, proxy } = proxyWithRoute();
    proxy.addConfigOverride(path, value);
    expect(proxy.problems).toMatchObject([
      { path: at, code, message: expect.stringContaining(`addConfigOverride("${path}"`) },
    ]);
    expect(() => synthesize(stack)).toThrow(at);
  });

  test.each([
    ...["virtualServers[3].default", "virtualServers[1].default", "virtualServers[2]"],
    ...["version.x", "virtualServers.x", "version[0]", "limits[0]"],
  ])("%s does not lead to a field", (path) => {
    const { proxy } = proxyWithRoute();
    proxy.addConfigOverride(path, 1);
    expect(proxy.problems).toEqual([
      {
        code: "config.unknown-reference",
        path: "stack/proxy.addConfigOverride",
        message: "does not lead to a field",
        received: JSON.stringify(path),
        fix: "Use the path of a field that the config has without the override.",
      },
    ]);
  });

  test("one may lead through what an earlier one set, and only then", () => {
    const { proxy } = proxyWithRoute();
    proxy.addConfigOverride("virtualServers[0].serverNames[1]", "b");
    proxy.addConfigOverride("virtualServers[0].serverNames[2]", "c");
    expect(proxy.config.virtualServers[0]!.serverNames).toEqual(["a", "b", "c"]);
    expect(proxy.problems).toEqual([]);
    const { proxy: other } = proxyWithRoute();
    other.addConfigOverride("virtualServers[0].serverNames[2]", "c");
    other.addConfigOverride("virtualServers[0].serverNames[1]", "b");
    expect(other.config.virtualServers[0]!.serverNames).toEqual(["a", "b"]);
    expect(other.problems.map(({ received }) => received)).toEqual(['"virtualServers[0].serverNames[2]"']);
    const { proxy: third } = proxyWithRoute();
    third.addConfigOverride("limits", null);
    third.addConfigOverride("limits.headBytesMax", 4096);
    expect(third.problems.map(({ code, path }) => `${code} ${path}`)).toEqual([
      "config.wrong-type stack/proxy.limits",
      "config.unknown-reference stack/proxy.addConfigOverride",
    ]);
  });

  test("a problem of a part that no construct made is at its place in the config", () => {
    const { proxy } = proxyWithRoute();
    const action = { type: "respond", status: 200 };
    proxy.addConfigOverride("upstreams[0]", { name: "x", url: "http://127.0.0.1:80" });
    proxy.addConfigOverride("virtualServers[0].routes[1]", { name: "r", path: "/", action });
    proxy.addConfigOverride("virtualServers[1]", {
      ...{ name: "more", serverNames: ["a"] },
      listeners: ["http"],
      routes: [],
    });
    expect(proxy.problems.map(({ path, message }) => `${path} ${message.split(" (set by")[0]}`)).toEqual([
      "stack/proxy.virtualServers[1].serverNames[0] is also at stack/proxy/VirtualServers/site.serverNames[0]",
      "stack/proxy.virtualServers[0].routes[1].name is already the name of stack/proxy/VirtualServers/site/r",
      "stack/proxy.virtualServers[0].routes[1].path has the same path and match as stack/proxy/VirtualServers/site/r",
      "stack/proxy.upstreams[0].url leads to listener http of this proxy",
    ]);
  });

  test("a problem names the override of its own field, not one of a name that begins alike", () => {
    const { proxy } = proxyWithRoute();
    const paths = ["virtualServers[0].server", "virtualServers[0].serverNames[0]", "timeouts"];
    const values = [1, "A", { drainMs: 0 }];
    paths.forEach((path, i) => proxy.addConfigOverride(path, values[i]));
    expect(proxy.problems.map(({ path, message }) => [path, / \(set by .*/.exec(message)?.[0]])).toEqual([
      ["stack/proxy.timeouts.drainMs", ' (set by addConfigOverride("timeouts", …))'],
      [
        "stack/proxy/VirtualServers/site.serverNames[0]",
        ' (set by addConfigOverride("virtualServers[0].serverNames[0]", …))',
      ],
      [
        "stack/proxy/VirtualServers/site.server",
        ' (set by addConfigOverride("virtualServers[0].server", …))',
      ],
    ]);
  });

  test.each(["", "a..b", "[0]", "listeners[0].port", "listeners", "listeners[0].tls.key", "ticketKeys.file"])(
    "%j is refused at once",
    (path) => {
      const { proxy } = proxyWithRoute();
      expect(said(problemsOf(() => proxy.addConfigOverride(path, 1)))).toMatchObject([
        {
          path: "stack/proxy.addConfigOverride",
          code: "config.unknown-field",
          ...(path.startsWith("listeners")
            ? { fix: expect.stringMatching(/^Set the option of the Listener/) }
            : {}),
          ...(path.startsWith("ticketKeys")
            ? { fix: expect.stringMatching(/^Set `ticketKeys` of the proxy/) }
            : {}),
        },
      ]);
    },
  );
});

test("an override may name items of lists by their names, and a problem says so", () => {
  const { stack, proxy } = proxyWithRoute();
  proxy.addUpstream("app", { url: "http://127.0.0.1:8000" });
  proxy.addUpstream("1", { url: "http://127.0.0.1:8001" });
  proxy.addConfigOverride("virtualServers[site].routes[r].sendTimeoutMs", 7000);
  proxy.addConfigOverride("upstreams[app].queueTimeoutMs", 5000);
  // A name goes before an index.
  proxy.addConfigOverride("upstreams[1].queueTimeoutMs", 6000);
  expect(renderProxyConfig(proxy)).toMatchObject({
    upstreams: [
      { name: "1", queueTimeoutMs: 6000 },
      { name: "app", queueTimeoutMs: 5000 },
    ],
    virtualServers: [{ routes: [{ sendTimeoutMs: 7000 }] }],
  });
  synthesize(stack);
  proxy.addConfigOverride("virtualServers[site].routes[s].sendTimeoutMs", 1);
  proxy.addConfigOverride("virtualServers[site].routes[r].action.status", 99);
  expect(
    proxy.problems.map(({ code, path, message }) => [code, path, / \(set by .*/.exec(message)?.[0]]),
  ).toEqual([
    [
      "config.out-of-range",
      "stack/proxy/VirtualServers/site/r.action.status",
      ' (set by addConfigOverride("virtualServers[site].routes[r].action.status", …))',
    ],
    ["config.unknown-reference", "stack/proxy.addConfigOverride", undefined],
  ]);
  expect(problemsOf(() => proxy.addConfigOverride("listeners[http].port", 1))).toMatchObject([
    { code: "config.unknown-field", fix: expect.stringMatching(/^Set the option of the Listener/) },
  ]);
});

describe("virtual servers", () => {
  test("can be reached through further listeners, also those of a front end", () => {
    const stack = newStack();
    const files = frontEnd({}, "files", stack);
    const tls = { material: TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" }) };
    const inside = files.proxy.addListener("inside", { port: 8443, tls });
    const before = files.site.virtualServer.listeners;
    files.site.virtualServer.addListeners(inside, ...before);
    synthesize(stack);
    expect(files.site.virtualServer.listeners).toEqual([...before, inside]);
    const asked = { url: "https://192.0.2.10:8443/sync/", listener: "inside" };
    expect(resolve(stack, asked)).toMatchObject({
      listener: "inside",
      virtualServer: "application",
      route: "web",
    });
  });

  test("keep their listeners if a further one is refused", () => {
    const { proxy, server } = proxyWithRoute();
    const material = TlsMaterial.selfSigned();
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    const files = { certificate: "/c.pem", key: "/k.pem" };
    const trusted = proxy.addListener("trusted", {
      port: 444,
      tls: { material: TlsMaterial.fromFiles(files) },
    });
    const strict = proxy.addVirtualServer("strict", { serverNames: ["b"], listeners: [trusted], hsts: {} });
    expect(problemsOf(() => strict.addListeners(https))).toMatchObject([
      { code: "config.hsts-self-signed", path: "stack/proxy/VirtualServers/strict.hsts" },
    ]);
    expect(problemsOf(() => server.addListeners("http" as never))).toMatchObject([
      { code: "config.wrong-type", path: "stack/proxy/VirtualServers/site.addListeners.listeners[0]" },
    ]);
    expect(strict.listeners).toEqual([trusted]);
    expect(server.listeners.map(({ name }) => name)).toEqual(["http"]);
  });
});

describe("routes", () => {
  test("can get other limits, also those of a front end; what is left out stays", () => {
    const stack = newStack();
    const files = frontEnd({}, "files", stack);
    const routeOf = () =>
      files.proxy.config.virtualServers
        .find(({ name }) => name === "application")!
        .routes.find(({ name }) => name === "web")!;
    const before = routeOf();
    files.site.routes.web.configure({
      requestBodyBytesMax: 1024,
      sendTimeoutMs: undefined,
      accessLog: "off",
    });
    const { sendTimeoutMs: _, ...rest } = before;
    expect(routeOf()).toEqual({ ...rest, requestBodyBytesMax: 1024, accessLog: "off" });
    synthesize(stack);
    const request = { method: "POST", headers: { "Content-Length": "1025" } };
    expect(resolve(stack, { url: "https://192.0.2.10/sync/", ...request })).toMatchObject({ status: 413 });
  });

  test("keep their limits if one is refused", () => {
    const { route, proxy } = proxyWithRoute();
    const before = proxy.config;
    for (const [changes, at] of [
      [{ sendTimeoutMs: 1000, requestBodyBytesMax: -1 }, "r.requestBodyBytesMax"],
      [{ path: "/b" }, "r.configure.path"],
      [undefined, "r.configure"],
    ] as const) {
      expect(said(problemsOf(() => route.configure(changes as never)))).toMatchObject([
        { path: `stack/proxy/VirtualServers/site/${at}` },
      ]);
    }
    expect(proxy.config).toEqual(before);
  });

  test("can get another action and be removed, also those of a front end", () => {
    const stack = newStack();
    const files = frontEnd({}, "files", stack);
    files.site.routes.web.replaceAction(Action.respond(503));
    files.site.routes.fileServer.remove();
    const { routes } = files.proxy.config.virtualServers.find(({ name }) => name === "application")!;
    expect(routes.find(({ name }) => name === files.site.routes.web.name)!.action).toMatchObject({
      type: "respond",
      status: 503,
    });
    expect(routes.map(({ name }) => name)).not.toContain(files.site.routes.fileServer.name);
    expect(files.proxy.problems).toEqual([]);
    synthesize(stack);
    expect(files.site.upstreams.fileServer.node.metadata.map(({ data }) => data as string)).toEqual([
      expect.stringContaining("No route uses this upstream"),
    ]);
  });

  test("go with their virtual server, and an upstream that none needs goes too", () => {
    const stack = newStack();
    const files = frontEnd({ mode: Mode.tls() }, "files", stack);
    const names = (parts: readonly { readonly name: string }[]): string[] => parts.map(({ name }) => name);
    files.site.routes.webdav.remove();
    files.site.upstreams.webdav.remove();
    // A route still names this one.
    files.site.upstreams.web.remove();
    files.site.redirect!.remove();
    const { upstreams, virtualServers } = files.proxy.config;
    expect(names(upstreams!)).toEqual(["fileServer", "web"]);
    expect(names(virtualServers)).toEqual(["default", "application"]);
    expect(files.proxy.problems).toEqual([]);
    synthesize(stack);
    expect(resolve(files, "http://192.0.2.10/sync/")).toMatchObject({ virtualServer: "default" });
  });

  test("keep their action if the new one is refused", () => {
    const { route } = proxyWithRoute();
    const { action } = route;
    expect(problemsOf(() => route.replaceAction(Action.respond(99)))).toMatchObject([
      { path: "stack/proxy/VirtualServers/site/r.action.status" },
    ]);
    expect(problemsOf(() => route.replaceAction(undefined as never))).toMatchObject([
      { code: "config.missing-field" },
    ]);
    expect(route.action).toBe(action);
  });
});

test.each<[string, string[], string]>([
  [
    "leads to what the config alone says",
    [
      ...["workers", "limits.headBytesMax", "listeners[0].http2", "listeners[12].tls.policy"],
      ...["listeners[0].tls.policy.minVersion", "virtualServers[0].listeners", "listenersOf", "a.$b-c"],
      ...["upstreams[0].ticketKeys", "ticketKeys.files"],
    ],
    "",
  ],
  [
    "is what else follows as well",
    [
      ...["listeners", "listeners[0]", "listeners[12].port", "listeners[0].address", "listeners[0].protocol"],
      ...["listeners[0].tls", "listeners[0].tls.key", "ticketKeys", "ticketKeys.file"],
    ],
    "cannot be overridden: it affects more than the config",
  ],
  [
    "is not a path",
    [
      "",
      ".",
      "a.",
      ".a",
      "a..b",
      "a[]",
      "a[x y]",
      "[0]",
      "a[0]b",
      " a",
      "a ",
      "a\n",
      "a b",
      "a/b",
      "x.listeners[0]!",
    ],
    "is not the path of a field",
  ],
])("the path of an override %s", (_what, paths, message) => {
  for (const path of paths) {
    const told = overridePathProblems("at", path).map((p) => p.message);
    expect([path, told]).toEqual([path, message === "" ? [] : [message]]);
  }
});

describe("two proxies of one host", () => {
  test.each<[string, string, number, string, number, boolean]>([
    ["the same address and port", "192.0.2.1", 80, "192.0.2.1", 80, true],
    ["other ports", "192.0.2.1", 80, "192.0.2.1", 81, false],
    ["other addresses", "192.0.2.1", 80, "192.0.2.2", 80, false],
    ["one of all addresses", "0.0.0.0", 80, "192.0.2.2", 80, true],
    ["other families", "0.0.0.0", 80, "::", 80, false],
    ["one IPv6 address in two forms", "2001:db8::1", 80, "2001:DB8:0::1", 80, true],
    ["an address of another family", "::", 80, "192.0.2.2", 80, false],
  ])("%s", (_, address, port, otherAddress, otherPort, clash) => {
    const { stack, proxy } = proxyWithRoute();
    const { host } = proxy;
    const [one, other] = ["one", "other"].map(
      (id) => new ReverseProxy(stack, id, { host, paths: { config: `/etc/${id}.json` } }),
    );
    const add = (to: ReverseProxy, id: string, more: { address: string; port: number }) => {
      const listener = to.addListener(id, more);
      to.addVirtualServer("s", { serverNames: ["_"], listeners: [listener], default: true });
    };
    add(one!, "l", { address, port: port + 8000 });
    add(other!, "l", { address: otherAddress, port: otherPort + 8000 });
    // A host of IPv6 alone is another problem.
    const conflicts = [one!, other!].flatMap(({ problems }) =>
      problems.filter(({ code }) => code === "config.port-conflict"),
    );
    expect(conflicts.map(({ path, message }) => [path, message])).toEqual(
      clash ? [["stack/other/Listeners/l.port", "is taken by stack/one/Listeners/l on the same host"]] : [],
    );
  });
});
