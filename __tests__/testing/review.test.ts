import { App, TerraformStack, TerraformVariable } from "cdktf";
import {
  Access,
  Action,
  Application,
  Firewall,
  FrontEnd,
  Host,
  Mode,
  ReverseProxy,
} from "../../src/index.js";
import { renderGraph, renderProxyConfig, renderRoutes } from "../../src/testing/index.js";
import { codeBlocks } from "../../testkit/markdown.js";
import { parseConfig, type ProxyConfig } from "../../src/model/index.js";

/** What a reviewer reads of a stack: the table and the picture of what is reachable. */

function site(names: { readonly web?: string; readonly route?: string } = {}): TerraformStack {
  const { web = "web", route = "app" } = names;
  const stack = new TerraformStack(new App(), "test");
  const host = new Host(stack, "host", { address: "192.0.2.10" });
  const proxy = new ReverseProxy(stack, "proxy", {
    host,
    trustedProxies: ["10.0.0.0/8"],
    maintenance: { allow: ["192.0.2.7"] },
  });
  const listener = proxy.addListener("http", { address: "0.0.0.0", port: 8080, publishedPort: 80 });
  const inside = proxy.addListener("inside", { address: "127.0.0.1", port: 8081 });
  const upstream = proxy.addUpstream(web, {
    servers: [{ url: "http://10.0.0.7:8000" }, { url: "http://10.0.0.6:8000" }],
  });
  const server = proxy.addVirtualServer("site", {
    serverNames: ["a.example.org", "*.b.example.org"],
    listeners: [listener],
  });
  server.addRoute(route, { path: "/", action: Action.proxy(upstream), writes: "always" });
  server.addRoute("read", {
    path: "/read",
    action: Action.proxy(upstream, { strip: "raw" }),
    writes: "never",
  });
  server.addRoute("gone", { path: "/gone", match: "exact", action: Action.respond(410) });
  proxy
    .addVirtualServer("rest", { serverNames: ["_"], listeners: [listener, inside], default: true })
    .addRoute("to", { path: "/", action: Action.redirect({ host: "a.example.org", scheme: "http" }) });
  new Firewall(stack, "firewall", {
    host,
    ports: [22],
    allowed: [
      { port: 8080, from: ["192.0.2.0/24", "10.0.0.0/8"] },
      { port: 8080, protocol: "udp" },
    ],
  });
  return stack;
}

const TABLE = `\
trusted proxies: 10.0.0.0/8 (X-Forwarded-For)
served during maintenance: 192.0.2.7

SCHEME  AT                    NAMES                           PATH   MATCH    LEADS TO                                                   WHO                                  WRITES
http    0.0.0.0:8080, as 80   a.example.org, *.b.example.org  /      segment  http://10.0.0.6:8000 or http://10.0.0.7:8000               10.0.0.0/8, 192.0.2.0/24 (firewall)  always
http    0.0.0.0:8080, as 80   a.example.org, *.b.example.org  /gone  exact    410                                                        10.0.0.0/8, 192.0.2.0/24 (firewall)  -
http    0.0.0.0:8080, as 80   a.example.org, *.b.example.org  /read  segment  http://10.0.0.6:8000 or http://10.0.0.7:8000, without /read  10.0.0.0/8, 192.0.2.0/24 (firewall)  -
http    0.0.0.0:8080, as 80   any other name                  /      segment  301 to http://a.example.org(same path)                     10.0.0.0/8, 192.0.2.0/24 (firewall)  -
http    127.0.0.1:8081        any name                        /      segment  301 to http://a.example.org(same path)                     this host                            -
`;

/** Columns are as wide as their widest cell; what they say is in the cells. */
const cells = (table: string): string[] => table.split("\n").map((line) => line.replace(/ {2,}/g, "  "));

