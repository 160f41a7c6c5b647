import { readdirSync, readFileSync } from "node:fs";
import type { TerraformStack } from "cdktf";
import {
  Application,
  ContainerFrontEnd,
  Delivery,
  FrontEndPair,
  Mode,
  type Route,
  type Site,
} from "../../../src/index.js";
import { KubernetesFrontEnd } from "../../../src/kubernetes/index.js";
import { renderProxyConfig, renderRoutes, resolve, synthesizedFiles } from "../../../src/testing/index.js";
import { KubernetesProvider, newStack, problemsOf, synthesize } from "../../../testkit/stacks.js";
import { cluster } from "./cluster.js";
import { addSites, compose } from "./compose.js";
import { family } from "./family.js";
import { formerNginx } from "./formerNginx.js";
import { office } from "./office.js";
import { ownApplication } from "./ownApplication.js";
import { paperless } from "./paperless.js";
import { serviceAlone } from "./serviceAlone.js";
import { smartHome } from "./smartHome.js";
import { twoHosts } from "./twoHosts.js";

/** Programs as households and small offices write them: short, without casts, and without parts by hand. */

function made<Made>(program: (stack: TerraformStack) => Made): { stack: TerraformStack; front: Made } {
  const stack = newStack();
  return { stack, front: program(stack) };
}

const certificates = (stack: TerraformStack) =>
  renderProxyConfig(stack).listeners.flatMap(({ tls }) =>
    tls === undefined ? [] : [tls, ...(tls.certificates ?? [])].map(({ acme }) => acme?.names.join()),
  );

const leadsTo = (stack: TerraformStack, url: string): unknown => {
  const to = resolve(stack, url);
  if (to.kind === "proxy") return to.upstreamUrl;
  if (to.kind === "redirect") return to.location;
  if (to.kind === "staticFile") return to.file;
  return "status" in to ? to.status : to.kind;
};

const contents = (stack: TerraformStack) =>
  new Map(synthesizedFiles(stack).map(({ path, content, source }) => [path, content ?? source]));

/** Files on the host that the change makes different. */
function changedBy(program: (stack: TerraformStack) => unknown, change: (stack: TerraformStack) => void) {
  const before = made(program).stack;
  const after = made(program).stack;
  change(after);
  const former = contents(before);
  const now = contents(after);
  return [...new Set([...former.keys(), ...now.keys()])].filter((path) => former.get(path) !== now.get(path));
}

test("each program is short, and casts nothing", () => {
  const programs = readdirSync(__dirname).filter((name) => name !== "programs.test.ts");
  expect(programs).toHaveLength(10);
  for (const name of programs) {
    const text = readFileSync(`${__dirname}/${name}`, "utf8");
    expect([name, text.split("\n").length <= 40, / as |\w!|\)!/.test(text)]).toEqual([name, true, false]);
  }
});

describe("a family", () => {
  test("has three certificates, three redirects, and 404 for other names", () => {
    const { stack } = made(family);
    synthesize(stack);
    const names = ["files.family.net", "vault.family.net", "photos.family.net"];
    expect(certificates(stack)).toEqual(names);
    for (const name of names) expect(leadsTo(stack, `http://${name}/x?y`)).toBe(`https://${name}/x?y`);
    expect(["http", "https"].map((scheme) => leadsTo(stack, `${scheme}://192.0.2.10/`))).toEqual([404, 404]);
    expect(leadsTo(stack, "https://photos.family.net/")).toBe("http://127.0.0.1:2283");
  });

  test("is told that two applications want one address, and which prop to change", () => {
    const { front } = made(family);
    const [found] = problemsOf(() =>
      front.addSite("second", {
        serverNames: ["second.family.net"],
        application: Application.vaultwarden({ directory: "/srv/second" }),
      }),
    );
    expect(found).toMatchObject({
      path: "stack/home/second.upstreams.web.url",
      message: "is also the address of `web` of stack/home/files",
      received: '"http://127.0.0.1:8000"',
      fix: expect.stringContaining("`upstreams: { web: { url:"),
    });
  });

  test("changes one site and no document of another", () => {
    const photos = (stack: TerraformStack) => stack.node.findChild("home").node.findChild("photos") as Site;
    expect(
      changedBy(family, (stack) => {
        const { web } = photos(stack).routes as { readonly web: Route };
        web.configure({ requestBodyBytesMax: 50_000_000 });
      }),
    ).toEqual(["/etc/portico/portico.json"]);
  });
});

