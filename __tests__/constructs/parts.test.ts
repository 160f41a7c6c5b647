import { join } from "node:path";
import { Lazy, TerraformVariable, Testing } from "cdktf";
import { Construct } from "constructs";
import {
  Action,
  type ApplicationSettingsProps,
  ApplicationSettings,
  Host,
  HostFile,
  Listener,
  parseConfig,
  Notification,
  ProxyService,
  ReverseProxy,
  type ReverseProxyProps,
  Route,
  SystemdUnit,
  TlsMaterial,
  TlsPolicy,
  Upstream,
  VirtualServer,
} from "../../src/index.js";
import { packagedBundle } from "../../src/constructs/service/proxyService.js";
import { renderProxyConfig, synthesizedFile, synthesizedFiles } from "../../src/testing/index.js";
import { addresses, newStack, problemsOf, synthesize } from "../../testkit/stacks.js";

interface Site {
  readonly stack: ReturnType<typeof newStack>;
  readonly host: Host;
  readonly proxy: ReverseProxy;
  readonly http: Listener;
  readonly server: VirtualServer;
}

const FILES = { certificate: "/c.pem", key: "/k.pem", dhparam: false } as const;

/** A host with a proxy that responds on port 80, built from parts. */
function site(props: Partial<ReverseProxyProps> = {}): Site {
  const stack = newStack();
  const host = new Host(stack, "host", { address: "192.0.2.10" });
  const proxy = new ReverseProxy(stack, "proxy", { host, ...props });
  const http = proxy.addListener("http", { port: 80 });
  const server = proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [http], default: true });
  return { stack, host, proxy, http, server };
}