describe("renderRoutes", () => {
  test("a line for each way in, with who can come and what can be written", () => {
    const table = renderRoutes(site());
    expect(cells(table)).toEqual(cells(TABLE));
    const [head, ...rows] = table.trimEnd().split("\n").slice(3);
    const at = head!.indexOf("LEADS TO");
    expect(rows.every((row) => row.slice(at - 2, at) === "  " && row[at] !== " ")).toBe(true);
  });

  test("names of routes and upstreams are no part of it", () => {
    expect(renderRoutes(site({ web: "other", route: "renamed" }))).toBe(renderRoutes(site()));
  });

  test("a config is the same, but for what only the stack knows", () => {
    const config = renderProxyConfig(site());
    expect(cells(renderRoutes(config))).toEqual(
      cells(TABLE).map((line) => line.replace("10.0.0.0/8, 192.0.2.0/24 (firewall)", "everyone")),
    );
  });

  test("a port that the firewall leaves closed, the listener of probes, and a value of Terraform", () => {
    const stack = new TerraformStack(new App(), "test");
    const host = new Host(stack, "host", { address: "192.0.2.10" });
    const proxy = new ReverseProxy(stack, "proxy", {
      host,
      healthListener: { address: "127.0.0.1", port: 9180 },
    });
    const listener = proxy.addListener("http", {
      address: "0.0.0.0",
      port: 8080,
      proxyProtocol: { from: ["10.0.0.9"] },
    });
    const app = new TerraformVariable(stack, "app", { type: "string" });
    proxy
      .addVirtualServer("site", { serverNames: ["_"], listeners: [listener], default: true })
      .addRoute("app", {
        path: "/",
        action: Action.proxy(proxy.addUpstream("app", { url: `http://${app.stringValue}:8000` })),
      });
    new Firewall(stack, "firewall", { host, ports: [22] });
    const lines = cells(renderRoutes(stack)).slice(4, -1);
    expect(lines).toEqual([
      "http  0.0.0.0:8080  any name  /  segment  http://portico-token-0x:8000  this host (firewall); named by 10.0.0.9 (PROXY)  by method",
      "http  127.0.0.1:9180  any name  /healthz  exact  200 or 503, for probes  this host  -",
      "http  127.0.0.1:9180  any name  /readyz  exact  200 or 503, for probes  this host  -",
    ]);
    expect(renderRoutes(stack)).toBe(renderRoutes(stack));
  });

  test("lines are in the order of ports, addresses, names, paths and matches, whatever listens there", () => {
    const respond = { type: "respond", status: 204 };
    const web = { type: "proxy", upstream: "web", hostHeader: "upstream" };
    const more = { type: "proxy", upstream: "more", rewrite: "/new" };
    const parsed = parseConfig({
      version: 1,
      healthListener: { address: "127.0.0.1", port: 79 },
      metricsListener: { address: "10.0.0.1", port: 81, allow: ["10.0.0.3", "10.0.0.2"] },
      listeners: ["10.0.0.2", "10.0.0.1"].map((address) => ({
        ...{ name: address, address, port: 80, protocol: "http" },
      })),
      upstreams: [
        { name: "web", url: "http://10.0.0.7:8000" },
        { name: "more", servers: [{ url: "http://10.0.0.8:8000" }, { url: "unix:/a", backup: true }] },
      ],
      virtualServers: [
        {
          ...{ name: "rest", serverNames: ["_"], listeners: ["10.0.0.1", "10.0.0.2"], default: true },
          routes: [{ name: "s", path: "/s", action: { type: "status", allow: ["10.0.0.9", "10.0.0.4"] } }],
        },
        {
          ...{ name: "site", serverNames: ["b.example"], listeners: ["10.0.0.2"] },
          routes: [
            { name: "c", path: "/b", match: "segment", action: more },
            { name: "b", path: "/b", match: "exact", action: web },
            { name: "a", path: "/a", action: respond },
          ],
        },
        {
          ...{ name: "first", serverNames: ["a.example"], listeners: ["10.0.0.2"] },
          routes: [{ name: "z", path: "/z", action: { type: "redirect", status: 308, scheme: "https" } }],
        },
      ],
    });
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    expect(cells(renderRoutes(parsed.value)).slice(4, -1)).toEqual([
      "http  127.0.0.1:79  any name  /healthz  exact  200 or 503, for probes  this host  -",
      "http  127.0.0.1:79  any name  /readyz  exact  200 or 503, for probes  this host  -",
      "http  10.0.0.1:80  any name  /s  segment  the status, for 10.0.0.4 and 10.0.0.9  everyone  -",
      "http  10.0.0.2:80  a.example  /z  segment  308 to https://(same host)(same path)  everyone  -",
      "http  10.0.0.2:80  b.example  /a  segment  204  everyone  -",
      "http  10.0.0.2:80  b.example  /b  exact  http://10.0.0.7:8000, by its own Host  everyone  by method",
      "http  10.0.0.2:80  b.example  /b  segment  http://10.0.0.8:8000 or unix:/a (backup), /b as /new  everyone  by method",
      "http  10.0.0.2:80  any other name  /s  segment  the status, for 10.0.0.4 and 10.0.0.9  everyone  -",
      "http  10.0.0.1:81  any name  /metrics  exact  metrics  everyone; of them 10.0.0.2, 10.0.0.3  -",
    ]);
  });

  test("who comes in by an access policy, a password, a portal and a certificate", () => {
    const stack = new TerraformStack(new App(), "test");
    const front = new FrontEnd(stack, "front", {
      host: { address: "192.0.2.10", publicName: "www.example.org" },
      mode: Mode.tls(),
    });
    const closed = (name: string, more: object): unknown =>
      front.addSite(name, {
        serverNames: [`${name}.example.org`],
        application: Application.server("http://127.0.0.1:9000"),
        ...more,
      });
    const { basic, authelia } = Access;
    closed("a", { access: { allow: ["10.0.0.9", "10.0.0.8"], denyFile: "/etc/portico/denied.txt" } });
    closed("b", { access: { ...basic({ usersFile: "/etc/portico/users" }), deny: ["192.0.2.1"] } });
    closed("c", { access: { ...authelia({ url: "http://127.0.0.1:9091" }) } });
    const [ca, crl] = ["/etc/portico/ca.pem", "/etc/portico/crl.pem"];
    closed("d", { clientCertificate: { ca, crl, names: ["alice"] }, access: { allow: ["10.0.0.9"] } });
    closed("e", { clientCertificate: { ca, required: false } });
    const rows = renderRoutes(stack)
      .split("\n")
      .filter((row) => /^https .*[a-e]\.example/.test(row));
    expect(rows.map((row) => row.split(/ {2,}/)[6])).toEqual([
      "everyone; of them 10.0.0.8, 10.0.0.9; but not those in /etc/portico/denied.txt",
      "everyone; but not 192.0.2.1; with a password of /etc/portico/users",
      "everyone; signed on at http://127.0.0.1:9091/api/authz/forward-auth",
      "everyone; only certificates of /etc/portico/ca.pem for alice, but not those in /etc/portico/crl.pem; of them 10.0.0.9",
      "everyone",
    ]);
  });

  test("the page on unit tests shows it as it is", () => {
    const stack = new TerraformStack(new App(), "test");
    const files = new FrontEnd(stack, "files", {
      host: { address: "192.0.2.10", publicName: "files.example.org" },
      mode: Mode.tls(),
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
    });
    const office = files.proxy.addUpstream("office", { url: "http://10.0.0.7:8000" });
    files.site.virtualServer.addRoute("office", { path: "/office", action: Action.proxy(office) });
    const [example] = codeBlocks("docs/unit-tests.md", "ts");
    const shown = /toMatchInlineSnapshot\(`\n {4}"([^`]*)\n {4}"\n {2}`\)/.exec(example!)![1]!;
    expect(`${shown.replace(/^ {4}/gm, "")}\n`).toBe(renderRoutes(stack));
  });

  test.each([renderRoutes, renderGraph])("%p refuses what is no construct and no config", (render) => {
    expect(() => render({} as ProxyConfig)).toThrow(/is not a construct, or a config/);
  });
});

