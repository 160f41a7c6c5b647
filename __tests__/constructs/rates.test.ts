import { App, TerraformStack } from "cdktf";
import { APPLICATIONS } from "../../src/applications/table.js";
import { ANY_PLACE } from "../../src/applications/index.js";
import { Application, FrontEnd, Mode, type RateLimit } from "../../src/index.js";
import { renderProxyConfig } from "../../src/testing/index.js";

function frontEnd() {
  const stack = new TerraformStack(new App(), "s");
  const front = new FrontEnd(stack, "front", {
    host: { address: "192.0.2.10", publicName: "www.example.org" },
    mode: Mode.tls(),
  });
  const wiki = front.addSite("wiki", {
    serverNames: ["wiki.example.org"],
    application: Application.server("http://127.0.0.1:9000"),
  });
  const limits = () =>
    renderProxyConfig(stack).virtualServers.flatMap(({ routes }) =>
      routes.flatMap(({ name, rateLimit, concurrencyMax }) =>
        rateLimit === undefined && concurrencyMax === undefined ? [] : [[name, rateLimit, concurrencyMax]],
      ),
    );
  return { stack, wiki, limits };
}

test("no route has a limit by default, of any application", () => {
  expect(frontEnd().limits()).toEqual([]);
  const limited = APPLICATIONS.flatMap(({ name, routes }) =>
    Object.values(routes(ANY_PLACE)).flatMap((route) =>
      route?.rateLimit === undefined && route?.concurrencyMax === undefined ? [] : [name],
    ),
  );
  expect(limited).toEqual([]);
});

test("a route gets limits when it is made, or later, and loses them again", () => {
  const { wiki, limits } = frontEnd();
  const rateLimit: RateLimit = { requests: 10, perMs: 60_000, burst: 5 };
  const form = { requestBodyBytesMax: 65_536 };
  const login = wiki.addRoute("login", {
    ...form,
    path: "/login",
    action: wiki.routes.web.action,
    rateLimit,
  });
  wiki.routes.web.configure({ concurrencyMax: 64 });
  expect(limits()).toEqual([
    ["web", undefined, 64],
    ["login", { ...rateLimit, ipv6Prefix: 64 }, undefined],
  ]);
  login.configure({ rateLimit: undefined });
  wiki.routes.web.configure({ concurrencyMax: undefined });
  expect(limits()).toEqual([]);
});

test("a limit that would stop uploads is refused where it is set", () => {
  const { wiki, limits } = frontEnd();
  const change = () => wiki.routes.web.configure({ rateLimit: { requests: 5 } });
  expect(change).toThrow(/rateLimit: is too low for a route that takes uploads/);
  expect(limits()).toEqual([]);
});
