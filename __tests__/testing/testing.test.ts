import { App, TerraformStack, TerraformVariable } from "cdktf";
import {
  Action,
  Delivery,
  Host,
  HostFile,
  type HostFileProps,
  Mode,
  ProblemError,
  ReverseProxy,
  TlsMaterial,
} from "../../src/index.js";
import {
  renderProxyConfig,
  type Resolution,
  resolve,
  resolveAs,
  synthesizedFile,
  synthesizedFiles,
  type TestRequest,
} from "../../src/testing/index.js";
import { frontEnd, newStack, problemsOf } from "../../testkit/stacks.js";

const plain = renderProxyConfig(frontEnd({ mode: Mode.plain() }));
const tls = renderProxyConfig(
  frontEnd({
    host: { address: "192.0.2.10", ipv6Address: "2001:db8::10", publicName: "files.example.org" },
    proxy: { trustedProxies: ["10.0.0.0/8", "2001:db8:ffff::/48", "192.0.2.99"] },
  }),
);

const kindOf = (r: Resolution): string => {
  const rest = {
    proxy: () => (r.kind === "proxy" ? `${r.upstream} ${r.requestLine}` : ""),
    staticFile: () => (r.kind === "staticFile" ? r.file : ""),
    redirect: () => (r.kind === "redirect" ? `${r.status} ${r.location}` : ""),
    respond: () => (r.kind === "respond" ? `${r.status} ${r.body}` : ""),
    status: () => "",
    error: () => (r.kind === "error" ? String(r.status) : ""),
  }[r.kind]();
  return `${r.virtualServer}/${r.route ?? "-"} ${r.kind} ${rest}`;
};

test.each([
  ["GET", "/sync/", false],
  ["PROPFIND", "/syncdav/", false],
  ["POST", "/sync/", true],
  ["MOVE", "/syncdav/a", true],
  ["PUT", "/synchttp/a", true],
])("%s %s writes: %j", (method, path, writes) => {
  const stack = frontEnd({ mode: Mode.plain() });
  const resolved = resolve(stack, { method, url: `http://192.0.2.10${path}` });
  expect(resolved).toMatchObject({ kind: "proxy", writes });
});

describe("resolve in plain mode", () => {
  test.each([
    // Service 4.1 and 5.1.
    ["http://192.0.2.10/sync/", "application/web proxy web GET /sync/ HTTP/1.1"],
    ["http://192.0.2.10/sync", "application/web proxy web GET /sync HTTP/1.1"],
    ["http://192.0.2.10:80/sync/?a=/../b", "application/web proxy web GET /sync/?a=/../b HTTP/1.1"],
    ["http://192.0.2.10/syncdav/a%20b", "application/webdav proxy webdav GET /syncdav/a%20b HTTP/1.1"],
    ["http://192.0.2.10/synchttp/files/x", "application/fileServer proxy fileServer GET /files/x HTTP/1.1"],
    ["http://192.0.2.10/synchttp", "application/fileServer proxy fileServer GET / HTTP/1.1"],
    [
      "http://192.0.2.10/synchttp//a%2Fb/?x=%20",
      "application/fileServer proxy fileServer GET //a%2Fb/?x=%20 HTTP/1.1",
    ],
    ["http://192.0.2.10/syncmedia/img/a%20b.png", "application/media staticFile /srv/sync/media/img/a b.png"],
    ["http://192.0.2.10/syncmedia/%C3%A9.png", "application/media staticFile /srv/sync/media/é.png"],
    ["http://192.0.2.10/", "application/page staticFile /usr/share/portico/default/index.html"],
    ["http://192.0.2.10", "application/page staticFile /usr/share/portico/default/index.html"],
    // Decisions 1.3 and 1.4: matched on a normalised copy, forwarded raw, segments respected.
    ["http://192.0.2.10//sync/x", "application/web proxy web GET //sync/x HTTP/1.1"],
    ["http://192.0.2.10/%73ync/x", "application/web proxy web GET /%73ync/x HTTP/1.1"],
    [
      "http://192.0.2.10/sync/../syncdav/x",
      "application/webdav proxy webdav GET /sync/../syncdav/x HTTP/1.1",
    ],
    ["http://192.0.2.10/synchttpfoo", "application/web proxy web GET /synchttpfoo HTTP/1.1"],
    ["http://192.0.2.10/syncmedia-old/x", "application/web proxy web GET /syncmedia-old/x HTTP/1.1"],
    ["http://192.0.2.10/Sync/", "application/- error 404"],
    ["http://192.0.2.10/other", "application/- error 404"],
    // Service 1.3: an unknown name meets the default server.
    ["http://other.example/sync/", "default/page staticFile /usr/share/portico/default/sync/index.html"],
    ["http://[2001:db8::1]/", "default/page staticFile /usr/share/portico/default/index.html"],
    ["http://192.0.2.10/../sync", "default/- error 400"],
    ["http://192.0.2.10/sync/%zz", "default/- error 400"],
    ["http://a b/sync/", "default/- error 400"],
  ])("%s", (url, expected) => {
    expect(kindOf(resolve(plain, url))).toBe(expected);
  });
});