describe("renderGraph", () => {
  const mermaid = renderGraph(site());

  test("a flowchart of Mermaid", () => {
    expect(mermaid.split("\n")).toEqual(
      expect.arrayContaining([
        "flowchart LR",
        '  l0(["http 0.0.0.0:8080<br/>clients use port 80"])',
        '  v0["a.example.org<br/>#42;.b.example.org"]',
        "  l0 --> v0",
        "  l1 --> v1",
        '  r1["/read<br/>and below"]',
        '  g0[("web<br/>roundRobin")]',
        "  r0 --> g0",
        '  s0[("http://10.0.0.7:8000")]',
        "  g0 --> s1",
        "  class l0,l1 listener",
      ]),
    );
  });

  test("docs/reviews.md shows the picture of the smallest deployment", () => {
    const stack = new TerraformStack(new App(), "portico");
    new FrontEnd(stack, "files", {
      host: { address: "192.0.2.10", publicName: "files.example.org" },
      mode: Mode.tls(),
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
    });
    expect(codeBlocks("docs/reviews.md", "mermaid")).toEqual([renderGraph(stack)]);
  });

  test("no text of the config ends its label", () => {
    const stack = new TerraformStack(new App(), "test");
    const files = new FrontEnd(stack, "files", {
      host: { address: "192.0.2.10", publicName: "files.example.org" },
      mode: Mode.plain(),
      application: Application.fileSync({ installDirectory: "/srv/sync" }),
    });
    const directory = `/srv/a"]<b>&#${"x".repeat(60)}`;
    files.site.virtualServer.addRoute("odd", { path: '/"><script>&', action: Action.staticFiles(directory) });
    const odd = renderGraph(stack);
    expect(odd).toContain("#34;#62;#60;script#62;#38;<br/>and below");
    expect(odd).toContain(`files of /srv/a#34;]#60;b#62;#38;#35;${"x".repeat(60)}`);
    expect(odd).not.toMatch(/<script|<b>/);
  });
});