describe("a small office", () => {
  const dns = { type: "program", command: "/usr/local/sbin/dns-record" } as const;

  test("has a suite with a wiki below a path, a website and an old domain", () => {
    const { stack } = made((one) => office(one, dns));
    synthesize(stack);
    expect(
      [
        "https://cloud.office.net/",
        "https://cloud.office.net/wiki/a",
        "https://cloud.office.net/cool/ws",
        "https://cloud.office.net/push/ws",
        "https://cloud.office-old.net/",
        "https://office.net/",
        "https://mail.office-old.net/a?b",
        "https://office-old.net/a",
        "https://other.net/",
      ].map((url) => leadsTo(stack, url)),
    ).toEqual([
      "http://127.0.0.1:11000",
      "unix:/run/wiki/web.sock",
      "http://127.0.0.1:9980",
      "http://127.0.0.1:7867",
      "http://127.0.0.1:11000",
      "/srv/www/index.html",
      "https://office.net/a?b",
      "https://office.net/a",
      404,
    ]);
    expect(certificates(stack)).toEqual([
      "cloud.office.net,cloud.office-old.net",
      "office.net",
      "office-old.net,*.office-old.net",
    ]);
  });

  test("is told of a metrics listener without an address what it may have", () => {
    const { front } = made((one) => office(one, dns));
    const [found] = problemsOf(
      () =>
        new ContainerFrontEnd(front, "other", {
          mode: Mode.plain(),
          proxy: { metricsListener: {} as { path: string } },
        }),
    );
    expect(found).toMatchObject({
      path: "stack/office/other/Proxy.metricsListener",
      allowed: "`address` and `port`, or `path`",
    });
  });

  test("is told at the site that its wildcard needs a DNS record", () => {
    const { stack, front } = made(office);
    const wildcard = front.proxy.problems;
    expect(wildcard).toMatchObject([
      {
        code: "acme.wildcard-challenge",
        path: "stack/office/old.serverNames[1]",
        received: '"*.office-old.net"',
        fix: expect.stringContaining("Add `dns` to the authority, in a stack to `TlsMaterial.acme`"),
      },
    ]);
    expect(() => synthesize(stack)).toThrow("stack/office/old.serverNames[1]");
  });
});

test("the service alone, without a domain, is the site of the host's address", () => {
  for (const mode of [Mode.tls(), Mode.plain()]) {
    const { stack, front } = made((one) => serviceAlone(one, mode));
    synthesize(stack);
    expect(front.sites).toHaveLength(1);
    const origin = `${mode.scheme}://192.0.2.10`;
    expect(front.site.url).toBe(`${origin}/sync/`);
    expect(["/sync/", "/syncdav/", "/synchttp/a"].map((path) => leadsTo(stack, origin + path))).toEqual(
      ["8000", "8080", "8082"].map((port) => `http://127.0.0.1:${port}`),
    );
  }
});

test("an application of one's own is tested by its routes", () => {
  const { stack } = made(ownApplication);
  synthesize(stack);
  expect(resolve(stack, "https://app.example.org/api/x").route).toBe("api");
  expect(renderRoutes(stack)).toMatchInlineSnapshot(`
"trusted proxies: none
served during maintenance: no client

SCHEME  AT           NAMES            PATH  MATCH    LEADS TO                                      WHO       WRITES
http    0.0.0.0:80   app.example.org  /     prefix   301 to https://(same host)(same path)         everyone  -
http    0.0.0.0:80   any other name   /     segment  404                                           everyone  -
https   0.0.0.0:443  app.example.org  /     segment  http://10.0.0.7:3000 or http://10.0.0.8:3000  everyone  by method
https   0.0.0.0:443  app.example.org  /api  segment  http://127.0.0.1:4000                         everyone  by method
https   0.0.0.0:443  any other name   /     segment  404                                           everyone  -
"
`);
});