describe("resolve and the fields of the response", () => {
  const material = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem", dhparam: false });
  const app = frontEnd({
    mode: Mode.tls({ material, hsts: {} }),
    responseHeaders: { set: { "X-Frame-Options": "DENY", "X-A": "1" }, remove: ["Server"] },
  });
  app.site.virtualServer.addRoute("share", {
    path: "/sync/share",
    action: Action.respond(200),
    responseHeaders: { set: { "x-a": "2" }, remove: ["X-Frame-Options"] },
  });
  const hsts = "max-age=31536000";

  test.each([
    ["https://192.0.2.10/sync/", { "x-frame-options": "DENY", "x-a": "1" }, ["server"]],
    ["https://192.0.2.10/sync/share/x", { "x-a": "2" }, ["x-frame-options", "server"]],
    ["https://192.0.2.10/none", { "x-frame-options": "DENY", "x-a": "1" }, ["server"]],
    ["https://192.0.2.10/%zz", { "x-frame-options": "DENY", "x-a": "1" }, ["server"]],
  ])("%s", (url, set, removed) => {
    const resolution = resolve(app, url);
    expect(resolution.responseHeaders).toEqual({ "strict-transport-security": hsts, ...set });
    expect([...resolution.removedResponseHeaders].sort()).toEqual([...removed].sort());
  });

  test("the redirect from HTTP to HTTPS has none of them", () => {
    const { responseHeaders, removedResponseHeaders } = resolve(app, "http://192.0.2.10/sync/");
    expect([responseHeaders, removedResponseHeaders]).toEqual([{}, []]);
  });
});

describe("resolve and the address of a listener", () => {
  test("a URL with the address of a listener means that listener", () => {
    const proxy = new ReverseProxy(newStack(), "proxy", {
      host: new Host(newStack(), "host", { address: "192.0.2.10" }),
    });
    const listeners = ["10.0.0.1", "10.0.0.2"].map((address, i) =>
      proxy.addListener(`l${i}`, { address, port: 80 }),
    );
    proxy.addVirtualServer("s", { serverNames: ["_"], listeners, default: true });
    expect(resolve(proxy, "http://10.0.0.2/").listener).toBe("l1");
    expect(resolve(proxy, "http://files.example.org/").listener).toBe("l0");
    const ipv6 = ["2001:DB8:0::1", "2001:db8::2"].map((address, i) =>
      proxy.addListener(`six${i}`, { address, port: 80 }),
    );
    proxy.addVirtualServer("six", { serverNames: ["_"], listeners: ipv6, default: true });
    expect(resolve(proxy, "http://[2001:db8::1]/").listener).toBe("six0");
    expect(resolve(proxy, "http://[2001:db8::2]/").listener).toBe("six1");
    expect(resolve(proxy, "http://[2001:db8::3]/").listener).toBe("six0");
  });
});

