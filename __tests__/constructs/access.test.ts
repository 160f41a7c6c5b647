import { App, TerraformStack } from "cdktf";
import { expectedResponses } from "../../src/host/diagnosis/expected/expectedResponses.js";
import { APPLICATIONS } from "../../src/applications/table.js";
import { ANY_PLACE } from "../../src/applications/index.js";
import {
  Access,
  type AccessOption,
  type AccessPolicy,
  Application,
  FrontEnd,
  Mode,
} from "../../src/index.js";
import { renderProxyConfig, resolve, synthesizedFiles } from "../../src/testing/index.js";

const VPN = { allow: ["10.8.0.0/24"] } as const;

function frontEnd(props: { access?: AccessOption; vault?: AccessOption } = {}) {
  const stack = new TerraformStack(new App(), "s");
  const front = new FrontEnd(stack, "front", {
    host: { address: "192.0.2.10", publicName: "www.example.org" },
    mode: Mode.tls(),
    access: props.access,
  });
  front.addSite("www", {
    serverNames: ["www.example.org"],
    application: Application.server("http://127.0.0.1:9000"),
  });
  const vault = front.addSite("vault", {
    serverNames: ["vault.example.org"],
    application: Application.vaultwarden({ directory: "/srv/vaultwarden" }),
    access: props.vault,
  });
  const status = (url: string, clientAddress?: string) => {
    const found = resolve(stack, { url, clientAddress });
    return found.kind === "error" ? [found.status, found.refusal?.policy] : [found.kind, found.access];
  };
  return { stack, front, vault, status };
}

test("without access a config has no policies, but those of applications' manuals", () => {
  const { stack, status } = frontEnd();
  expect(renderProxyConfig(stack).accessPolicies).toEqual({
    "vault/admin": { allow: Access.localNetworks(), refusal: 403 },
  });
  expect(status("https://www.example.org/")).toEqual(["proxy", undefined]);
  expect(status("https://vault.example.org/")).toEqual(["proxy", undefined]);
  expect(status("https://vault.example.org/%61dmin/users")).toEqual([403, "vault/admin"]);
  expect(status("https://vault.example.org/admin", "192.168.1.5")).toEqual(["proxy", "vault/admin"]);
});

test("the nearest policy applies as a whole, and resolve says where it came from", () => {
  const { front, vault, status } = frontEnd({
    access: VPN,
    vault: { deny: ["203.0.113.0/24"], refusal: 404 },
  });
  expect(status("https://www.example.org/")).toEqual([403, "front end"]);
  expect(status("https://www.example.org/", "10.8.0.7")).toEqual(["proxy", "front end"]);
  expect(status("https://vault.example.org/")).toEqual(["proxy", "vault"]);
  expect(status("https://vault.example.org/", "203.0.113.9")).toEqual([404, "vault"]);
  // The redirect to https stays open; the page for other names does not.
  expect(status("http://www.example.org/")[0]).toBe("redirect");
  expect(status("https://other.example.org/")).toEqual([403, "front end"]);
  vault.addRoute("share", { path: "/share", action: vault.routes.web.action, access: "open" });
  expect(status("https://vault.example.org/share", "203.0.113.9")).toEqual(["proxy", undefined]);
  expect(front.sites).toHaveLength(2);
});

test("what a manual closes narrows what a site lets in, until the route says otherwise", () => {
  const { vault, status } = frontEnd({ vault: { allow: ["10.8.0.0/24", "203.0.113.0/24"] } });
  const admin = (client: string) => status("https://vault.example.org/admin", client)[0];
  expect(["10.8.0.7", "203.0.113.9", "192.168.1.5"].map(admin)).toEqual(["proxy", 403, 403]);
  vault.routes.admin.configure({ access: { allow: ["203.0.113.0/24"] } });
  expect(["10.8.0.7", "203.0.113.9", "192.168.1.5"].map(admin)).toEqual([403, "proxy", 403]);
  vault.routes.admin.configure({ access: undefined });
  expect(["10.8.0.7", "203.0.113.9"].map(admin)).toEqual(["proxy", 403]);
});

test("where a site and a manual have no address in common, nobody comes in", () => {
  const { status } = frontEnd({ vault: { allow: ["203.0.113.0/24"] } });
  expect(
    ["203.0.113.9", "192.168.1.5"].map((one) => status("https://vault.example.org/admin", one)[0]),
  ).toEqual([403, 403]);
});

