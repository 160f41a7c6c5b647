import { Testing } from "cdktf";
import {
  Action,
  Application,
  type CustomApplication,
  Delivery,
  Firewall,
  FrontEnd,
  type FrontEndProps,
  Host,
  Mode,
  ReverseProxy,
} from "../../src/index.js";
import { renderProxyConfig, resolve, synthesizedFile, synthesizedFiles } from "../../src/testing/index.js";
import { DEPLOYMENT_FILE } from "../../src/model/deployment.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

/** The front end of one ordinary application, and what its deployment expects of it. */

const host = { address: "192.0.2.10", publicName: "app.example.org" };
const defaults = { host, mode: Mode.tls(), service: { runtimeBundle: __filename }, activation: {} };
const application = Application.server("http://127.0.0.1:3000");
const made = (props: Partial<FrontEndProps> = {}) => {
  const stack = newStack();
  return { stack, front: new FrontEnd(stack, "app", { ...defaults, application, ...props }) };
};
/** A front end of an application that is more than a server. */
const described = (more: Partial<CustomApplication>) => {
  const wiki = Application.custom({
    name: "wiki",
    title: "Wiki",
    parts: { web: { title: "wiki", url: "http://127.0.0.1:3000" } },
    main: "web",
    routes: () => ({ web: { path: "/", action: { type: "proxy", upstream: "web" } } }),
    ...more,
  });
  return made({ application: wiki });
};

test("all paths of its names go to the upstream, port 80 leads to https, and other names get nothing", () => {
  const { stack, front } = made({ firewall: {} });
  const [main] = front.site.serverNames;
  expect(front.site.url).toBe(`https://${main}/`);
  expect(resolve(stack, `http://${main}/a?b`)).toMatchObject({
    status: 301,
    location: `https://${main}/a?b`,
  });
  expect(resolve(stack, `https://${main}/a`)).toMatchObject({ upstream: "web" });
  expect(resolve(stack, "https://other.example/")).toMatchObject({ status: 404 });
  expect(front.activation!.deployment).toMatchObject({
    services: { firewall: "portico-firewall.service" },
    network: { exposedPorts: [22, 80, 443], loopbackPorts: [3000, 3306] },
    expect: [
      { name: "other names", status: 404 },
      { name: "redirect to https", request: { server: "redirect", path: "/" } },
      { name: "application web", request: { server: "application", path: "/" } },
    ],
  });
  expect(() => Testing.synth(stack, true)).not.toThrow();
});

test("with `windowsDrives`, Windows may map a drive of a WebDAV route below the application", () => {
  const stack = newStack();
  const front = new FrontEnd(stack, "app", { ...defaults, application, windowsDrives: true });
  front.site.virtualServer.addRoute("dav", { path: "/dav", action: Action.proxy(front.site.upstreams.web) });
  const [name] = front.site.serverNames;
  const ask = (scheme: string) =>
    resolve(stack, { url: `${scheme}://${name}/`, method: "OPTIONS", headers: { "User-Agent": "DavClnt" } });
  expect(ask("https")).toMatchObject({ windowsDrives: true });
  // The server that redirects to https is none of WebDAV.
  expect(ask("http")).toMatchObject({ kind: "redirect", status: 301 });
});

test.each([true, false])("a firewall beside it belongs to its deployment (activation: %s)", (activated) => {
  const { stack, front } = made(activated ? {} : { activation: undefined });
  const unit = (): unknown =>
    activated
      ? front.activation!.deployment.services.firewall
      : /"firewall": "(.*)"/.exec(synthesizedFile(stack, DEPLOYMENT_FILE).placeholder!)?.[1];
  expect(unit()).toBeUndefined();
  new Firewall(stack, "firewall", { host: new Host(stack, "other", { address: "192.0.2.11" }), ports: [22] });
  expect(unit()).toBeUndefined();
  new Firewall(stack, "own", { host: front.host, ports: [22, 80, 443] });
  expect(unit()).toBe("portico-firewall.service");
});

test("its activation knows the application's daemons, settings, rows and trees", () => {
  const items = [{ section: "server", name: "root_url", value: "https://app.example.org/", code: "wiki" }];
  const settings = { files: [{ name: "main", path: "/srv/app.conf", kind: "ini" as const, items }] };
  const daemons = [{ unit: "app.service", restartOn: ["main"], code: "wiki" }];
  const rows = [{ code: "wiki", title: "The wiki works" }];
  const trees = [{ path: "/srv/files", code: "wiki", message: "others cannot read a file", fix: false }];
  const withRow = (code: string) => {
    const { stack, front } = described({
      ...{ settings: () => settings.files, daemons, trees, rows: [{ ...rows[0]!, code }] },
    });
    return { stack, deployment: front.activation!.deployment };
  };
  const { stack, deployment } = withRow("wiki");
  expect(deployment).toMatchObject({ settings, trees, rows, services: { daemons } });
  expect(() => Testing.synth(stack, true)).not.toThrow();
  expect(() => Testing.synth(withRow("other").stack, true)).toThrow("is not the code of one of `rows`");
});