describe("resolve in TLS mode", () => {
  test.each([
    [
      "http://files.example.org/sync/?x=%2F",
      "redirect/https redirect 301 https://files.example.org/sync/?x=%2F",
    ],
    [
      "http://FILES.example.org:80/synchttp//x",
      "redirect/https redirect 301 https://files.example.org/synchttp//x",
    ],
    ["http://files.example.org/", "redirect/- error 404"],
    ["http://192.0.2.10/sync/", "default/page staticFile /usr/share/portico/default/sync/index.html"],
    ["https://files.example.org/sync/", "application/web proxy web GET /sync/ HTTP/1.1"],
    ["https://192.0.2.10/sync/", "application/web proxy web GET /sync/ HTTP/1.1"],
    ["https://files.example.org/", "application/page staticFile /usr/share/portico/default/index.html"],
  ])("%s", (url, expected) => {
    expect(kindOf(resolve(tls, url))).toBe(expected);
  });

  test("uses the listener of the host's address family, or the one that is given", () => {
    expect(resolve(tls, "https://[2001:db8::10]/sync/").listener).toBe("https6");
    expect(resolve(tls, "https://files.example.org/sync/").listener).toBe("https");
    expect(resolve(tls, { url: "http://files.example.org/sync/", listener: "http6" }).listener).toBe("http6");
    // A router may map another port to the listener, which the config does not say here.
    const mapped = { url: "https://files.example.org:9443/sync/", listener: "https" };
    expect(resolve(tls, mapped).listener).toBe("https");
    expect(() => resolve(tls, mapped.url)).toThrow(
      /^https:\/\/files\.example\.org:9443: reaches no listener .*\n +allowed: +http \(http, port 80\), /,
    );
    expect(() => resolve(plain, "https://192.0.2.10/")).toThrow(
      /^https:\/\/192\.0\.2\.10: reaches .*\n +allowed: +http \(http, port 80\)$/m,
    );
    // Of the same port and scheme, none of the family: any will do.
    expect(resolve(plain, "http://[2001:db8::10]/sync/").listener).toBe("http");
    const unknown = { url: "http://files.example.org/", listener: "none" };
    expect(() => resolve(tls, unknown)).toThrow('received: "none"');
    // A host that cannot be parsed has no port.
    expect(resolve(tls, "http://a b/")).toMatchObject({ kind: "error", status: 400, listener: "http" });
    expect(() => resolve(plain, "/sync/")).toThrow(/absolute/);
  });

  test("takes the listener that is published as the URL's port", () => {
    const mapped = frontEnd({ mode: Mode.tls({ httpPort: 8443, httpsPort: 8444, publicPort: 443 }) });
    mapped.proxy.addListener("other", {
      port: 443,
      publishedPort: 9443,
      tls: { material: TlsMaterial.selfSigned() },
    });
    const { proxy } = mapped;
    const server = proxy.addVirtualServer("o", {
      serverNames: ["_"],
      listeners: [proxy.listeners.at(-1)!],
      default: true,
    });
    server.addRoute("all", { path: "/", match: "prefix", action: Action.respond(204) });
    expect(resolve(mapped, "https://192.0.2.10/").listener).toBe("https");
    expect(resolve(mapped, "https://192.0.2.10:9443/").listener).toBe("other");
  });

  test("a redirect keeps an IPv6 literal in brackets and writes its own port", () => {
    const files = frontEnd({
      host: { address: "192.0.2.10", ipv6Address: "2001:db8::10" },
      mode: Mode.tls({ publicPort: 8443 }),
    });
    expect(resolve(files, "http://[2001:DB8:0::10]/sync/")).toMatchObject({
      status: 301,
      location: "https://[2001:db8::10]:8443/sync/",
    });
  });
});