test.each<[unknown, RegExp]>([
  [{ allow: ["10.0.0.0/33"] }, /access\.allow\[0\].*is not an IP address/s],
  [{ allow: [] }, /access\.allow.*has too few items/s],
  [{ denyFile: "denied.txt" }, /access\.denyFile.*is not an absolute path/s],
  [{ refusal: 404 }, /access.*refuses nobody/s],
  [{ basic: {} }, /access\.basic\.usersFile.*is missing/s],
  [Access.basic({ usersFile: "users" }), /access\.basic\.usersFile.*is not an absolute path/s],
  [Access.basic({ usersFile: "/etc/u", realm: 'a"b' }), /access\.basic\.realm/],
  [
    Access.basic({ usersFile: "/etc/u", userField: "X-User" }),
    /access\.basic\.userField.*is a field that clients may send/s,
  ],
  [Access.basic({ usersFile: "/etc/u", userField: "Remote_User" }), /access\.basic\.userField/],
  [Access.basic({ usersFile: "/etc/u", userField: "X-Forwarded-For" }), /access\.basic\.userField/],
  [{ allowed: ["10.0.0.0/8"] }, /allowed/],
  [Access.authelia({ url: "127.0.0.1:9091" }), /access\.forwardAuth\.url/],
  [Access.authelia({ url: "http://[::1]:9091/a b" }), /access\.forwardAuth\.url/],
  [Access.authelia({ url: "http://a:b@portal:9091" }), /access\.forwardAuth\.url/],
  [{ forwardAuth: {} }, /access\.forwardAuth\.url.*is missing/s],
  [
    Access.authelia({ url: "http://portal:9091", copyFields: ["X-User"] }),
    /access\.forwardAuth\.copyFields\[0\].*is a field that clients may send/s,
  ],
  [Access.authelia({ url: "http://portal:9091", copyFields: ["Authorization"] }), /copyFields\[0\]/],
  [Access.authelia({ url: "http://portal:9091", bypass: ["api"] }), /access\.forwardAuth\.bypass\[0\]/],
  [
    { ...Access.basic({ usersFile: "/etc/u" }), ...Access.authelia({ url: "http://portal:9091" }) },
    /access.*asks for a password, and asks a portal/s,
  ],
  ["closed", /access/],
])("%j is refused where it was given", (access, message) => {
  expect(() => frontEnd({ vault: access as AccessOption })).toThrow(message);
  expect(() => frontEnd({ access: access as AccessOption })).toThrow(message);
  expect(() => frontEnd().vault.routes.web.configure({ access: access as AccessOption })).toThrow(message);
});

test("basic authentication: resolve knows who needs a password, and what the upstream gets", () => {
  const { stack, status } = frontEnd({
    access: { ...Access.basic({ usersFile: "/etc/portico/users", userField: "Remote-User" }), ...VPN },
  });
  expect(status("https://www.example.org/")).toEqual([403, "front end"]);
  expect(status("https://www.example.org/", "10.8.0.7")).toEqual([401, "front end"]);
  const found = resolve(stack, {
    url: "https://www.example.org/",
    clientAddress: "10.8.0.7",
    headers: { Authorization: `Basic ${Buffer.from("alice:x").toString("base64")}`, "remote-user": "bob" },
  });
  expect(found).toMatchObject({ kind: "proxy", headers: { "remote-user": "alice" } });
  expect(found).not.toHaveProperty(["headers", "authorization"]);
  // The site's password stays in front of what a manual closes.
  expect(status("https://vault.example.org/admin", "10.8.0.7")).toEqual([401, "vault/admin"]);
  const files = synthesizedFiles(stack);
  const text = (name: string) => files.find(({ path }) => path.endsWith(name))!.content;
  expect(text("/portico.service")).toContain("LoadCredential=users:/etc/portico/users\n");
  expect(text("/portico-certificates.path")).toContain("PathChanged=/etc/portico/users\n");
});

const PORTALS: [string, AccessPolicy, string, string][] = [
  ["authelia", Access.authelia({ url: "http://127.0.0.1:9091" }), "/api/authz/forward-auth", "remote-groups"],
  [
    "authentik",
    Access.authentik({ url: "http://127.0.0.1:9091/" }),
    "/outpost.goauthentik.io/auth/traefik",
    "x-authentik-groups",
  ],
  ["oauth2-proxy", Access.oauth2Proxy({ url: "http://127.0.0.1:9091" }), "/", "x-auth-request-groups"],
  ["tinyauth", Access.tinyauth({ url: "http://127.0.0.1:9091" }), "/api/auth/traefik", "remote-groups"],
  ["a path", Access.tinyauth({ url: "http://127.0.0.1:9091/x?y=z" }), "/x?y=z", "remote-email"],
];