test("without an activation, the host has its deployment as a file, with the expected responses", () => {
  const stack = newStack();
  const front = new FrontEnd(stack, "app", { ...defaults, application, activation: undefined });
  front.site.routes.web.configure({ expect: { path: "/health", status: 200 } });
  expect(front.activation).toBeUndefined();
  const file = synthesizedFiles(stack).find(({ path }) => path === "/etc/portico/deployment.json")!;
  // Hashes of the files are known to Terraform only.
  expect(file.placeholder).toMatch(/"request": \{[^}]*"path": "\/health"[^]*"status": 200/);
});

test("the daily doctor of its host can be told whom to call, and left out", () => {
  const unitsOf = (doctor: { enabled?: boolean; onFailure?: string }): string =>
    JSON.stringify(made({ activation: { doctor } }).front.activation!.deployment.files);
  const doctors = (text: string) => text.match(/portico-doctor\.\w+/g) ?? [];
  expect(doctors(unitsOf({ onFailure: "mail.service" }))).toEqual([
    "portico-doctor.service",
    "portico-doctor.timer",
  ]);
  expect(doctors(unitsOf({ enabled: false }))).toEqual([]);
});

test("an item of its settings belongs to one of its rows, or to that of all settings", () => {
  const of = (code: string) => {
    const items = [{ section: "server", name: "root_url", value: "https://app.example.org/", code }];
    const settings = { files: [{ name: "main", path: "/srv/app.conf", kind: "ini" as const, items }] };
    return described({ settings: () => settings.files, rows: [{ code: "wiki", title: "The wiki works" }] })
      .stack;
  };
  for (const code of ["wiki", "settings"]) expect(() => Testing.synth(of(code), true)).not.toThrow();
  expect(() => Testing.synth(of("wikis"), true)).toThrow(
    /settings\.files\[0\]\.items\[0\]\.code: is not the code of one of `rows`[^]*received: +"wikis"[^]*allowed: +wiki, settings/,
  );
});

test("in plain mode the application is on port 80", () => {
  const { front } = made({ mode: Mode.plain() });
  expect(renderProxyConfig(front.proxy).listeners.map(({ port }) => port)).toEqual([80]);
  expect(front.site.redirect).toBeUndefined();
});

test("the expected response of a route is written, or nothing is", () => {
  const stack = newStack();
  const proxy = new ReverseProxy(stack, "Proxy", {
    host: new Host(stack, "Host", { address: "192.0.2.10", delivery: Delivery.local({ root: "/o" }) }),
  });
  const listeners = [proxy.addListener("http", { port: 80 })];
  const server = proxy.addVirtualServer("site", {
    serverNames: ["_"],
    listeners,
    default: true,
    expect: { path: "/x" },
  });
  const action = Action.respond(204);
  server.addRoute("a", {
    path: "/a",
    match: "exact",
    action,
    expect: [{ path: "/a?b", method: "GET" }, { status: 204 }],
  });
  server.addRoute("b", { path: "/b", action, expect: false });
  const rows = () =>
    server.expectedRows().map(({ name, request }) => `${name}: ${request.method ?? "HEAD"} ${request.path}`);
  expect(rows()).toEqual(["site: HEAD /x", "site a: GET /a?b", "site a 2: HEAD /a"]);
  const silent = proxy.addVirtualServer("silent", { serverNames: ["s.example"], listeners, expect: false });
  silent.addRoute("c", { path: "/c", action });
  expect(silent.expectedRows()).toEqual([]);
  const mistakes = [{ method: "POST" }, { status: 99 }, { stats: 200 }, { fields: [{ value: "a" }] }];
  const found = mistakes.flatMap((bad, i) =>
    problemsOf(() => server.addRoute(`bad${i}`, { path: "/d", action, expect: bad as never })),
  );
  const at = (i: number): string => `stack/Proxy/VirtualServers/site/bad${i}.expect`;
  expect(found.map(({ code, path }) => `${code} ${path}`)).toEqual([
    `config.not-one-of ${at(0)}.method`,
    `config.out-of-range ${at(1)}.status`,
    `config.unknown-field ${at(2)}.stats`,
    `config.missing-field ${at(3)}.fields[0].name`,
  ]);
});