describe("upstream headers", () => {
  const headers = (request: TestRequest, config = tls): Readonly<Record<string, string>> => {
    const resolution = resolve(config, request);
    if (resolution.kind !== "proxy") throw new Error(`not proxied: ${resolution.kind}`);
    return resolution.headers;
  };

  test("are those of service 4.1 and 4.3", () => {
    const request = {
      headers: { "X-Forwarded-For": "1.2.3.4", Accept: ["a", "b"] },
      clientAddress: "198.51.100.9",
    };
    expect(headers({ url: "https://files.example.org:8443/sync/", listener: "https", ...request })).toEqual({
      host: "files.example.org:8443",
      "x-real-ip": "198.51.100.9",
      "x-forwarded-for": "1.2.3.4, 198.51.100.9",
      "x-forwarded-proto": "https",
      "x-forwarded-host": "files.example.org",
      accept: "a, b",
    });
    expect(headers({ url: "http://192.0.2.10/syncdav/", ...request }, plain)).not.toHaveProperty(
      "x-forwarded-proto",
    );
    expect(headers({ url: "https://files.example.org/synchttp/x", ...request })).toEqual({
      host: "127.0.0.1:8082",
      accept: "a, b",
    });
  });

  test("trust forwarding fields of trusted proxies only", () => {
    const url = "https://files.example.org/sync/";
    const claim = { url, headers: { "X-Real-IP": "1.1.1.1" } };
    for (const clientAddress of ["10.1.2.3", "2001:db8:ffff::5", "192.0.2.99"]) {
      expect(headers({ ...claim, clientAddress })["x-real-ip"]).toBe("1.1.1.1");
    }
    for (const clientAddress of ["11.1.2.3", "2001:db8::5", "192.0.2.98"]) {
      expect(headers({ ...claim, clientAddress })["x-real-ip"]).toBe(clientAddress);
    }
  });

  test("are of the client that a trusted proxy names", () => {
    const url = "https://files.example.org/sync/";
    const asked = (chain: string, clientAddress: string): unknown => {
      const said = resolve(tls, { url, clientAddress, headers: { "X-Forwarded-For": chain } });
      const { "x-real-ip": realIp, "x-forwarded-for": sent } = "headers" in said ? said.headers : {};
      return [said.clientAddress, realIp, sent];
    };
    expect(asked("6.6.6.6, 192.0.2.7, 10.0.0.9", "10.1.2.3")).toEqual([
      "192.0.2.7",
      "192.0.2.7",
      "6.6.6.6, 192.0.2.7, 10.0.0.9, 10.1.2.3",
    ]);
    expect(asked("192.0.2.7", "11.1.2.3")).toEqual(["11.1.2.3", "11.1.2.3", "192.0.2.7, 11.1.2.3"]);
    expect(asked("unknown", "10.1.2.3")).toEqual(["10.1.2.3", "10.1.2.3", "unknown, 10.1.2.3"]);
    expect(resolve(tls, { url: "https://files.example.org/%zz" })).toMatchObject({
      kind: "error",
      clientAddress: "198.51.100.7",
    });
  });

  test("have an error page of the config where a browser asks", () => {
    const page = { statuses: [404, 413], html: "<p>{{status}}" } as const;
    const paged = frontEnd({ mode: Mode.plain(), errorPages: [page] });
    const url = "http://192.0.2.10/none";
    const browser = { Accept: "text/html,*/*;q=0.8" };
    expect(resolveAs("error", paged, { url, headers: browser })).toMatchObject({
      status: 404,
      page: { html: page.html },
    });
    expect(resolveAs("error", paged, url)).not.toHaveProperty("page");
    const put = { url: "http://192.0.2.10/syncmedia/a", method: "PUT", headers: browser };
    expect(resolveAs("error", paged, put)).not.toHaveProperty("page");
  });

  test("carry a WebSocket upgrade, and a WebDAV Destination as the upstream sees it", () => {
    const upgrade = { Connection: "Upgrade", Upgrade: "websocket" };
    expect(headers({ url: "https://files.example.org/sync/ws", headers: upgrade })).toMatchObject({
      connection: "Upgrade",
      upgrade: "websocket",
    });
    const move = { url: "https://files.example.org/syncdav/a", method: "MOVE" };
    const destination = "https://files.example.org/syncdav/b%20c";
    expect(headers({ ...move, headers: { Destination: destination } })["destination"]).toBe("/syncdav/b%20c");
  });
});