describe("parts without the front end", () => {
  test("make a small proxy", () => {
    const { stack, proxy, server } = site();
    const app = proxy.addUpstream("app", { url: "http://127.0.0.1:3000" });
    server.addRoute("app", { path: "/", action: Action.proxy(app) });
    server.addRoute("files", {
      path: "/files",
      action: Action.staticFiles("/srv/files", { symlinks: "never" }),
    });
    server.addRoute("old", {
      path: "/old",
      match: "exact",
      action: Action.redirect({ scheme: "http", host: "old.example", status: 308 }),
    });
    server.addRoute("gone", { path: "/gone", action: Action.respond(410, { body: "gone\n" }) });
    expect(addresses(stack)).toEqual(["local_file.proxy_Config_81955AAF"]);
    const { routes } = renderProxyConfig(stack).virtualServers[0]!;
    expect(routes.map((r) => [r.name, r.action.type, r.match])).toEqual([
      ["app", "proxy", "segment"],
      ["files", "staticFiles", "segment"],
      ["old", "redirect", "exact"],
      ["gone", "respond", "segment"],
    ]);
    expect(routes[0]!.action).toMatchObject({ forwarded: { realIp: true, for: true, proto: true } });
    expect(routes[2]!.action).toMatchObject({ scheme: "http", host: "old.example", status: 308 });
  });

  test("belong to the proxy above them, however deep", () => {
    const { proxy, http } = site();
    const group = new Construct(proxy, "group");
    const https = new Listener(group, "https", {
      port: 8443,
      address: "192.0.2.10",
      name: "secure",
      tls: { material: TlsMaterial.selfSigned(), policy: TlsPolicy.mozillaIntermediate() },
    });
    const server = new VirtualServer(group, "api", {
      serverNames: ["api.example"],
      listeners: [http, https],
      name: "other",
    });
    new VirtualServer(proxy, "rest", { serverNames: ["_"], listeners: [https], default: true });
    new Route(new Construct(server, "routes"), "r", {
      path: "/",
      action: Action.respond(200),
      name: "root",
    });
    const config = renderProxyConfig(proxy);
    expect(config.listeners.map((l) => l.name)).toEqual(["http", "secure"]);
    expect(config.virtualServers.find((v) => v.name === "other")).toMatchObject({
      listeners: ["http", "secure"],
      routes: [{ name: "root" }],
    });
    expect(ReverseProxy.of(server)).toBe(proxy);
    expect(https.protocol).toBe("https");
  });

  test("may have an upstream on any port that the proxy does not listen on", () => {
    const { proxy } = site();
    proxy.addUpstream("first", { url: "http://127.0.0.1:1" });
    expect(proxy.config.upstreams).toContainEqual({ name: "first", url: "http://127.0.0.1:1" });
  });

  test("share an upstream from elsewhere, which is rendered where it is used", () => {
    const { stack, host, server, proxy } = site();
    const shared = new Upstream(stack, "shared", { url: "http://10.0.0.5:80" });
    server.addRoute("a", { path: "/a", action: Action.proxy(shared) });
    server.addRoute("b", { path: "/b", action: Action.proxy(shared) });
    const idle = new ReverseProxy(stack, "idle", { host, paths: { config: "/etc/idle.json" } });
    expect(proxy.config.upstreams!.map((u) => u.name)).toEqual(["shared"]);
    expect(idle.config.upstreams).toEqual([]);
  });

  test("make TLS resources once for all listeners of a material", () => {
    const { stack, proxy } = site();
    const material = TlsMaterial.selfSigned({ dnsNames: ["alt.example"], validityDays: 90, renewalDays: 0 });
    const tls = { material };
    const listeners = [
      proxy.addListener("https", { port: 443, tls }),
      proxy.addListener("https6", { port: 443, address: "::", tls }),
      proxy.addListener("existing", {
        port: 444,
        tls: { material: TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem" }) },
      }),
    ];
    proxy.addVirtualServer("secure", { serverNames: ["_"], listeners, default: true });
    const { resource } = synthesize(stack);
    expect(Object.keys(resource["tls_private_key"]!)).toHaveLength(1);
    expect(Object.values(resource["tls_self_signed_cert"]!)).toMatchObject([
      { dns_names: ["alt.example"], validity_period_hours: 2160, early_renewal_hours: 0 },
    ]);
    expect(synthesizedFiles(stack).filter((f) => f.path.includes("dhparam"))).toHaveLength(1);
  });

  test("name the files of further self-signed certificates after their users", () => {
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10", publicName: "files.example.org" });
    const proxy = new ReverseProxy(stack, "proxy", { host });
    const https = proxy.addListener("https", { port: 443, tls: { material: TlsMaterial.selfSigned() } });
    const more = proxy.addListener("more", { port: 445, tls: { material: TlsMaterial.selfSigned() } });
    const server = (id: string, serverNames: string[], options: object) =>
      proxy.addVirtualServer(id, { serverNames, ...options, listeners: [https] });
    server("main", ["files.example.org", "www.example.org"], { default: true });
    server("office", ["office.example.org"], {
      tls: TlsMaterial.selfSigned({ dnsNames: ["*.office.example"] }),
    });
    proxy.addVirtualServer("rest", { serverNames: ["_"], listeners: [more], default: true });
    const config = renderProxyConfig(proxy);
    const at = (name: string) => ({
      certificate: `/etc/portico/tls/cacert${name}.pem`,
      key: `/etc/portico/tls/privkey${name}.pem`,
    });
    expect(config.listeners.map(({ tls }) => tls)).toMatchObject([
      { ...at(""), certificates: [at("-office")] },
      { ...at("-more"), certificates: [] },
    ]);
    const { resource } = synthesize(stack);
    const made = Object.entries(resource["tls_self_signed_cert"]!) as [string, Record<string, unknown>][];
    const named = (part: string) => made.find(([id]) => id.includes(part))![1];
    // The default covers no name that another certificate is for: that one would never be chosen.
    expect(named("_Tls_Certificate")).toMatchObject({
      subject: [{ common_name: "files.example.org" }],
      dns_names: ["files.example.org", "www.example.org"],
      ip_addresses: ["192.0.2.10"],
    });
    expect(named("Tls-more")).toMatchObject({
      dns_names: ["files.example.org"],
      ip_addresses: ["192.0.2.10"],
    });
    const office = named("Tls-office");
    expect(office).toMatchObject({
      subject: [{ common_name: "office.example.org" }],
      dns_names: ["*.office.example", "office.example.org"],
    });
    expect(office).not.toHaveProperty("ip_addresses");
    expect(proxy.node.findAll().filter((one) => one.node.id === "DhParameters")).toHaveLength(1);
    proxy.addListener("twice", { port: 446, tls: { material: TlsMaterial.selfSigned() } });
    const group = new Construct(proxy, "group");
    const again = problemsOf(
      () =>
        new VirtualServer(group, "twice", {
          serverNames: ["t.example"],
          listeners: [https],
          tls: TlsMaterial.selfSigned(),
        }),
    );
    expect(again).toMatchObject([
      {
        code: "config.duplicate-name",
        message: expect.stringMatching(
          /^already has self-signed material for .*, with files of the same names$/,
        ),
        fix: "Use another id for the construct: the names of the files contain the id.",
      },
    ]);
  });

  test("a virtual server with the certificate of its listener adds none to it", () => {
    const { proxy } = site();
    const [material, other] = [TlsMaterial.selfSigned(), TlsMaterial.fromFiles(FILES)];
    const https = proxy.addListener("https", { port: 443, tls: { material } });
    const server = (id: string, tls: TlsMaterial) =>
      proxy.addVirtualServer(id, { serverNames: [`${id}.example`], listeners: [https], tls });
    for (const [id, tls] of Object.entries({ a: material, b: other, c: other })) server(id, tls);
    expect(proxy.config.listeners[1]!.tls!.certificates).toEqual([
      { certificate: FILES.certificate, key: FILES.key },
    ]);
  });

  test("a self-signed certificate of a listener and of its virtual servers is for the host as well", () => {
    const namesOf = (ofListener: boolean): unknown[] => {
      const { stack, proxy } = site();
      const [material, other] = [
        TlsMaterial.selfSigned(),
        TlsMaterial.fromFiles({ certificate: "/c", key: "/k" }),
      ];
      const tls = { material: ofListener ? material : other };
      const listeners = [proxy.addListener("https", { port: 443, tls })];
      proxy.addVirtualServer("a", { serverNames: ["a.example"], listeners, tls: material, default: true });
      const [certificate] = Object.values(synthesize(stack).resource["tls_self_signed_cert"]!);
      return [certificate.subject, certificate.dns_names, certificate.ip_addresses];
    };
    expect(namesOf(true)).toEqual([[{ common_name: "192.0.2.10" }], ["a.example"], ["192.0.2.10"]]);
    expect(namesOf(false)).toEqual([[{ common_name: "a.example" }], ["a.example"], undefined]);
  });

  test("watch certificates that are renewed on the host, those that are added later included", () => {
    const { stack, host } = site();
    const proxy = new ReverseProxy(stack, "watched", { host, paths: { config: "/etc/watched.json" } });
    const https = proxy.addListener("https", { port: 8443, tls: { material: TlsMaterial.selfSigned() } });
    proxy.addVirtualServer("main", { serverNames: ["_"], listeners: [https], default: true });
    const service = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
    expect(service.renewalPathUnit).toBeUndefined();
    const live = (name: string) => ({
      certificate: `/etc/letsencrypt/live/${name}/fullchain.pem`,
      key: `/etc/letsencrypt/live/${name}/privkey.pem`,
    });
    const dhparam = { "a.example": { dhparam: "/dh.pem" }, "b.example": { dhparam: "/etc/ssl/dhparam.pem" } };
    for (const name of ["a.example", "b.example"] as const) {
      const tls = TlsMaterial.fromFiles({ ...live(name), ...dhparam[name] });
      proxy.addVirtualServer(name, { serverNames: [name], listeners: [https], tls });
    }
    const texts = new Map(
      synthesizedFiles(stack).map(({ path, content }) => [path.split("/").at(-1), content]),
    );
    const watched = texts.get(service.renewalPathUnit!.name)!.matchAll(/^PathChanged=(.*)$/gm);
    const files = ["a.example", "b.example"].flatMap((name) => Object.values(live(name)));
    expect([...watched].map(([, path]) => path!).sort()).toEqual(
      [
        ...["/", "/dh.pem", "/etc/ssl", "/etc/ssl/dhparam.pem", ...files],
        ...["/etc/letsencrypt/live/a.example", "/etc/letsencrypt/live/b.example"],
      ].sort(),
    );
    expect(texts.get("portico-certificates.service")).toContain(
      "systemctl --no-block try-reload-or-restart portico.service\n",
    );
    // Each under a name of its own.
    expect(texts.get("portico.service")).toContain(
      "LoadCredential=etc_letsencrypt_live_a.example_privkey.pem:/etc/letsencrypt/live/a.example/privkey.pem\n",
    );
    expect(renderProxyConfig(proxy).listeners[0]!.tls).toMatchObject({
      certificates: [live("a.example"), live("b.example")],
    });
  });

  test("pass the secret of shared ticket keys to the service, and watch it, but never read it", () => {
    const { stack, host } = site();
    const file = "/etc/portico/ticket-secret";
    const proxy = new ReverseProxy(stack, "shares", {
      host,
      paths: { config: "/etc/shares.json" },
      ticketKeys: { file, rotateMs: 3_600_000 },
    });
    const https = proxy.addListener("https", { port: 8443, tls: { material: TlsMaterial.selfSigned() } });
    proxy.addVirtualServer("main", { serverNames: ["_"], listeners: [https], default: true });
    const service = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
    expect(renderProxyConfig(proxy).ticketKeys).toEqual({ file, rotateMs: 3_600_000 });
    const texts = new Map(
      synthesizedFiles(stack).map(({ path, content }) => [path.split("/").at(-1), content]),
    );
    const unit = texts.get("portico.service");
    expect(unit).toContain(`\nLoadCredential=ticket-secret:${file}\n`);
    expect(unit).toMatch(/\nExecReload=.* --credential ticket-secret:\/etc\/portico\/ticket-secret /);
    expect(texts.get(service.renewalPathUnit!.name)).toContain(
      `[Path]\nPathChanged=/etc/portico\nPathChanged=${file}\n`,
    );
  });

  test("pass the secrets of notifications to the service, and watch them, but never read them", () => {
    const { stack, host } = site();
    const roots = "/etc/portico/roots.pem";
    const [phone, desk] = [
      Notification.ntfy({ name: "phone", urlFile: "/etc/portico/ntfy-url", roots }),
      Notification.gotify({ name: "desk", url: "https://gotify.example.org", tokenFile: "/etc/portico/key" }),
    ];
    const proxy = new ReverseProxy(stack, "tells", {
      host,
      paths: { config: "/etc/tells.json" },
      notifications: { targets: [phone, desk], repeatMs: 3_600_000 },
    });
    const http = proxy.addListener("http", { port: 8080 });
    proxy.addVirtualServer("main", { serverNames: ["_"], listeners: [http], default: true });
    const service = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
    expect(renderProxyConfig(proxy).notifications).toMatchObject({
      targets: [
        { type: "ntfy", urlFile: "/etc/portico/ntfy-url" },
        { type: "gotify", tokenFile: "/etc/portico/key" },
      ],
      upstreamDownMs: 120_000,
      repeatMs: 3_600_000,
    });
    const texts = new Map(
      synthesizedFiles(stack).map(({ path, content }) => [path.split("/").at(-1), content]),
    );
    for (const file of ["ntfy-url", "roots.pem", "key"]) {
      expect(texts.get("portico.service")).toContain(`\nLoadCredential=${file}:/etc/portico/${file}\n`);
      expect(texts.get(service.renewalPathUnit!.name)).toContain(`PathChanged=/etc/portico/${file}\n`);
    }
  });

  test("pass the secrets of request fields and the TLS files of upstreams to the service, and watch them", () => {
    const { stack, host } = site();
    const proxy = new ReverseProxy(stack, "secrets", { host, paths: { config: "/etc/secrets.json" } });
    const http = proxy.addListener("http", { port: 8080 });
    const server = proxy.addVirtualServer("main", { serverNames: ["_"], listeners: [http], default: true });
    const app = proxy.addUpstream("app", { url: "http://127.0.0.1:8000" });
    const authorizedBy = (file: string): Action =>
      Action.proxy(app, { setHeadersFromCredential: { Authorization: file } });
    server.addRoute("before", { path: "/before", action: authorizedBy("/etc/secrets/before") });
    const service = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
    server.addRoute("after", { path: "/after", action: authorizedBy("/etc/secrets/after") });
    const replaced = server.addRoute("replaced", { path: "/replaced", action: Action.proxy(app) });
    replaced.replaceAction(authorizedBy("/etc/other/replaced"));
    const pair = { certificateFile: "/etc/tls/own.pem", privateKeyFile: "/etc/tls/own.key" };
    const tls = {
      caFile: "/etc/tls/roots.pem",
      serverName: new TerraformVariable(stack, "n", {}).stringValue,
    };
    const far = proxy.addUpstream("far", { url: "https://far.example:8443", tls: { ...tls, ...pair } });
    server.addRoute("far", { path: "/far", action: Action.proxy(far) });
    proxy.addUpstream("late", { url: tls.serverName, tls: { verify: false } });
    expect(proxy.problems).toEqual([]);
    expect(renderProxyConfig(proxy).upstreams).toMatchObject([
      {},
      { tls: { ...pair, caFile: tls.caFile } },
      { tls: { verify: false } },
    ]);
    expect(far.node.metadata).toEqual([]);
    const texts = new Map(
      synthesizedFiles(stack).map(({ path, content }) => [path.split("/").at(-1), content]),
    );
    const [, watched] = texts.get(service.renewalPathUnit!.name)!.split("[Path]\n");
    const files = ["/etc/secrets/before", "/etc/secrets/after", "/etc/other/replaced"];
    files.push(tls.caFile, ...Object.values(pair));
    const lines = ["/etc/secrets", "/etc/other", "/etc/tls", ...files].map((path) => `PathChanged=${path}\n`);
    expect(watched).toMatch(lines.join(""));
    for (const file of files) expect(texts.get("portico.service")).toContain(`:${file}\n`);
  });

  test("make a certificate without a common name that would be too long", () => {
    const publicName = `${"a".repeat(60)}.example.org`;
    const stack = newStack();
    const host = new Host(stack, "host", { address: "192.0.2.10", publicName });
    const proxy = new ReverseProxy(stack, "proxy", { host });
    proxy.tlsFiles(TlsMaterial.selfSigned());
    const [certificate] = Object.values(JSON.parse(Testing.synth(stack)).resource.tls_self_signed_cert);
    expect(certificate).toMatchObject({ subject: [{ common_name: "192.0.2.10" }], dns_names: [publicName] });
  });

  test("a self-signed certificate takes names that clients can ask for, and nothing similar", () => {
    const make = (name: string) => () => TlsMaterial.selfSigned({ dnsNames: [name] });
    for (const name of ["a", "a.example", "*.a.example", "a1", "xn--a.example"])
      expect(make(name)).not.toThrow();
    for (const name of [
      "",
      "A",
      "*",
      "*.",
      "a.*",
      "**.a",
      "*a.b",
      "a.",
      " a",
      "a ",
      "a\n",
      "a:1",
      "1.2.3.4",
      "::1",
    ])
      expect([name, problemsOf(make(name)).map((p) => p.path)]).toEqual([
        name,
        ["TlsMaterial.selfSigned.dnsNames[0]"],
      ]);
  });

  test("write units that follow the proxy", () => {
    const { stack, proxy, server } = site({
      paths: { logDirectory: "/var/log/edge", config: "/etc/edge.json" },
    });
    new ProxyService(stack, "service", {
      proxy,
      runtimeBundle: __filename,
      nodePath: "/opt/node/bin/node",
      stopTimeoutSeconds: 5,
      openFilesMax: 999,
      memoryMax: "40%",
      groups: ["www-data"],
    });
    // Added after the service, and still in its units.
    const late = proxy.addListener("late", { port: 81, address: "192.0.2.10" });
    proxy.addVirtualServer("late-server", { serverNames: ["_"], listeners: [late], default: true });
    server.addRoute("home", { path: "/", action: Action.staticFiles("/home/www") });
    synthesize(stack);
    const unit = synthesizedFile(stack, "/etc/systemd/system/portico.service").content!;
    for (const line of [
      "ExecStart=/opt/node/bin/node /usr/lib/portico/portico.mjs serve /etc/edge.json",
      "ExecReload=/opt/node/bin/node /usr/lib/portico/portico.mjs reload",
      "TimeoutStopSec=5",
      "LimitNOFILE=999",
      "MemoryMax=40%",
      "LogsDirectory=edge",
      "ProtectHome=read-only",
      "SupplementaryGroups=www-data",
    ]) {
      expect(unit.split("\n")).toContain(line);
    }
    expect(synthesizedFile(stack, "/etc/systemd/system/portico.socket").content).toContain(
      "ListenStream=0.0.0.0:80\nListenStream=192.0.2.10:81\n",
    );
  });

  test("take a log directory that is known only at apply if it turns out to be outside of /var/log", () => {
    const checked = (before: string): string[] => {
      const stack = newStack();
      const text = new TerraformVariable(stack, "t", { type: "string" }).stringValue;
      const host = new Host(stack, "host", { address: "192.0.2.10" });
      const proxy = new ReverseProxy(stack, "proxy", { host, paths: { logDirectory: `${before}${text}` } });
      const http = proxy.addListener("http", { port: 80 });
      proxy.addVirtualServer("site", { serverNames: ["_"], listeners: [http], default: true });
      const { serviceUnit } = new ProxyService(stack, "service", { proxy, runtimeBundle: __filename });
      return serviceUnit.lateValues.map(({ path, message }) => `${path}: ${message}`);
    };
    const word = 'is not one line without `%`, `"` and `\\`, and without leading or trailing white space';
    const path = "stack/proxy.paths.logDirectory: is not an absolute path of letters, digits and ./_-+@,=~%";
    const unit = "stack/service/ServiceUnit.unit.Service";
    expect(checked("")).toEqual([
      `${unit}.ReadWritePaths: ${word}`,
      path,
      "stack/proxy.paths.logDirectory: is not a directory outside /var/log, or a path that begins with a literal `/var/log/`",
    ]);
    // systemd makes it.
    expect(checked("/var/log/")).toEqual([`${unit}.LogsDirectory: ${word}`, path]);
  });

  test.each<["stopTimeoutSeconds" | "openFilesMax" | "logDaysKept", number, number]>([
    ["stopTimeoutSeconds", 1, 604_800],
    ["openFilesMax", 256, 1_048_576],
    ["logDaysKept", 0, 3_650],
  ])("%s is a whole number from %i to %i", (name, min, max) => {
    const make = (value: number) => () => {
      const { stack, proxy } = site();
      return new ProxyService(stack, "service", { proxy, runtimeBundle: __filename, [name]: value });
    };
    for (const value of [min, max]) expect(make(value)).not.toThrow();
    for (const value of [min - 1, max + 1, min + 0.5])
      expect([value, problemsOf(make(value)).map((p) => [p.code, p.path])]).toEqual([
        value,
        [["config.out-of-range", `stack/service.${name}`]],
      ]);
  });

  test.each([
    [["128M", "512M", "100000M", "1G", "64G", "1%", "50%", "100%", "infinity"], true],
    [["127M", "0", "1K", "512", "512MB", "0%", "101%", "1.5G", "max", "50%%", " 1G", ""], false],
  ] as const)("a limit of memory is what systemd understands and a worker can live with: %j", (all, fits) => {
    for (const memoryMax of all) {
      const { stack, proxy } = site();
      const make = () => new ProxyService(stack, "service", { proxy, runtimeBundle: __filename, memoryMax });
      if (fits) expect(make).not.toThrow();
      else
        expect(problemsOf(make)).toMatchObject([
          { code: "unit.bad-value", received: JSON.stringify(memoryMax) },
        ]);
    }
  });

  test("have their logs rotated, unless none are to be kept", () => {
    const kept = [undefined, 1, 0].map((logDaysKept) => {
      const { stack, proxy } = site();
      const made = new ProxyService(stack, "service", { proxy, logDaysKept, runtimeBundle: __filename });
      return made.logRotation === undefined
        ? undefined
        : /^\trotate (.*)$/m.exec(synthesizedFile(made, made.logRotation.path).content!)?.[1];
    });
    expect(kept).toEqual(["14", "1", undefined]);
  });

  test("run the runtime of this package", () => {
    expect(packagedBundle("stack/service")).toBe(join(__dirname, "../../dist/portico.mjs"));
  });

  test("write any unit and any file", () => {
    const { stack, host } = site();
    new SystemdUnit(stack, "timer", {
      host,
      name: "renew.timer",
      directory: "/run/systemd/system",
      unit: { Timer: { OnCalendar: "daily" } },
    });
    new SystemdUnit(stack, "drop-in", {
      host,
      name: "web.service.d/limits.conf",
      unit: { Service: { LimitNOFILE: 9 } },
    });
    const variable = new TerraformVariable(stack, "v", { type: "string" }).stringValue;
    new HostFile(stack, "motd", {
      host,
      path: "/etc/motd",
      content: `${"${x}"} ${variable} 100%{`,
      mode: "0640",
      sensitive: true,
    });
    expect(synthesizedFile(stack, "/run/systemd/system/renew.timer").content).toBe(
      "[Timer]\nOnCalendar=daily\n",
    );
    expect(synthesizedFile(stack, "/etc/systemd/system/web.service.d/limits.conf").content).toBe(
      "[Service]\nLimitNOFILE=9\n",
    );
    expect(synthesizedFile(stack, "/etc/motd")).toMatchObject({
      placeholder: "$${x} ${var.v} 100%%{",
      mode: "0640",
      sensitive: true,
    });
    expect(() => synthesizedFile(stack, "/etc/other")).toThrow(/There is:\n {2}\/etc\/motd\n/);
  });
});

test("settings can be used alone, for the host's names and the scheme's port", () => {
  const { stack, host } = site();
  const url = (scheme: "http" | "https", more: Partial<ApplicationSettingsProps> = {}): string =>
    new ApplicationSettings(stack, `s${stack.node.children.length}`, {
      host,
      scheme,
      directory: `/srv/settings${stack.node.children.length}`,
      ...more,
    }).values.serviceUrl;
  expect(url("https")).toBe("https://192.0.2.10/sync");
  expect(url("http", { pathPrefix: "cloud" })).toBe("http://192.0.2.10/cloud");
  expect(url("http", { publicPort: 443, serverNames: ["a.example"] })).toBe("http://a.example:443/sync");
});

describe("values that are known only at apply", () => {
  test("pass through the escaping of units unchanged", () => {
    const { stack, host } = site();
    const path = new TerraformVariable(stack, "path", { type: "string" }).stringValue;
    new SystemdUnit(stack, "unit", {
      host,
      name: "app.service",
      unit: {
        Service: { ExecStart: { command: [path, `--home=${path}/100%`, "$x"] }, WorkingDirectory: path },
      },
    });
    expect(synthesizedFile(stack, "/etc/systemd/system/app.service").placeholder).toBe(
      "[Service]\nExecStart=${var.path} --home=${var.path}/100%% $$x\nWorkingDirectory=${var.path}\n",
    );
  });

  test("are checked if they turn out to be literal", () => {
    const { stack, server, proxy } = site();
    const late = Lazy.stringValue({ produce: () => "/srv/late" });
    server.addRoute("late", { path: "/late", action: Action.staticFiles(late) });
    expect(
      JSON.parse(synthesizedFile(stack, "/etc/portico/portico.json").content!).virtualServers[0].routes[0]
        .action.directory,
    ).toBe("/srv/late");
    server.addRoute("bad", {
      path: "/bad",
      action: Action.staticFiles(Lazy.stringValue({ produce: () => "srv" })),
    });
    expect(proxy.problems.map((p) => [p.code, p.path])).toEqual([
      ["config.bad-file-path", "stack/proxy/VirtualServers/site/bad.action.directory"],
    ]);
  });

  test("do not hide a mistake elsewhere in the same proxy", () => {
    const { stack, proxy, server } = site();
    const url = new TerraformVariable(stack, "url", { type: "string" }).stringValue;
    server.addRoute("a", { path: "/a", action: Action.proxy(proxy.addUpstream("a", { url })) });
    server.addRoute("b", { path: "/b", name: "a", action: Action.respond(200) });
    expect(proxy.problems.map((p) => p.code)).toEqual(["config.duplicate-name"]);
    expect(() => synthesize(stack)).toThrow(/config\.duplicate-name/);
  });
});

test("a unit's name is one that systemd reads, or a drop-in of one", () => {
  const longest = `${"a".repeat(248)}.service`;
  const taken = [
    ...["a.service", "a-b_c.d:e@.socket", "a@b.timer", "a\\x2db.path", "a.target", "a.mount", longest],
    ...["a.service.d/x.conf", "a.socket.d/10-x.y.conf"],
  ];
  const refused = [
    ...[
      "",
      ".service",
      "a",
      "a.slice",
      "a.services",
      "a.service\n",
      " a.service",
      "a b.service",
      `a${longest}`,
    ],
    ...[
      "a.service.d",
      "a.service.d/",
      "a.service.d/x",
      "a.service.d/x.conf\n",
      "a.service.d/x.confs",
      "a.d/x.conf",
    ],
  ];
  const make = (name: string) => () => {
    const { stack, host } = site();
    return new SystemdUnit(stack, "x", {
      host,
      name,
      unit: { Service: { ExecStart: { command: ["/bin/x"] } } },
    });
  };
  for (const name of taken) expect(make(name)).not.toThrow();
  for (const name of refused) expect([name, problemsOf(make(name)).length]).toEqual([name, 1]);
});

test("a proxy has the problems that its config has on the host", () => {
  const { proxy } = site();
  proxy.addListener("x", { port: 80 });
  const result = parseConfig(proxy.config);
  expect(result.ok || result.problems.map((p) => p.code)).toEqual(proxy.problems.map((p) => p.code));
});