describe("with Docker Compose", () => {
  test("a family has one file, with a volume for certificates", () => {
    const files = made(compose).front;
    expect([...files.keys()].filter((path) => path.endsWith(".yml"))).toEqual(["portico.yml"]);
    for (const line of ["portico-state:/var/lib/portico", '- "immich"', '- "vaultwarden"', '- "443:8443"'])
      expect(files.get("portico.yml")).toContain(line);
    const config = JSON.parse(files.get("portico/etc/portico/portico.json") ?? "");
    expect(config.listeners[1].tls.acme.names).toEqual(["photos.family.net"]);
  });

  test("the same sites are those of a cluster and of a pair", () => {
    const { stack: inCluster } = made((stack) => {
      const front = new ContainerFrontEnd(stack, "home", { mode: Mode.tls() });
      addSites(front);
      const { proxy } = front;
      const tls = { secretName: "home-tls" };
      return new KubernetesFrontEnd(stack, "front", { namespace: "home", proxy, image: "p:1", tls });
    });
    const { front: pair } = made((stack) => {
      const delivery = Delivery.ssh({ hostKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" });
      const hosts = ["192.0.2.11", "192.0.2.12"].map((address) => ({
        ...{ address, interface: "eth0", delivery },
      }));
      const both = new FrontEndPair(stack, "home", { hosts, virtualAddress: "192.0.2.20", mode: Mode.tls() });
      addSites(both);
      return both;
    });
    for (const scope of [inCluster, ...pair.frontEnds])
      expect(resolve(scope, "https://photos.family.net/")).toMatchObject({
        upstreamUrl: "http://immich-server:2283",
      });
  });
});

test("a smart home has a certificate for each name, and logs no key", () => {
  const { stack } = made(smartHome);
  const { output = {} } = synthesize(stack);
  expect(certificates(stack)).toEqual(["ha.house.net", "films.house.net", "dav.house.net"]);
  expect(resolve(stack, "https://ha.house.net/api/websocket")).toMatchObject({
    upstreamUrl: "http://127.0.0.1:8123",
    headers: { "x-forwarded-for": "198.51.100.7", "x-forwarded-proto": "https" },
  });
  const films = renderProxyConfig(stack).virtualServers.find(({ name }) => name === "films");
  expect(films?.routes).toMatchObject([{ name: "web", logQuery: "names" }]);
  const forwards = Object.entries(output).find(([name]) => name.includes("PortForwards"))?.[1];
  expect(forwards?.value).toMatchObject([{ port: 80 }, { port: 443 }]);
});

test("the printer's pages are for the office's network, the documents for everyone", () => {
  const { stack } = made(paperless);
  synthesize(stack);
  expect(renderRoutes(stack)).toMatchInlineSnapshot(`
"trusted proxies: none
served during maintenance: no client

SCHEME  AT            NAMES               PATH  MATCH    LEADS TO                               WHO                                  WRITES
http    0.0.0.0:80    paper.office.net    /     prefix   301 to https://(same host)(same path)  everyone                             -
http    0.0.0.0:80    any other name      /     segment  404                                    everyone                             -
https   0.0.0.0:443   paper.office.net    /     segment  http://127.0.0.1:8010                  everyone                             by method
https   0.0.0.0:443   any other name      /     segment  404                                    everyone                             -
https   0.0.0.0:8443  printer.office.net  /     segment  http://10.1.0.40:80                    10.1.0.0/16, 10.8.0.0/24 (firewall)  by method
https   0.0.0.0:8443  any other name      /     segment  404                                    10.1.0.0/16, 10.8.0.0/24 (firewall)  -
"
`);
  expect(leadsTo(stack, "https://printer.office.net/")).toBe(404);
  expect(leadsTo(stack, "https://printer.office.net:8443/")).toBe("http://10.1.0.40:80");
});

test("two hosts have the same site, with a certificate by ACME", () => {
  const { stack, front } = made(twoHosts);
  synthesize(stack);
  const [first, second] = front.frontEnds;
  expect(renderRoutes(first)).toBe(renderRoutes(second));
  expect(resolve(first, "https://www.practice.net/")).toMatchObject({
    servers: [{ url: "http://192.0.2.31:8080" }, { url: "http://192.0.2.32:8080" }],
  });
});

test("a cluster mounts a Secret for each site", () => {
  const { stack, front } = made((one) => {
    new KubernetesProvider(one, "kubernetes");
    return cluster(one);
  });
  synthesize(stack);
  expect(front.problems).toEqual([]);
  for (const secret of ["cloud-tls", "wiki-tls"]) expect(front.manifestsText).toContain(secret);
  expect(leadsTo(stack, "https://wiki.club.net/")).toBe("http://wiki.wiki.svc:3000");
});

test("the URLs of the former proxy lead to the new places", () => {
  const { stack } = made(formerNginx);
  synthesize(stack);
  const urls = [
    ["http://shop.net/blog/a?b=c", "https://shop.net/blog/a?b=c"],
    ["https://shop.net/blog/a?b=c", "https://shop.net/journal/a?b=c"],
    ["https://www.shop.net/impressum.html", "https://www.shop.net/legal"],
    ["https://shop.net/static/shop.css", "/srv/shop/static/shop.css"],
    ["https://shop.net/forum/t/1", "http://127.0.0.1:4567"],
    ["https://shop.net/cart", "http://127.0.0.1:3000"],
    ["https://old-shop.net/x?y", "https://shop.net/x?y"],
  ] as const;
  expect(urls.map(([url]) => [url, leadsTo(stack, url)])).toEqual(urls);
});
