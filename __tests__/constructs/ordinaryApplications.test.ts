import { Application, ContainerFrontEnd, FrontEnd, Mode } from "../../src/index.js";
import { resolve } from "../../src/testing/index.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

/** Applications of which nothing is known but where they are. */

const HOST = { address: "192.0.2.10", publicName: "app.example.org" };

test("one server gets all requests, with the client's name and address", () => {
  const stack = newStack();
  const application = Application.server("http://127.0.0.1:3000");
  const front = new FrontEnd(stack, "app", { host: HOST, mode: Mode.tls(), application });
  front.site.routes.web.configure({ requestBodyBytesMax: 10 });
  expect(front.site.upstreams.web.url).toBe("http://127.0.0.1:3000");
  expect(resolve(stack, "https://app.example.org/x?y")).toMatchObject({
    kind: "proxy",
    upstream: "web",
    requestLine: "GET /x?y HTTP/1.1",
  });
});

test("several servers, and how requests are passed on", () => {
  const stack = newStack();
  const servers = [{ url: "http://10.0.0.7:3000" }, { url: "http://10.0.0.8:3000" }];
  const application = Application.server({ servers, health: { path: "/up" } }, { hostHeader: "upstream" });
  const front = new FrontEnd(stack, "app", { host: HOST, mode: Mode.plain(), application });
  expect(front.site.upstreams.web.urls).toEqual(servers.map(({ url }) => url));
});

test("files and redirects", () => {
  const files = newStack();
  const site = new FrontEnd(files, "www", {
    host: HOST,
    mode: Mode.plain(),
    application: Application.staticFiles("/srv/www", { index: ["index.html"] }),
  });
  expect(site.site.routes.files.name).toBe("files");
  expect(resolve(files, "http://app.example.org/")).toMatchObject({ kind: "staticFile" });
  const old = newStack();
  new FrontEnd(old, "old", {
    host: HOST,
    mode: Mode.tls(),
    application: Application.redirect({ host: "example.org" }),
  });
  expect(resolve(old, "https://app.example.org/a?b")).toMatchObject({
    kind: "redirect",
    location: "https://example.org/a?b",
  });
});

test("in containers", () => {
  const stack = newStack();
  const { upstreams } = new ContainerFrontEnd(stack, "app", {
    mode: Mode.tls(),
    serverNames: ["app.example.org"],
    application: Application.server("http://app:3000"),
    upstreams: { web: { url: "http://app:3000" } },
  }).site;
  expect(upstreams.web.url).toBe("http://app:3000");
});

test.each<[string, () => unknown]>([
  ["upstream", () => Application.server(3_000 as never)],
  ["upstream.port", () => Application.server({ port: 3_000 } as never)],
  ["hostheader", () => Application.server("http://127.0.0.1:1", { hostheader: "client" } as never)],
  ["directory", () => Application.staticFiles(undefined as never)],
  ["url", () => Application.redirect({ url: "https://example.org" } as never)],
])("%s is refused", (path, make) => {
  expect(problemsOf(make)[0]!.path).toContain(path);
});
