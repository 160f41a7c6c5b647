import { Action, Application, ContainerFrontEnd, Delivery, FrontEnd, Mode } from "../../src/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

/** Applications below paths of a site. */

const KEY =
  "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";

type Place = "with the host's names" | "further" | "in containers";

/** A front end of the service, and a further site; the site that gets applications below its paths. */
function house(place: Place, mode: Mode) {
  const stack = newStack();
  const upstreams = {
    web: { url: "http://web:8000" },
    fileServer: { url: "http://files:8082" },
    webdav: { url: "http://dav:8080" },
  };
  const application = Application.fileSync({ installDirectory: "/srv/sync" });
  const front =
    place === "in containers"
      ? new ContainerFrontEnd(stack, "home", { mode, serverNames: ["files.example"], application, upstreams })
      : new FrontEnd(stack, "home", {
          host: {
            address: "192.0.2.10",
            publicName: "files.example",
            delivery: Delivery.ssh({ hostKey: KEY }),
          },
          mode,
          application,
          upstreams,
        });
  const cloud = front.addSite("cloud", {
    serverNames: ["cloud.example"],
    application: Application.nextcloud(),
    upstreams: { web: { url: "http://nextcloud:11000" } },
  });
  return { stack, front, site: place === "further" ? cloud : front.site };
}

const wikiOf = () =>
  Application.custom({
    name: "wiki",
    title: "Wiki",
    belowPath: true,
    parts: { web: { title: "wiki", url: "http://wiki:3000" } },
    main: "web",
    routes: ({ path }) => ({
      web: {
        path: path || "/",
        action: { type: "proxy", upstream: "web" },
        ownLogs: true,
        expect: [{ name: "wiki", path: `${path}/status`, status: 200 }],
      },
      files: { path: `${path}/files`, action: { type: "staticFiles", directory: "/srv/wiki" } },
    }),
    settings: ({ origin, path }) => [
      {
        name: "env",
        path: "/srv/wiki/.env",
        kind: "env",
        items: [{ name: "URL", value: `${origin}${path}`, code: "wiki-url" }],
      },
    ],
    rows: [{ code: "wiki-url", title: "The wiki's URL" }],
  });

const KINDS = {
  server: () => Application.server("unix:/run/wiki/web.sock"),
  staticFiles: () => Application.staticFiles("/srv/www"),
  redirect: () => Application.redirect({ host: "elsewhere.example" }),
  custom: wikiOf,
};
const ASKED = { server: "proxy", staticFiles: "staticFile", redirect: "redirect", custom: "proxy" };
const OTHERS = ["/", "/sync", "/syncdav/x", "/wikis", "/x", "/remote.php/dav", "/.well-known/carddav"];
const CASES = (["with the host's names", "further", "in containers"] as const).flatMap((place) =>
  (["tls", "plain"] as const).flatMap((mode) =>
    (Object.keys(KINDS) as (keyof typeof KINDS)[]).map((kind) => ({ place, mode, kind })),
  ),
);

test.each(CASES)("$kind below a path of a site $place, $mode: its path and no other", (given) => {
  const mode = given.mode === "tls" ? Mode.tls() : Mode.plain();
  const before = house(given.place, mode);
  const { stack, site } = house(given.place, mode);
  const { scheme } = mode;
  const [name] = site.serverNames;
  const application = KINDS[given.kind]() as Application;
  const made = site.addApplication("wiki", { path: "/wiki", application });
  expect(made.url).toBe(`${scheme}://${name}/wiki/`);
  for (const path of ["/wiki", "/wiki/", "/wiki/a/b?c"]) {
    expect(resolve(stack, `${scheme}://${name}${path}`)).toMatchObject({ kind: ASKED[given.kind] });
    if (given.mode === "plain") continue;
    const location = `https://${name}${path}`;
    expect(resolve(stack, `http://${name}${path}`)).toMatchObject({
      kind: "redirect",
      status: 301,
      location,
    });
  }
  for (const other of OTHERS.flatMap((path) => [`${scheme}://${name}${path}`, `http://${name}${path}`]))
    expect(resolve(stack, other)).toEqual(resolve(before.stack, other));
});

test.each([
  ["with the host's names" as const, "wiki"],
  ["further" as const, "cloud-wiki"],
])("of a site %s, the names of its things begin with %s", (place, name) => {
  const { stack, front, site } = house(place, Mode.tls());
  const wiki = site.addApplication("wiki", { path: "/wiki", application: wikiOf() });
  const config = renderProxyConfig(stack);
  expect(config.upstreams.map((one) => one.name)).toContain(`${name}-web`);
  expect(wiki.routes.web.name).toBe("wiki-web");
  expect(JSON.stringify(config)).toContain(`/var/log/portico/${name}-web.access.log`);
  const { rows = [], settings, expect: expected = [] } = (front as FrontEnd).activation!.deployment;
  expect(rows.map(({ code }) => code)).toContain(`${name}-wiki-url`);
  const file = settings!.files.find((one) => one.path === "/srv/wiki/.env")!;
  expect(file.name).toBe(`${name}-env`);
  expect(file.site).toBe(place === "further" ? "cloud" : undefined);
  expect(JSON.stringify(file)).toContain(`https://${site.serverNames[0]}/wiki`);
  expect(expected.map((one) => one.name)).toContain(`${name}: wiki`);
  expect(wiki.settings.files.env!.path).toBe(`/usr/share/portico/application-settings/${name}/env`);
});