describe("methods and limits", () => {
  const stack = newStack();
  const proxy = new ReverseProxy(stack, "proxy", {
    host: new Host(stack, "host", { address: "192.0.2.10" }),
  });
  const http = proxy.addListener("http", { port: 80 });
  const server = proxy.addVirtualServer("v", { serverNames: ["_"], listeners: [http], default: true });
  const app = proxy.addUpstream("app", { url: "http://127.0.0.1:3000" });
  server.addRoute("app", {
    path: "/app",
    action: Action.proxy(app, { upgrades: [] }),
    requestBodyBytesMax: 10,
  });
  server.addRoute("files", { path: "/files/", match: "prefix", action: Action.staticFiles("/") });
  server.addRoute("old", { path: "/old", match: "prefix", action: Action.staticFiles("/srv/old") });
  server.addRoute("index", {
    path: "/index",
    action: Action.staticFiles("/srv/index", {
      index: ["a.html", "b.html"],
      precompressed: ["gzip", "br", "zstd"],
    }),
  });
  server.addRoute("gone", { path: "/gone", action: Action.respond(410, { body: "gone" }) });
  test.each<[TestRequest, string]>([
    [{ url: "http://x/app", method: "PROPFIND" }, "v/app proxy app PROPFIND /app HTTP/1.1"],
    [
      { url: "http://x/app", method: "PUT", headers: { "Content-Length": "10" } },
      "v/app proxy app PUT /app HTTP/1.1",
    ],
    [{ url: "http://x/app", method: "PUT", headers: { "content-length": "11" } }, "v/app error 413"],
    [
      // The last one counts, and only as a name.
      { url: "http://x/app", headers: { "Content-Length": ["11", "10"], "X-A": "content-length" } },
      "v/app proxy app GET /app HTTP/1.1",
    ],
    [
      { url: "http://x/app", headers: { "Transfer-Encoding": "chunked", "Content-Length": "11" } },
      "v/app proxy app GET /app HTTP/1.1",
    ],
    [{ url: "http://x/app", method: "TRACE" }, "v/app error 405"],
    [{ url: "http://x/none", method: "TRACE" }, "v/- error 405"],
    [{ url: "http://x/none", method: "CONNECT" }, "v/- error 400"],
    [{ url: "http://x/files/" }, "v/files staticFile /"],
    [{ url: "http://x/index/" }, "v/index staticFile /srv/index/a.html"],
    [{ url: "http://x/app", method: "CONNECT" }, "v/app error 400"],
    [{ url: "http://x/files/a", method: "HEAD" }, "v/files staticFile /a"],
    [{ url: "http://x/files/a", method: "POST" }, "v/files error 405"],
    [{ url: "http://x/old-files" }, "v/old error 404"],
    [{ url: "http://x/gone" }, "v/gone respond 410 gone"],
  ])("%j", (request, expected) => {
    expect(kindOf(resolve(stack, request))).toBe(expected);
  });
  test("encoded files that the client accepts, best first", () => {
    const headers = { "Accept-Encoding": "gzip;q=0.5, br, zstd;q=0" };
    expect(resolve(stack, { url: "http://x/index/", headers })).toMatchObject({
      file: "/srv/index/a.html",
      encodedFiles: ["/srv/index/a.html.br", "/srv/index/a.html.gz"],
    });
    expect(resolve(stack, { url: "http://x/files/a", headers })).not.toHaveProperty("encodedFiles");
  });
  test.each(["/app", "x/app", "ftp://x/app", "xhttp://x/app", " http://x/app", "http:///app"])(
    "%j is not an absolute URL",
    (url) => expect(() => resolve(stack, { url })).toThrow(/ is not an absolute URL /),
  );
  test("a route that does not allow upgrades drops them", () => {
    const upgrade = { Connection: "Upgrade", Upgrade: "websocket" };
    expect(resolve(proxy, { url: "http://x/app", headers: upgrade })).toMatchObject({
      headers: expect.not.objectContaining({ upgrade: expect.anything() }),
    });
  });
});

test("renderProxyConfig needs exactly one proxy, and throws what the host would refuse", () => {
  const stack = newStack();
  expect(() => renderProxyConfig(stack)).toThrow(
    /^stack: does not contain exactly one proxy .*\n +received: +"no proxy"/,
  );
  const one = frontEnd({ mode: Mode.plain() }, "one", stack);
  expect(renderProxyConfig(stack).virtualServers).toHaveLength(2);
  new ReverseProxy(stack, "two", { host: one.host, paths: { config: "/etc/two.json" } });
  expect(() => renderProxyConfig(stack)).toThrow("stack/one/Proxy, stack/two");
  one.proxy.addListener("more", { port: 81 });
  expect(() => renderProxyConfig(one)).toThrow(ProblemError);
  expect(() => renderProxyConfig(new App())).toThrow(/^the app: does not contain exactly one proxy/);
});

