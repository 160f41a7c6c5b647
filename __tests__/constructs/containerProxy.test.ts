import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Testing } from "cdktf";
import { Access, Action, ContainerProxy, Listener, TlsMaterial } from "../../src/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

const said = sayings("container-proxy");

/** A proxy without a host, with one of each part. */
function site() {
  const stack = newStack();
  const proxy = new ContainerProxy(stack, "proxy", { workers: 2, trustedProxies: ["10.0.0.0/8"] });
  const tls = { material: TlsMaterial.fromSecret() };
  const https = proxy.addListener("https", { port: 8443, tls });
  const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [https], default: true });
  const app = proxy.addUpstream("app", { url: "http://app.files.svc:8000" });
  server.addRoute("app", { path: "/", action: Action.proxy(app) });
  return { stack, proxy, server };
}

test("a proxy without a host has the same parts, and the same config comes of them", () => {
  const { stack } = site();
  const config = renderProxyConfig(stack);
  expect(config.workers).toBe(2);
  expect(config.listeners[0]!.tls).toMatchObject({
    certificate: "/etc/portico/tls/tls.crt",
    key: "/etc/portico/tls/tls.key",
    dhparam: "/etc/portico/dhparam2048.pem",
  });
  expect(resolve(stack, "https://files.example.org/x")).toMatchObject({
    kind: "proxy",
    upstream: "app",
    requestLine: "GET /x HTTP/1.1",
  });
});

test("its stack has no resources: it puts nothing anywhere", () => {
  const { stack } = site();
  expect(JSON.parse(Testing.synth(stack))).not.toHaveProperty("resource");
});

test("small files that its containers need are listed with their contents", () => {
  const { proxy } = site();
  proxy.addFile("/usr/share/portico/default/index.html", "<p>hello</p>");
  expect([...proxy.files.keys()]).toEqual([
    "/etc/portico/dhparam2048.pem",
    "/usr/share/portico/default/index.html",
  ]);
  const refused = (path: string) => said(problemsOf(() => proxy.addFile(path, ""))).map(({ code }) => code);
  expect(refused("/etc/portico/portico.json")).toEqual(["files.duplicate-path"]);
  expect(refused("page.html")).toEqual(["config.bad-file-path"]);
});

test("overrides apply, and problems name the constructs", () => {
  const { stack, proxy, server } = site();
  proxy.addConfigOverride("timeouts.drainMs", 60_000);
  expect(renderProxyConfig(stack).timeouts.drainMs).toBe(60_000);
  server.addRoute("again", { path: "/", action: Action.respond(204) });
  expect(proxy.problems.map(({ path }) => path)).toEqual(["stack/proxy/VirtualServers/site/again.path"]);
});

test("a single limit or timeout is a setting, and no prop that does not exist is", () => {
  const settings = { limits: { headBytesMax: 4096 }, timeouts: { drainMs: 1000 } };
  const proxy = new ContainerProxy(newStack(), "proxy", settings);
  expect(proxy.config).toMatchObject(settings);
  expect(new ContainerProxy(newStack(), "proxy").config).not.toHaveProperty("limits");
  expect(new ContainerProxy(newStack(), "proxy").config).not.toHaveProperty("timeouts");
  expect(() => new ContainerProxy(newStack(), "proxy", { worker: 1 } as never)).toThrow(
    "stack/proxy.worker: is not a known field",
  );
  expect(() => proxy.addFile(5 as never, "x")).toThrow("stack/proxy.addFile.path: is not a string");
  expect(() => TlsMaterial.fromSecret(5 as never)).toThrow(
    "TlsMaterial.fromSecret.directory: is not a string",
  );
});

test("a self-signed certificate is refused: there is no host to put it on", () => {
  const proxy = new ContainerProxy(newStack(), "proxy");
  const tls = { material: TlsMaterial.selfSigned() };
  expect(() => proxy.addListener("https", { port: 8443, tls })).toThrow("container.no-host");
});

test.each(["tls", "/etc/tls/", { secretName: "files-tls" }])(
  "a Secret is named by its directory: %j",
  (directory) => {
    expect(() => TlsMaterial.fromSecret(directory as string)).toThrow(
      /^TlsMaterial\.fromSecret\.directory: /,
    );
  },
);

test("a part outside of any proxy is refused with where it belongs", () => {
  expect(() => new Listener(newStack(), "l", { port: 8080 })).toThrow(
    /below a ReverseProxy or a ContainerProxy[^]*Use a ReverseProxy, a ContainerProxy, or a construct below/,
  );
});

test("Compose keeps certificates by ACME on a volume, which the image gives to the proxy's user", () => {
  const proxy = new ContainerProxy(newStack(), "proxy");
  const material = TlsMaterial.acme({ email: "admin@example.org", agreeToTerms: true });
  const tls = { material, serverNames: ["files.example.org"] };
  const listeners = [proxy.addListener("http", { port: 80 }), proxy.addListener("https", { port: 443, tls })];
  proxy.addVirtualServer("site", { serverNames: ["files.example.org"], listeners, default: true });
  const file = proxy.composeFiles({ image: "portico:1" }).get("portico.yml")!;
  expect(file).toContain('\n      - "portico-state:/var/lib/portico"\n');
  expect(file).toContain('\n    environment: { "STATE_DIRECTORY": "/var/lib/portico" }\n');
  expect(file).toMatch(/\nvolumes:\n {2}portico-state: \{\}\n$/);
  expect(file).not.toContain("/etc/portico/tls");
  expect(readFileSync(join(__dirname, "../../Containerfile"), "utf8")).toContain(
    "const at = '/var/lib/portico'; fs.mkdirSync(at",
  );
  expect(site().proxy.composeFiles({ image: "portico:1" }).get("portico.yml")).not.toContain("portico-state");
});