test.each(PORTALS)("a portal: resolve names %s, and what the upstream gets", (_, access, path, field) => {
  const { stack, status } = frontEnd({ access: { ...access, deny: ["203.0.113.0/24"] } });
  expect(status("https://www.example.org/", "203.0.113.9")).toEqual([403, "front end"]);
  const url = "https://www.example.org/";
  expect(
    resolve(stack, { url, headers: { [field]: "root", [field.replaceAll("-", "_")]: "root" } }),
  ).toMatchObject({
    kind: "proxy",
    access: "front end",
    forwardAuth: `http://127.0.0.1:9091${path}`,
    headers: { [field]: "(from the portal)" },
  });
});

test("a portal is not asked about what an application's programs request, unless the stack says so", () => {
  const asked = (access: AccessPolicy, url: string) => {
    const { stack } = frontEnd({ access });
    return resolve(stack, { url: `https://${url}` }).forwardAuth !== undefined;
  };
  const portal = Access.authelia({ url: "http://127.0.0.1:9091" });
  expect(asked(portal, "vault.example.org/")).toBe(true);
  expect(asked(portal, "vault.example.org/api/sync")).toBe(false);
  expect(asked(portal, "vault.example.org/api/..;/x")).toBe(true);
  expect(asked(portal, "vault.example.org/apis")).toBe(true);
  expect(asked(portal, "www.example.org/api/sync")).toBe(true);
  const closed = Access.authelia({ url: "http://127.0.0.1:9091", bypass: [] });
  expect(asked(closed, "vault.example.org/api/sync")).toBe(true);
  // The page for other names asks nobody.
  expect(asked(portal, "other.example.org/")).toBe(false);
  const { stack } = frontEnd({ access: portal });
  expect(Object.keys(renderProxyConfig(stack).accessPolicies!)).toEqual(
    expect.arrayContaining(["front end", "vault", "vault/admin"]),
  );
});

test("checks of expected responses take any response of a portal to a stranger, but not its absence", () => {
  const rows = (access?: AccessPolicy) => {
    const { stack, front } = frontEnd({ access });
    const expect = front.proxy.virtualServers.flatMap((one) => one.expectedRows());
    return expectedResponses(renderProxyConfig(stack), { expect }).flatMap(({ request, expected }) => {
      const takes = (status: number) =>
        expected.every((one) => one.holds({ protocol: "HTTP/2", status, headers: {} }));
      const isSite = request.host === "www.example.org" && request.scheme === "https" && request.path === "/";
      return isSite ? [[200, 302, 401, 403, 502, 503].filter(takes)] : [];
    });
  };
  const open = rows();
  expect(open.length).toBeGreaterThan(0);
  expect(rows(Access.authelia({ url: "http://127.0.0.1:9091" }))).toEqual(
    open.map(() => [200, 302, 401, 403]),
  );
});

test("a portal that would be asked about no request is refused", () => {
  const served = (bypass?: string[]) => {
    const stack = new TerraformStack(new App(), "s");
    const front = new FrontEnd(stack, "front", {
      host: { address: "192.0.2.10", publicName: "www.example.org" },
      mode: Mode.tls(),
      application: Application.gitea(),
      access: Access.authelia({ url: "http://127.0.0.1:9091", bypass }),
    });
    return front.proxy.problems.map(({ code, path, message }) => `${path} ${message} ${code}`);
  };
  expect(served()).toEqual([
    expect.stringMatching(/bypass is by default every path of the application.*config\.access-without-rule$/),
  ]);
  expect(served([])).toEqual([]);
});

test("basic authentication without TLS is refused on a public address", () => {
  const served = (mode: Mode) => () => {
    const stack = new TerraformStack(new App(), "s");
    new FrontEnd(stack, "front", {
      host: { address: "192.0.2.10", publicName: "www.example.org" },
      mode,
      application: Application.server("http://127.0.0.1:9000"),
      access: Access.basic({ usersFile: "/etc/portico/users" }),
    });
    return renderProxyConfig(stack);
  };
  expect(served(Mode.plain())).toThrow(/asks for passwords without TLS/);
  expect(served(Mode.tls())).not.toThrow();
});

test("no application closes a path that its sync clients need", () => {
  const closed = APPLICATIONS.flatMap(({ name, routes, clients: { builtIn = [], withCredentials } }) =>
    Object.values(routes(ANY_PLACE)).flatMap((route) =>
      route?.access === undefined
        ? []
        : [
            [
              name,
              route.path,
              [...builtIn, ...withCredentials].filter((path) => `${path}/`.startsWith(`${route.path}/`)),
            ],
          ],
    ),
  );
  expect(closed).toEqual([["vaultwarden", "/admin", []]]);
});
