import { copyFileSync, mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { spawnSync } from "node:child_process";
import { App, TerraformStack, TerraformVariable, Testing } from "cdktf";
import {
  Action,
  Activation,
  Application,
  Delivery,
  Firewall,
  type FirewallProps,
  FrontEnd,
  Host,
  HostFile,
  Mode,
  ProxyService,
  ReverseProxy,
  type ReverseProxyProps,
  TlsMaterial,
} from "../../src/index.js";
import { synthesizedFile } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { frontEnd, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";
import { testWith } from "../../testkit/testWith.js";

const certificates = (stack: TerraformStack) =>
  Object.values(synthesize(stack).resource["tls_self_signed_cert"]!) as {
    dns_names?: string[];
    ip_addresses: string[];
    validity_period_hours: number;
    early_renewal_hours: number;
  }[];

describe("two files on one path of a host", () => {
  const two = (first: Host | undefined, second: Host | undefined, stack = newStack()): (() => unknown) => {
    frontEnd(first === undefined ? {} : { host: first }, "one", stack);
    return () => frontEnd(second === undefined ? {} : { host: second }, "two", stack);
  };
  const machine = (stack: TerraformStack, id: string, delivery: Delivery): Host =>
    new Host(stack, id, { address: "192.0.2.10", delivery });

  test.each([
    ["local delivery", () => Delivery.local({ root: "/" })],
    ["a folder", () => Delivery.local({ root: "./out/host" })],
    ["ssh", () => Delivery.ssh({ verifyHostKey: false })],
  ])("are refused with %s: for one host, and for two that are the same machine", (_, delivery) => {
    const stack = newStack();
    const host = machine(stack, "host", delivery());
    const same = machine(stack, "same", delivery());
    const code = (make: () => unknown): string[] => problemsOf(make).map((p) => `${p.code} ${p.path}`);
    expect(code(two(host, host, stack))).toEqual(["files.duplicate-path stack/two/Proxy/Config"]);
    expect(code(() => frontEnd({ host: same }, "three", stack))).toEqual([
      "files.duplicate-path stack/three/Proxy/Config",
    ]);
  });

  test("are accepted on different hosts, in different folders and at different paths", () => {
    const stack = newStack();
    expect(two(undefined, undefined, stack)).not.toThrow();
    const host = machine(stack, "host", Delivery.local({ root: "/srv/a" }));
    frontEnd({ host }, "three", stack);
    frontEnd({ host: machine(stack, "other", Delivery.local({ root: "/srv/b" })) }, "four", stack);
    expect(
      () => new ReverseProxy(stack, "five", { host, paths: { config: "/etc/five.json" } }),
    ).not.toThrow();
  });
});

describe("a host that Terraform uploads to", () => {
  const far = (stack: TerraformStack, id: string): Host =>
    new Host(stack, id, { address: "192.0.2.10", delivery: Delivery.ssh({ verifyHostKey: false }) });
  const proxyOn = (stack: TerraformStack, host: Host, id: string, more: Partial<ReverseProxyProps> = {}) => {
    const proxy = new ReverseProxy(stack, id, { host, ...more });
    const listeners = [proxy.addListener("http", { port: 80 })];
    proxy.addVirtualServer("site", { serverNames: ["_"], listeners, default: true });
    return proxy;
  };

  test.each<[string, (stack: TerraformStack, host: Host) => unknown]>([
    [
      "a proxy of parts",
      (stack, host) => new ProxyService(stack, "service", { proxy: proxyOn(stack, host, "p") }),
    ],
    ["a proxy alone", (stack, host) => proxyOn(stack, host, "p")],
    ["one file", (stack, host) => new HostFile(stack, "f", { host, path: "/etc/motd", content: "" })],
  ])("gets %s only with an activation", (_, add) => {
    const stack = newStack();
    add(stack, far(stack, "far"));
    expect(() => Testing.synth(stack, true)).toThrow(
      /stack\/far: gets files over ssh.*\[delivery\.no-activation\][^]*new Activation\(/,
    );
  });

  test("is fine with one, and as long as nothing is delivered to it", () => {
    const stack = newStack();
    const host = far(stack, "far");
    expect(() => Testing.synth(stack, true)).not.toThrow();
    const service = new ProxyService(stack, "service", { proxy: proxyOn(stack, host, "p") });
    new Activation(stack, "activation", { service });
    expect(() => Testing.synth(stack, true)).not.toThrow();
  });

  test("has one activation, whatever its constructs and paths are", () => {
    const stack = newStack();
    const host = far(stack, "far");
    const service = new ProxyService(stack, "service", { proxy: proxyOn(stack, host, "p") });
    new Activation(stack, "one", { service });
    expect(problemsOf(() => new Activation(stack, "two", { service })).map((p) => [p.code, p.path])).toEqual([
      ["delivery.second-activation", "stack/two"],
    ]);
  });
});

test.each([
  ["gate-a.example", "gate-b.example", false],
  ["gate-a.example", "gate-a.example", true],
])("one private address behind %s and %s is one host: %s", (first, second, isOne) => {
  const stack = newStack();
  const behind = (id: string, gate: string) => () =>
    frontEnd(
      {
        host: {
          address: "10.0.0.5",
          delivery: Delivery.ssh({
            verifyHostKey: false,
            bastion: { address: gate, verifyHostKey: false },
          }),
        },
      },
      id,
      stack,
    );
  behind("one", first)();
  const made = (): readonly string[] => {
    behind("two", second)();
    synthesize(stack);
    return [];
  };
  if (isOne) expect(made).toThrow("files.duplicate-path");
  else expect(made).not.toThrow();
});

test("an activation of a front end's service knows what the front end describes", () => {
  const stack = newStack();
  const files = frontEnd({}, "files", stack);
  const probe = { timeoutSeconds: 5 };
  const { deployment } = new Activation(stack, "activation", {
    service: files.service,
    describe: () => ({ probe }),
  });
  const own = newStack();
  const whole = frontEnd({ activation: { probe } }, "files", own).activation!.deployment;
  const { files: _a, expect: rows, ...parts } = deployment;
  const { files: _b, expect: ownRows, ...ownParts } = whole;
  expect([rows, parts]).toEqual([ownRows, ownParts]);
  expect(() => Testing.synth(stack, true)).not.toThrow();
});

describe("the self-signed certificate", () => {
  test("covers the names of the front end, and of virtual servers that are added later", () => {
    const stack = newStack();
    const files = frontEnd(
      {
        host: { address: "192.0.2.10", ipv6Address: "2001:db8::10" },
        additionalServerNames: ["alias.example"],
      },
      "files",
      stack,
    );
    const { https, http } = files.listeners;
    files.proxy.addVirtualServer("office", {
      serverNames: ["office.example", "192.0.2.99"],
      listeners: [https!],
    });
    files.proxy.addVirtualServer("plain", { serverNames: ["plain.example"], listeners: [http!] });
    expect(certificates(stack)).toMatchObject([
      {
        dns_names: ["alias.example", "office.example"],
        ip_addresses: ["192.0.2.10", "2001:db8::10", "192.0.2.99"],
      },
    ]);
  });

  test("covers a name that is known only at apply", () => {
    const stack = newStack();
    const publicName = new TerraformVariable(stack, "name", { type: "string" }).stringValue;
    const address = new TerraformVariable(stack, "address", { type: "string" }).stringValue;
    frontEnd({ host: { address, publicName } }, "files", stack);
    expect(certificates(stack)).toMatchObject([
      {
        dns_names: ["${var.name}"],
        ip_addresses: [`\${try(cidrhost(join("/", [var.address, "32"]), 0), "0.0.0.0")}`],
      },
    ]);
  });

  test.each([
    [{}, 3650, 30],
    [{ validityDays: 10 }, 10, 3],
    [{ validityDays: 1 }, 1, 0],
    [{ validityDays: 90, renewalDays: 89 }, 90, 89],
    [{ validityDays: 36_500, renewalDays: 0 }, 36_500, 0],
  ])("with %j is not renewed at every apply", (options, validity, renewal) => {
    const stack = newStack();
    frontEnd({ mode: Mode.tls({ material: TlsMaterial.selfSigned(options) }) }, "files", stack);
    const [certificate] = certificates(stack);
    expect([certificate!.validity_period_hours, certificate!.early_renewal_hours]).toEqual([
      validity * 24,
      renewal * 24,
    ]);
  });

  test.each([
    [{ validityDays: 36_501 }, "validityDays"],
    [{ validityDays: 90.5 }, "validityDays"],
    [{ validityDays: 90, renewalDays: 90 }, "renewalDays"],
    [{ validityDays: 90, renewalDays: -1 }, "renewalDays"],
    [{ renewalDays: 3650 }, "renewalDays"],
    // Only what is wrong by itself: the other one is measured against it.
    [{ validityDays: 0, renewalDays: -1 }, "validityDays"],
  ])("with %j is refused", (options, name) => {
    expect(problemsOf(() => TlsMaterial.selfSigned(options)).map((p) => [p.code, p.path])).toEqual([
      ["config.out-of-range", `TlsMaterial.selfSigned.${name}`],
    ]);
  });
});

describe("a local delivery", () => {
  test("writes into a folder for the host unless `/` is given", () => {
    const files = frontEnd();
    const config = "/etc/portico/portico.json";
    const below = (path: string): string => `\${path.module}/../../../${path}${config}`;
    expect(synthesizedFile(files, config).filename).toBe(below("out/stack/files/Host"));
    const to = (root: string): string => {
      const host = { address: "192.0.2.10", delivery: Delivery.local({ root }) };
      return synthesizedFile(frontEnd({ host }), config).filename;
    };
    expect(to("/")).toBe(config);
    expect(to("/srv/host/")).toBe(`/srv/host${config}`);
    expect(to("./a//b/")).toBe(below("a/b"));
    expect(to("../elsewhere")).toBe(below("../elsewhere"));
  });

  test("synthesizes to the same stack in every checkout", () => {
    const stackIn = (folder: string): string => {
      const before = process.cwd();
      process.chdir(folder);
      try {
        const stack = new TerraformStack(new App({ outdir: join(folder, "cdktf.out") }), "stack");
        const host = { address: "192.0.2.10", delivery: Delivery.local({ root: "out/host" }) };
        frontEnd({ host, mode: Mode.plain(), activation: {} }, "files", stack);
        return Testing.synth(stack);
      } finally {
        process.chdir(before);
      }
    };
    const folders = ["a", "b"].map((name) => mkdtempSync(join(tmpdir(), `portico-${name}-`)));
    try {
      const [first, second] = folders.map(stackIn);
      expect(first).toBe(second);
      expect(first).toContain("out/host");
    } finally {
      folders.forEach((folder) => rmSync(folder, { recursive: true }));
    }
  });
});

describe("warnings for settings that work but are probably not intended", () => {
  const said = sayings("warnings");
  /** Warnings of a stack, by construct path. */
  function warnings(stack: TerraformStack): readonly string[] {
    synthesize(stack);
    const all = stack.node.findAll().flatMap(({ node }) => node.metadata.map((one) => ({ node, ...one })));
    const warned = all.filter(({ type }) => type === "@cdktf/warn");
    const texts = warned.map(({ node, data }) => `${node.path}: ${data}`);
    return said(texts.map((text) => text.replace(/\S+\/cert\.pem/, "cert.pem")));
  }

  test("nothing about a usual front end", () => {
    const stack = newStack();
    frontEnd({}, "files", stack);
    expect(warnings(stack)).toEqual([]);
  });

  test("an upstream without a route, a virtual server without routes, HTTP/2 without TLS", () => {
    const stack = newStack();
    const { proxy, listeners } = frontEnd({ mode: Mode.plain() }, "files", stack);
    proxy.addUpstream("idle", { url: "https://10.0.0.1", tls: { verify: false } });
    proxy.addVirtualServer("empty", { serverNames: ["empty.example"], listeners: [listeners.http!] });
    const plain = proxy.addListener("more", { port: 81, http2: true });
    const more = proxy.addVirtualServer("more-server", {
      serverNames: ["_"],
      listeners: [plain],
      default: true,
    });
    more.addRoute("all", { path: "/", action: Action.respond(204) });
    expect(warnings(stack)).toEqual([
      expect.stringMatching(/^stack\/files\/Proxy\/Listeners\/more: `http2` has no effect without TLS/),
      expect.stringMatching(/^stack\/files\/Proxy\/VirtualServers\/empty: .*404/),
      expect.stringMatching(/^stack\/files\/Proxy\/Upstreams\/idle: `verify: false` accepts every server/),
      expect.stringMatching(/^stack\/files\/Proxy\/Upstreams\/idle: No route uses this upstream/),
    ]);
    // Each once, however often the app is synthesized.
    expect(warnings(stack)).toHaveLength(4);
    expect(plain.render()).toEqual({ name: "more", address: "0.0.0.0", port: 81, protocol: "http" });
  });

  test("a segment route that takes over a prefix route, a secret in a field", () => {
    const stack = newStack();
    const { virtualServer: application, upstreams } = frontEnd({}, "files", stack).site;
    application.addRoute("mine", { path: "/sync", action: Action.respond(204) });
    application.addRoute("exact", { path: "/sync", match: "exact", action: Action.respond(204) });
    const setHeaders = { "X-Office": "1", Authorization: "Bearer x" };
    application.addRoute("office", { path: "/office", action: Action.proxy(upstreams.web, { setHeaders }) });
    expect(warnings(stack)).toEqual([
      expect.stringMatching(
        /application\/mine: This route takes the requests for \/sync and everything below it from stack\/.*\/web, which/,
      ),
      expect.stringMatching(
        /application\/office: `setHeaders` contains Authorization, but .*setHeadersFromCredential/,
      ),
    ]);
  });

  test.each([
    ["admin@example.org", true],
    ["admin@mail.example.com", true],
    ["admin@host.test", true],
    ["admin@myexample.org", false],
    ["admin@example.org.uk", false],
  ])("an address for messages of the authority that is an example's: %s", (email, isExample) => {
    const stack = newStack();
    const material = TlsMaterial.acme({ email, agreeToTerms: true });
    const host = { address: "192.0.2.10", publicName: "files.example.org" };
    frontEnd({ mode: Mode.tls({ material }), host }, "files", stack);
    const expected = expect.stringMatching(/^stack\/files\/Proxy: The mail address .* is an example, /);
    expect(warnings(stack)).toEqual(isExample ? [expected] : []);
  });

  test("a firewall by hand that leaves out ports of listeners, those that come later included", () => {
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10" });
    const allowed = [{ port: 8443, from: ["10.0.0.0/8"] }];
    new Firewall(stack, "firewall", { host, ports: [22, 80], allowed });
    const { proxy } = frontEnd({ host }, "files", stack);
    const more = [
      proxy.addListener("internal", { port: 8443 }),
      proxy.addListener("local", { port: 9000, address: "127.0.0.1" }),
    ];
    const server = proxy.addVirtualServer("more", { serverNames: ["_"], listeners: more, default: true });
    server.addRoute("all", { path: "/", action: Action.respond(204) });
    frontEnd({ host: { address: "192.0.2.11" } }, "elsewhere", stack);
    expect(warnings(stack)).toEqual([
      expect.stringMatching(/^stack\/firewall: Port 443 of stack\/.*\/https is not open: no client/),
    ]);
  });

  test.each([
    ["http-01 by default", {}, [80]],
    ["http-01", { challenge: "http-01" }, [80]],
    ["tls-alpn-01", { challenge: "tls-alpn-01" }, [443]],
  ] as const)("ports that the authority needs and only some may reach: %s", (_what, options, ports) => {
    const warned = (allowed: NonNullable<FirewallProps["allowed"]>): readonly string[] => {
      const stack = newStack();
      const host = new Host(stack, "host", { address: "192.0.2.10", publicName: "files.example.org" });
      const material = TlsMaterial.acme({ email: "admin@portico.dev", agreeToTerms: true, ...options });
      frontEnd({ host, mode: Mode.tls({ material }), firewall: { allowed } }, "files", stack);
      return warnings(stack).filter((text) => text.includes("challenge"));
    };
    const from = ["10.0.0.0/8", "fd00::/8"];
    expect(warned(ports.map((port) => ({ port, from })))).toEqual(
      ports.map((port) =>
        expect.stringMatching(
          new RegExp(
            `Port ${port} of .* is open to 10.0.0.0/8, fd00::/8 only: .*${port === 80 ? "http" : "tls-alpn"}-01`,
          ),
        ),
      ),
    );
    expect(warned([{ port: ports[0] === 80 ? 443 : 80, from }])).toEqual([]);
    expect(warned(ports.map((port) => ({ port, from: ["0.0.0.0/0"] })))).toEqual([]);
    expect(warned([])).toEqual([]);
  });

  test("HSTS for a host that has only an address", () => {
    const warned = (publicName?: string, additionalServerNames: string[] = []): readonly string[] => {
      const stack = newStack();
      const files = { certificate: "/c.pem", key: "/k.pem", dhparam: false } as const;
      const mode = Mode.tls({ material: TlsMaterial.fromFiles(files), hsts: {} });
      frontEnd({ mode, host: { address: "192.0.2.10", publicName }, additionalServerNames }, "files", stack);
      return warnings(stack);
    };
    expect(warned("files.example.org")).toEqual([]);
    expect(warned(undefined, ["files.example.org"])).toEqual([]);
    expect(warned()).toEqual([
      expect.stringMatching(
        /^stack\/files\/Proxy\/VirtualServers\/application: `hsts` has no effect: all names .* browsers ignore/,
      ),
    ]);
  });

  test.each([true, false])(
    "a response that is expected where nothing checks it, with an activation %s",
    (activated) => {
      const stack = newStack();
      const host = new Host(stack, "host", { address: "192.0.2.10" });
      const proxy = new ReverseProxy(stack, "proxy", { host });
      const http = proxy.addListener("http", { port: 80 });
      const site = proxy.addVirtualServer("site", {
        serverNames: ["_"],
        listeners: [http],
        default: true,
        expect: { name: "site", path: "/", status: 404 },
      });
      const expected = { path: "/up", status: 204 };
      site.addRoute("up", { path: "/up", action: Action.respond(204), expect: expected });
      site.addRoute("usual", { path: "/usual", action: Action.respond(204) });
      site.addRoute("unasked", { path: "/unasked", action: Action.respond(204), expect: false });
      const service = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
      if (activated) new Activation(stack, "activation", { service });
      const text = expect.stringMatching(/: `expect` has no effect: .* Add an `Activation`/) as string;
      expect(warnings(stack)).toEqual(activated ? [] : [text, text]);
    },
  );

  test("a path that looks like a pattern, two daemons with one URL", () => {
    const stack = newStack();
    const { virtualServer: application } = frontEnd(
      { upstreams: { webdav: { url: "http://127.0.0.1:8000" } } },
      "files",
      stack,
    ).site;
    application.addRoute("glob", { path: "/pictures/*", action: Action.respond(204) });
    application.addRoute("named", { path: "/pictures/:id", action: Action.respond(204) });
    application.addRoute("braces", { path: "/pictures/{id}", action: Action.respond(204) });
    application.addRoute("colon", { path: "/a:b", action: Action.respond(204) });
    expect(warnings(stack)).toEqual([
      expect.stringMatching(
        /^stack\/files\/.*\/application\/glob: .* contains `\*`, which .*: paths are not/,
      ),
      expect.stringMatching(/^stack\/files\/.*\/application\/named: .* contains `:`,/),
      expect.stringMatching(/^stack\/files\/.*\/application\/braces: .* contains `\{`,/),
      expect.stringMatching(
        /^stack\/files\/Proxy\/Upstreams\/webdav: This upstream has the same URL as web:/,
      ),
    ]);
  });

  testWith("openssl")("a name that is missing from a certificate on this machine", () => {
    const folder = mkdtempSync(join(tmpdir(), "portico-certificate-"));
    try {
      const file = (name: string): string => join(folder, name);
      const { status } = spawnSync("openssl", [
        ...["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=x", "-days", "2"],
        ...["-keyout", file("key.pem"), "-out", file("cert.pem")],
        ...["-addext", "subjectAltName=DNS:*.example.org,IP:192.0.2.10"],
      ]);
      expect(status).toBe(0);
      const stack = newStack();
      const material = TlsMaterial.fromFiles({ certificate: file("cert.pem"), key: file("key.pem") });
      const host = { address: "192.0.2.10", delivery: Delivery.local({ root: "/" }) };
      const files = new FrontEnd(stack, "files", {
        host,
        mode: Mode.tls({ material }),
        application: Application.fileSync({ installDirectory: "/srv/sync" }),
        additionalServerNames: ["files.example.org", "files.example.net"],
        service: { runtimeBundle: __filename },
      });
      files.site.virtualServer.addRoute("ok", { path: "/ok", action: Action.respond(204) });
      // Of a virtual server with a certificate of its own; one on the host is not looked for here, one may be missing.
      const own = (id: string, certificate: string) => {
        const key = `${certificate}.key`;
        const server = files.proxy.addVirtualServer(id, {
          serverNames: [`${id}.example.com`],
          listeners: [files.httpsListener],
          tls: TlsMaterial.fromFiles({ certificate, key, dhparam: false }),
        });
        server.addRoute("all", { path: "/", action: Action.respond(204) });
      };
      own("own", file("cert.pem"));
      own("missing", file("none.pem"));
      // What an earlier apply wrote is replaced.
      const earlier = file("etc/portico/tls");
      mkdirSync(earlier, { recursive: true });
      copyFileSync(file("cert.pem"), join(earlier, "cacert.pem"));
      const local = { address: "192.0.2.30", delivery: Delivery.local({ root: folder }) };
      frontEnd({ host: local }, "signed", stack);
      expect(warnings(stack).filter((one) => !one.includes(": Over http"))).toEqual([
        expect.stringMatching(
          /^stack\/files\/Proxy\/Listeners\/https: The certificate .*cert\.pem does not cover files\.example\.net:/,
        ),
        expect.stringMatching(
          /^stack\/files\/Proxy\/VirtualServers\/own: .* does not cover own\.example\.com:/,
        ),
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
