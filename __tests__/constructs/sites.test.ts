import { Application, Delivery, FrontEnd, Mode, TlsMaterial } from "../../src/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

/** Several sites on one host. */

const KEY =
  "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBEmKSENjQEezOmxkZMy7opKgwFB9nkt5YRrYMjNuG5N87uRgg6CLrbo5wAdT/y6v0mKV0U2w0WZ2YB/++Tpockg=";

function house() {
  const stack = newStack();
  const front = new FrontEnd(stack, "home", {
    host: { address: "192.0.2.10", publicName: "files.example", delivery: Delivery.ssh({ hostKey: KEY }) },
    mode: Mode.tls(),
    application: Application.fileSync({ installDirectory: "/srv/sync" }),
  });
  const vault = front.addSite("vault", {
    serverNames: ["vault.example", "pass.example"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
    upstreams: { web: { url: "http://127.0.0.1:8222" } },
  });
  const wiki = front.addSite("wiki", {
    serverNames: ["wiki.example"],
    application: Application.server("http://127.0.0.1:3000"),
    tls: TlsMaterial.fromFiles({ certificate: "/etc/wiki/c.pem", key: "/etc/wiki/k.pem" }),
  });
  return { stack, front, vault, wiki };
}

test("each name leads to its site, over https and by a redirect from http", () => {
  const { stack, vault, wiki } = house();
  vault.routes.web.configure({ requestBodyBytesMax: 9 });
  expect(vault.url).toBe("https://vault.example/");
  expect(resolve(stack, "https://pass.example/x")).toMatchObject({ kind: "proxy", upstream: "vault-web" });
  expect(resolve(stack, "https://wiki.example/x")).toMatchObject({ kind: "proxy", upstream: "wiki-web" });
  expect(resolve(stack, "http://wiki.example/x?y")).toMatchObject({
    kind: "redirect",
    location: "https://wiki.example/x?y",
  });
  expect(resolve(stack, "https://files.example/sync/x")).toMatchObject({ kind: "proxy", upstream: "web" });
  expect(wiki.upstreams.web.url).toBe("http://127.0.0.1:3000");
});

test("what a deployment has of each site has the site's name", () => {
  const { stack, front } = house();
  const config = renderProxyConfig(stack);
  expect(config.virtualServers.map(({ name }) => name)).toEqual([
    ...["default", "redirect", "application"],
    ...["vault-redirect", "vault", "wiki-redirect", "wiki"],
  ]);
  expect(config.virtualServers.map(({ site }) => site)).toEqual([
    ...[undefined, "application", "application"],
    ...["vault", "vault", "wiki", "wiki"],
  ]);
  const { rows = [], settings, expect: expected = [] } = front.activation!.deployment;
  expect(rows.map(({ site }) => site)).toEqual([undefined, undefined, undefined, undefined, "vault"]);
  expect(settings!.files.map(({ site }) => site)).toEqual(["vault"]);
  expect(rows.map(({ code }) => code)).toEqual([
    ...["media-permissions", "avatar", "web-application", "public-urls"],
    "vault-public-urls",
  ]);
  expect(settings!.files.map(({ name, items }) => [name, items.map(({ code }) => code)])).toEqual([
    ["vault-env", ["vault-public-urls"]],
  ]);
  const names = expected.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  expect(names).toEqual(expect.arrayContaining(["vault: redirect to https", "wiki: redirect to https"]));
});

test("a name, an id or an upstream of another site is refused", () => {
  const { front } = house();
  const application = Application.server("http://127.0.0.1:4000");
  const codes = (make: () => unknown) => problemsOf(make).map(({ code, path }) => [code, path]);
  expect(codes(() => front.addSite("more", { serverNames: ["wiki.example"], application }))).toEqual([
    ["config.duplicate-server-name", "stack/home/more.serverNames[0]"],
  ]);
  expect(codes(() => front.addSite("vault", { serverNames: ["a.example"], application }))[0]![0]).toBe(
    "config.duplicate-id",
  );
  expect(codes(() => front.addSite("none", { serverNames: [], application }))[0]![0]).toBe(
    "config.missing-field",
  );
});
