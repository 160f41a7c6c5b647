import { overridePathProblems } from "../../src/constructs/configOverrides.js";
import { Action, Host, ReverseProxy } from "../../src/index.js";
import { frontEnd, newStack, problemsOf, synthesize } from "../../proof/kit/stacks.js";

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
    expect(server.serverNames).toEqual(["a"]);
    expect(proxy.problems).toEqual([]);
    synthesize(stack);
  });

  test.each([
    [
      "virtualServers[0].routes[0].action.status",
      99,
      "stack/proxy/site/r.action.status",
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

  test.each(["virtualServers[3].default", "version.x", "virtualServers.x"])(
    "%s does not lead to a field",
    (path) => {
      const { proxy } = proxyWithRoute();
      proxy.addConfigOverride(path, 1);
      expect(proxy.problems).toMatchObject([
        { message: "does not lead to a field", received: JSON.stringify(path) },
      ]);
    },
  );

  test.each(["", "a..b", "[0]", "listeners[0].port", "listeners", "listeners[0].tls.key", "ticketKeys.file"])(
    "%j is refused at once",
    (path) => {
      const { proxy } = proxyWithRoute();
      expect(problemsOf(() => proxy.addConfigOverride(path, 1))).toMatchObject([
        { path: "stack/proxy.addConfigOverride" },
      ]);
    },
  );
});

describe("routes", () => {
  test("can get another action and be removed, also those of a front end", () => {
    const stack = newStack();
    const files = frontEnd({}, "files", stack);
    files.routes.web.replaceAction(Action.respond(503));
    files.routes.fileServer.remove();
    const { routes } = files.proxy.config.virtualServers.find(({ name }) => name === "application")!;
    expect(routes.find(({ name }) => name === files.routes.web.name)!.action).toMatchObject({
      type: "respond",
      status: 503,
    });
    expect(routes.map(({ name }) => name)).not.toContain(files.routes.fileServer.name);
    expect(files.proxy.problems).toEqual([]);
    synthesize(stack);
    expect(files.upstreams.fileServer.node.metadata.map(({ data }) => data as string)).toEqual([
      expect.stringContaining("No route goes to this upstream"),
    ]);
  });

  test("keep their action if the new one is refused", () => {
    const { route } = proxyWithRoute();
    const { action } = route;
    expect(problemsOf(() => route.replaceAction(Action.respond(99)))).toMatchObject([
      { path: "stack/proxy/site/r.action.status" },
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
    ],
    "",
  ],
  [
    "is what else follows as well",
    [
      ...["listeners", "listeners[0]", "listeners[12].port", "listeners[0].address", "listeners[0].protocol"],
      ...["listeners[0].tls", "listeners[0].tls.key"],
    ],
    "concerns more than the config",
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
      "a[x]",
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