test("Compose with a portal that would be in the container itself", () => {
  const { proxy, server } = site();
  const access = Access.authelia({ url: "http://127.0.0.1:9091" });
  server.addRoute("closed", { path: "/closed", action: Action.respond(404), access });
  const problems = problemsOf(() => proxy.composeFiles({ image: "portico:1" }));
  expect(problems.map(({ code, path }) => `${code} ${path}`)).toEqual([
    "compose.loopback-upstream stack/proxy.accessPolicies.site/closed.forwardAuth.url",
  ]);
});

test.each<[what: string, url: string, directory: string, volumes: string[], codes: string[]]>([
  ["the container itself", "http://127.0.0.1:8000", "/srv/a", ["./a:/srv/a:ro"], ["loopback-upstream"]],
  ["its name for itself", "http://localhost:8000", "/srv/a", ["/srv/a"], ["loopback-upstream"]],
  ["a socket that it does not have", "unix:/run/a/a.sock", "/srv/a/b", ["a:/srv/a/"], ["loopback-upstream"]],
  ["a socket on a volume", "unix:/run/a/a.sock", "/srv/a", ["./a:/srv/a", "run:/run/a"], []],
  ["a directory that it does not have", "http://app:8000", "/srv/abc", ["./a:/srv/a"], ["no-volume"]],
  ["another service and a volume", "http://app:8000", "/srv/a", ["./a:/srv/a:ro"], []],
])("Compose with %s", (_, url, directory, volumes, codes) => {
  const { proxy, server } = site();
  const local = proxy.addUpstream("local", { url });
  server.addRoute("local", { path: "/local", action: Action.proxy(local) });
  server.addRoute("media", { path: "/media", action: Action.staticFiles(directory) });
  const places = {
    "loopback-upstream": "Upstreams/local.url",
    "no-volume": "VirtualServers/site/media.action",
  };
  const problems =
    codes.length === 0 ? [] : problemsOf(() => proxy.composeFiles({ image: "portico:1", volumes }));
  expect(problems.map(({ code, path }) => `${code} ${path}`)).toEqual(
    codes.map((code) => `compose.${code} stack/proxy/${places[code as "no-volume"]}`),
  );
  if (codes.length === 0) expect(() => proxy.composeFiles({ image: "portico:1", volumes })).not.toThrow();
});

test("files for Compose: the service, and what it mounts", () => {
  const { proxy } = site();
  const files = proxy.composeFiles({
    image: "portico:1",
    networks: ["files-net"],
    volumes: ["./$a:/srv/a:ro"],
  });
  expect([...files.keys()]).toEqual([
    "portico.yml",
    "portico/etc/portico/portico.json",
    "portico/etc/portico/dhparam2048.pem",
  ]);
  expect(files.get("portico.yml")!.replace(/[0-9a-f]{16}/, "HASH")).toMatchInlineSnapshot(`
"# Written by Portico: docs/containers.md. Give it to \`docker compose\` after the application's own file.
services:
  portico:
    image: "portico:1"
    restart: "unless-stopped"
    user: "65532:65532"
    read_only: true
    cap_drop: ["ALL"]
    security_opt: ["no-new-privileges:true"]
    # Transfers that run may end.
    stop_grace_period: "36010s"
    # Another one makes a new container: the engine does not look into files that are mounted.
    labels: { "portico.files": "HASH" }
    ports:
      - "8443:8443"
    volumes:
      - "./portico/etc/portico/portico.json:/etc/portico/portico.json:ro"
      - "./portico/etc/portico/dhparam2048.pem:/etc/portico/dhparam2048.pem:ro"
      - "./portico/etc/portico/tls:/etc/portico/tls:ro"
      - "./$$a:/srv/a:ro"
    networks:
      - "files-net"
"
`);
  proxy.addConfigOverride("healthListener", { address: "127.0.0.1", port: 9180 });
  const [, health] = proxy.composeFiles({ image: "a" }).get("portico.yml")!.split("    healthcheck:\n");
  const [, program] = /^ {6}test: \["CMD", "node", "-e", (".*")\]\n {6}interval: "10s"\n/.exec(health!)!;
  expect(JSON.parse(program!)).toMatch(/^require\("http"\)\.get\("http:\/\/127\.0\.0\.1:9180\/readyz"/);
  expect(health).toMatch(/\n {6}timeout: "5s"\n {6}start_period: "20s"\n$/);
  const again = (networks: unknown) => () => proxy.composeFiles({ image: "portico:1", networks } as never);
  expect(again("files-net")).toThrow("stack/proxy.composeFiles.networks");
});