test("in containers, settings are left to the user", () => {
  const { site } = house("in containers", Mode.tls());
  const wiki = site.addApplication("wiki", { path: "/wiki", application: wikiOf() });
  expect(problemsOf(() => wiki.settings)[0]).toMatchObject({ code: "config.unknown-reference" });
});

describe("refused is", () => {
  const server = Application.server("http://127.0.0.1:3000");
  const outside = Application.custom({
    ...{ name: "wiki", title: "Wiki", belowPath: true, main: "web" },
    parts: { web: { title: "wiki", url: "http://127.0.0.1:3000" } },
    routes: () => ({ web: { path: "/wiki2", action: { type: "proxy", upstream: "web" } } }),
  });
  test.each<[string, unknown, string, string]>([
    [
      "an application that has no path",
      { path: "/p", application: Application.immich() },
      "not-one-of",
      "application",
    ],
    [
      "an application that has its own paths",
      { path: "/p", application: Application.fileSync({ installDirectory: "/srv/s" }) },
      "not-one-of",
      "application",
    ],
    [
      "a route elsewhere",
      { path: "/wiki", application: outside },
      "bad-route-path",
      "application.routes.web.path",
    ],
    ["the root", { path: "/", application: server }, "bad-route-path", "path"],
    ["a slash at the end", { path: "/wiki/", application: server }, "bad-route-path", "path"],
    ["no slash", { path: "wiki", application: server }, "bad-route-path", "path"],
    ["dots", { path: "/../wiki", application: server }, "bad-route-path", "path"],
    ["no path", { application: server }, "missing-field", "path"],
    ["no application", { path: "/wiki" }, "missing-field", "application"],
    [
      "a server that it does not have",
      { path: "/wiki", application: server, upstreams: { dav: {} } },
      "unknown-field",
      "upstreams.dav",
    ],
    [
      "names",
      { path: "/wiki", application: server, serverNames: ["a.example"] },
      "unknown-field",
      "serverNames",
    ],
  ])("%s", (_, props, code, path) => {
    const { site } = house("further", Mode.tls());
    const problems = problemsOf(() => site.addApplication("wiki", props as never));
    expect(problems.map((one) => [one.code, one.path])).toEqual([
      [`config.${code}`, `stack/home/cloud/wiki.${path}`],
    ]);
  });

  test("a path or an id that the site has", () => {
    const { stack, site } = house("further", Mode.tls());
    site.addApplication("wiki", { path: "/wiki", application: server });
    const codes = (make: () => unknown) => problemsOf(make).map(({ code }) => code);
    const again = () => site.addApplication("wiki", { path: "/b", application: server });
    expect(codes(again)).toEqual(["config.duplicate-id"]);
    site.addApplication("other", { path: "/wiki", application: server });
    expect(codes(() => renderProxyConfig(stack))).toContain("config.duplicate-route");
  });

  test("a settings file of another application", () => {
    const { site, front } = house("further", Mode.tls());
    site.addApplication("wiki", { path: "/wiki", application: wikiOf() });
    const problems = problemsOf(() =>
      front.site.addApplication("other", { path: "/other", application: wikiOf() }),
    );
    expect(problems.map(({ code, path }) => [code, path])).toContainEqual([
      "config.duplicate-name",
      "stack/home/Site/other.application",
    ]);
  });
});

test("routes of both are found from one virtual server, and can be configured", () => {
  const { stack, site } = house("further", Mode.tls());
  const wiki = site.addApplication("wiki", {
    path: "/wiki",
    application: Application.server("http://127.0.0.1:3000"),
    upstreams: { web: { readTimeoutMs: 9_000 } },
    routeResponseHeaders: { web: { set: { "X-Frame-Options": "DENY" } } },
    requestBodyTimeoutMs: 5_000,
  });
  wiki.routes.web.configure({ requestBodyBytesMax: 9 });
  site.addRoute("api", { path: "/wiki/api", action: Action.proxy("http://127.0.0.1:4000") });
  const config = renderProxyConfig(stack);
  const routes = config.virtualServers.find(({ name }) => name === "cloud")!.routes;
  expect(routes.find(({ name }) => name === "wiki-web")).toMatchObject({
    requestBodyBytesMax: 9,
    requestBodyTimeoutMs: 5_000,
  });
  expect(config.upstreams.find(({ name }) => name === "cloud-wiki-web")).toMatchObject({
    readTimeoutMs: 9_000,
  });
});