describe("renderProxyConfig and values that Terraform knows only at apply", () => {
  const withLog = (log: (late: string) => object) => {
    const stack = newStack();
    const { proxy } = frontEnd({ mode: Mode.plain() }, "files", stack);
    const { stringValue } = new TerraformVariable(stack, "v", { type: "string" });
    proxy.addConfigOverride("logs.access", log(stringValue));
    return stack;
  };

  test("a placeholder stands for a text, and all else has its defaults", () => {
    const { logs, limits } = renderProxyConfig(withLog((late) => ({ path: `/var/log/${late}/a` })));
    expect(logs.access).toEqual({
      path: expect.stringMatching(/^\/var\/log\/portico-token-\dx\/a$/) as string,
      format: "combined",
    });
    expect(limits).toEqual(plain.limits);
  });

  test("a value that no placeholder fits", () => {
    const problems = problemsOf(() => renderProxyConfig(withLog((late) => ({ path: "/a", format: late }))));
    expect(problems.map(({ code, path }) => [code, path])).toEqual([
      ["config.not-one-of", "logs.access.format"],
    ]);
  });
});

describe("synthesized files", () => {
  const filesOf = (delivery: Delivery) => {
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10", delivery });
    const late = new TerraformVariable(stack, "v", { type: "string" }).stringValue;
    const file = (id: string, props: Omit<HostFileProps, "host" | "path">) =>
      new HostFile(stack, id, { host, path: `/etc/x/${id}`, ...props });
    file("late", { content: late, mode: "0640" });
    file("copied", { source: __filename, mode: "0755" });
    file("text", { content: "$${a} ${b} %{c} %%{d} $e %f\n" });
    file("empty", { content: "" });
    file("secret", { content: "s", sensitive: true, mode: "0600" });
    return stack;
  };
  const content = {
    copied: { source: expect.stringMatching(/^assets\/.*\/testing\.test\.ts$/) as string },
    empty: { content: "" },
    late: { placeholder: "${var.v}" },
    secret: { content: "s" },
    text: { content: "$${a} ${b} %{c} %%{d} $e %f\n" },
  };
  const mode = { copied: "0755", late: "0640", secret: "0600" };

  test.each<[string, Delivery, string, string]>([
    ["a folder", Delivery.local({ root: "/out" }), "/out", "0755"],
    ["ssh", Delivery.ssh({ verifyHostKey: false }), "", "0755"],
  ])("of %s", (_, delivery, root, directoryMode) => {
    const stack = filesOf(delivery);
    const own = synthesizedFiles(stack).filter(({ path }) => path.startsWith("/etc/x/"));
    expect(own).toEqual(
      Object.entries(content).map(([name, more]) => ({
        path: `/etc/x/${name}`,
        filename: `${root}/etc/x/${name}`,
        mode: "0644",
        ...(name in mode ? { mode: mode[name as keyof typeof mode] } : {}),
        directoryMode,
        sensitive: name === "secret",
        ...more,
      })),
    );
    expect(synthesizedFile(stack, "/etc/x/text")).toEqual(own[4]);
    expect(() => synthesizedFile(stack, "/etc/x/other")).toThrow(
      /^No file \/etc\/x\/other is synthesized. There is:\n {2}\/etc\/x\/copied\n {2}\/etc\/x\/empty\n/,
    );
  });
});

test("files are described across stacks", () => {
  const first = newStack("first");
  const app = first.node.root;
  const variable = new TerraformVariable(first, "v", { type: "string" });
  frontEnd({ mode: Mode.plain(), defaultPage: `${variable.stringValue}` }, "files", first);
  const second = newStack("second", app as never);
  frontEnd({ mode: Mode.plain() }, "files", second);
  expect(TerraformStack.of(second)).toBe(second);
  const pages = synthesizedFiles(app).filter((f) => f.path.endsWith("index.html"));
  expect(pages.map((f) => [f.placeholder, typeof f.content])).toEqual([
    ["${var.v}", "undefined"],
    [undefined, "string"],
  ]);
});

test("resolveAs gives a response of the kind that is asked for, and names the actual response otherwise", () => {
  const stack = newStack();
  frontEnd({}, "files", stack);
  const web = "https://192.0.2.10/sync/";
  expect(resolveAs("proxy", stack, web).headers["x-forwarded-proto"]).toBe("https");
  expect(resolveAs("redirect", stack, { url: "http://192.0.2.10/sync/" }).location).toBe(web);
  expect(() => resolveAs("staticFile", stack, web)).toThrow(
    /^the response to https:\/\/192\.0\.2\.10\/sync\/ is not of the kind staticFile, but: \{[^]*"kind": "proxy"/,
  );
});
