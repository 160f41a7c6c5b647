import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Aspects, TerraformVariable, Testing } from "cdktf";
import {
  Action,
  Application,
  ContainerFrontEnd,
  Delivery,
  FILE_SYNC_RESPONSE_HEADERS,
  Host,
  Mode,
  parseConfig,
  parseConfigText,
  TlsMaterial,
  TlsPolicy,
} from "../../src/index.js";
import type { ListenerConfig } from "../../src/model/index.js";
import {
  renderProxyConfig,
  resolve as resolveRequest,
  synthesizedFile,
  synthesizedFiles,
} from "../../src/testing/index.js";
import { expectGolden } from "../render/golden.js";
import {
  type FileSyncFrontEnd,
  type FileSyncFrontEndProps,
  addresses,
  frontEnd,
  newStack,
  problemsOf,
  synthesize,
} from "../../testkit/stacks.js";

const ipv6Address = "2001:db8::10";
const configText = (files: FileSyncFrontEnd): string =>
  synthesizedFile(files, files.proxy.paths.config).content!;

describe("the config", () => {
  const plain = { mode: Mode.plain() };
  const cases: [
    name: string,
    props: Partial<FileSyncFrontEndProps>,
    like?: Partial<FileSyncFrontEndProps>,
  ][] = [
    ["plain", plain, undefined],
    ["plain-ipv6", { ...plain, host: { address: "192.0.2.10", ipv6Address } }, plain],
    ["tls", {}, plain],
    ["tls-ipv6-name", { host: { address: "192.0.2.10", ipv6Address, publicName: "files.example.org" } }, {}],
  ];
  test.each(cases)("%s is what it was", (name, props, like) => {
    const text = like === undefined ? undefined : configText(frontEnd(like));
    expectGolden(`config-${name}.${text === undefined ? "json" : "diff"}`, configText(frontEnd(props)), text);
  });

  test.each(cases)("%s reads back as what was meant", (_name, props) => {
    const files = frontEnd(props);
    const read = parseConfigText(configText(files));
    const meant = parseConfig(files.proxy.config);
    expect(read.ok || read.problems).toBe(true);
    if (!read.ok || !meant.ok) throw new Error("unreachable");
    const { $schema, ...rest } = read.value;
    expect($schema).toBeDefined();
    expect(rest).toEqual(meant.value);
    expect(renderProxyConfig(files)).toEqual(meant.value);
  });

  test("logs everything to streams if the main logs are streams, and needs no log directory then", () => {
    const logs = { access: { stream: "stdout", format: "json" }, error: { stream: "stderr" } } as const;
    const made = frontEnd({ proxy: { logs } });
    const { virtualServers, ...config } = renderProxyConfig(made);
    expect(config.logs).toEqual({ ...logs, clientAddress: "full" });
    const routes = virtualServers.flatMap((server) => server.routes ?? []);
    expect(
      routes.filter(({ accessLog, errorLog }) => accessLog !== undefined || errorLog !== undefined),
    ).toEqual([]);
    const content = (path: string) => synthesizedFiles(made).find((file) => file.path === path)?.content;
    expect(content("/etc/systemd/system/portico.service")).not.toMatch(/LogsDirectory|ReadWritePaths/);
    expect(content("/etc/logrotate.d/portico")).toMatch(/^#.*\n$/);
  });

  test("a health listener is in the config and nowhere else; a drain delay comes on top of the stop's time", () => {
    const healthListener = { address: "127.0.0.1", port: 9_180 };
    const proxy = { healthListener, timeouts: { drainDelayMs: 14_001 } };
    const made = frontEnd({ proxy, firewall: {}, service: { stopTimeoutSeconds: 100 } });
    expect(renderProxyConfig(made)).toMatchObject({ healthListener });
    expect(made.exposedPorts).not.toContain(9_180);
    const files = synthesizedFiles(made);
    const other = files.filter(({ path }) => !/portico\.(?:json|schema\.json)$/.test(path));
    expect(other.filter(({ content = "" }) => content.includes("9180"))).toEqual([]);
    expect(files.find(({ path }) => path.endsWith("/portico.service"))?.content).toContain(
      "TimeoutStopSec=115\n",
    );
  });

  test("a public health listener is refused", () => {
    const proxy = { healthListener: { address: "0.0.0.0", port: 9_180 } };
    expect(() => frontEnd({ proxy })).toThrow("config.public-health-listener");
  });

  test("takes the server name of an IPv6 host in canonical form", () => {
    const host = { address: "192.0.2.10", ipv6Address: "2001:0DB8::0010" };
    const { virtualServers } = renderProxyConfig(frontEnd({ mode: Mode.plain(), host }));
    expect(virtualServers[1]!.serverNames).toEqual(["192.0.2.10", "2001:db8::10"]);
  });

  test("says for all listeners what names clients, and which port they use", () => {
    const proxyProtocol = { from: ["10.0.0.0/8", "2001:db8::/32"] };
    const host = { address: "192.0.2.10", ipv6Address };
    const listeners = (mode: Mode) => renderProxyConfig(frontEnd({ host, mode })).listeners;
    const at = ({ port, publishedPort, proxyProtocol: header }: ListenerConfig) => ({
      port,
      publishedPort,
      header,
    });
    const own = { publishedPort: undefined, header: undefined };
    expect(listeners(Mode.plain()).map(at)).toEqual([80, 80].map((port) => ({ port, ...own })));
    expect(listeners(Mode.plain({ httpPort: 8081, publicPort: 80, proxyProtocol })).map(at)).toEqual(
      [8081, 8081].map((port) => ({ port, publishedPort: 80, header: proxyProtocol })),
    );
    expect(
      listeners(Mode.tls({ httpPort: 8081, httpsPort: 8443, publicPort: 443, proxyProtocol })).map(at),
    ).toEqual(
      [8081, 8081, 8443, 8443].map((port) => ({
        port,
        publishedPort: port === 8443 ? 443 : undefined,
        header: proxyProtocol,
      })),
    );
  });

  test.each([
    [undefined, "file-sync"],
    [TlsPolicy.fileSync(), "file-sync"],
    [TlsPolicy.fileSync({ tls13: false }), "file-sync"],
    [TlsPolicy.fileSync({ tls13: true }), "file-sync-tls13"],
  ])("has TLS 1.3 only if it is asked for: %j", (policy, name) => {
    const { listeners } = JSON.parse(configText(frontEnd({ mode: Mode.tls(policy && { policy }) })));
    expect(listeners[1].tls.policy).toBe(name);
  });

  test.each([Mode.tls(), Mode.plain()])("names may be every name below another ($scheme)", (mode) => {
    const host = { address: "192.0.2.10", publicName: "files.example.org" };
    const files = frontEnd({ mode, host, additionalServerNames: ["*.example.org"] });
    expect(files.proxy.problems).toEqual([]);
    expect(files.site.url).toBe(`${mode.scheme}://files.example.org/sync/`);
    expect(resolveRequest(files.proxy, `${mode.scheme}://a.example.org/sync/x`)).toMatchObject({
      route: "web",
    });
    expect(resolveRequest(files.proxy, "http://a.example.org/sync/x")).toMatchObject(
      mode.scheme === "https" ? { location: "https://a.example.org/sync/x" } : { route: "web" },
    );
    expect(files.site.settings.values.csrfTrustedOrigins).toEqual([
      `${mode.scheme}://files.example.org`,
      `${mode.scheme}://*.example.org`,
    ]);
    const serverNames = ["*.example.org"];
    const upstream = { url: "http://part:80" };
    const upstreams = { web: upstream, webdav: upstream, fileServer: upstream };
    const mediaDirectory = "/srv/media";
    const application = Application.fileSync({ mediaDirectory });
    const contained = { mode: Mode.plain(), serverNames, upstreams, application };
    expect(problemsOf(() => new ContainerFrontEnd(newStack(), "files", contained))).toMatchObject([
      { code: "config.bad-server-name", path: "stack/files.serverNames[0]" },
    ]);
  });

  test("follows every prop", () => {
    const files = frontEnd({
      mode: Mode.tls({
        httpPort: 8090,
        httpsPort: 8443,
        publicPort: 9443,
        policy: TlsPolicy.mozillaModern(),
        http2: false,
      }),
      application: Application.fileSync({
        pathPrefix: "cloud",
        mediaDirectory: "/data/media",
        avatarDirectory: "/data/avatars",
        webdavDestination: "absolute",
      }),
      additionalServerNames: ["www.example.org"],
      upstreams: { web: { url: "http://[::1]:9000", readTimeoutMs: 5 }, webdav: { name: "dav" } },
      requestBodyTimeoutMs: 1234,
      proxy: {
        workers: 2,
        trustedProxies: ["10.0.0.0/8"],
        timeouts: { keepAliveMs: 7 },
        limits: { headerCountMax: 9 },
      },
      paths: { logDirectory: "/srv/log", defaultPageDirectory: "/srv/page" },
    });
    expect(files.proxy.problems).toEqual([]);
    const { listeners, virtualServers, upstreams, ...rest } = JSON.parse(configText(files));
    expect(listeners).toMatchObject([
      { port: 8090 },
      { port: 8443, publishedPort: 9443, http2: false, tls: { policy: "mozilla-modern" } },
    ]);
    expect(upstreams).toMatchObject([
      { name: "web", url: "http://[::1]:9000", readTimeoutMs: 5, sendTimeoutMs: 36e6 },
      { name: "dav", url: "http://127.0.0.1:8080" },
      { name: "fileServer" },
    ]);
    const [byDefault, redirect, application] = virtualServers;
    expect(byDefault.routes[0].action.directory).toBe("/srv/page");
    expect(redirect).toMatchObject({
      serverNames: ["192.0.2.10", "www.example.org"],
      routes: [{ path: "/cloud", action: { port: 9443 } }],
    });
    expect(application.routes).toMatchObject([
      {
        name: "web",
        path: "/cloud",
        requestBodyTimeoutMs: 1234,
        accessLog: { path: "/srv/log/web.access.log" },
      },
      { name: "webdav", path: "/clouddav", action: { upstream: "dav", destination: "absolute" } },
      { name: "fileServer", path: "/cloudhttp" },
      { name: "media", path: "/cloudmedia", action: { directory: "/data/media" } },
      { name: "avatars", path: "/cloudmedia/avatars", action: { directory: "/data/avatars" } },
      { name: "page", path: "/" },
    ]);
    expect(rest).toMatchObject({ workers: 2, trustedProxies: ["10.0.0.0/8"], timeouts: { keepAliveMs: 7 } });
    expect(files.site.url).toBe("https://192.0.2.10:9443/cloud/");
    expect(files.portForwards.map((f) => [f.port, f.toPort])).toEqual([
      [80, 8090],
      [9443, 8443],
    ]);
  });

  test("takes paths that its prefix does not give, in routes, redirects and settings", () => {
    const routePaths = { fileServer: "/seafhttp", webdav: "/seafdav", media: "/static/media" };
    const files = frontEnd({
      application: Application.fileSync({
        installDirectory: "/srv/sync",
        pathPrefix: "seafile",
        routePaths,
        avatarDirectory: "/srv/avatars",
      }),
    });
    const { virtualServers } = renderProxyConfig(files);
    const paths = virtualServers.map(({ name, routes }) => [name, routes.map((r) => `${r.path} ${r.match}`)]);
    expect(paths).toEqual([
      ["default", ["/ segment"]],
      ["redirect", ["/seafile prefix", "/seafdav segment", "/seafhttp segment", "/static/media segment"]],
      [
        "application",
        [
          ...["/seafile prefix", "/seafdav prefix", "/seafhttp segment", "/static/media segment"],
          ...["/static/media/avatars segment", "/ exact"],
        ],
      ],
    ]);
    expect(files.site.settings.values).toMatchObject({
      serviceUrl: "https://192.0.2.10/seafile",
      fileServerRoot: "https://192.0.2.10/seafhttp",
      mediaUrl: "/static/media/",
      staticUrl: "/static/media/assets/",
      siteRoot: "/seafile/",
    });
    expect(resolveRequest(files, "http://192.0.2.10/seafhttp/x")).toMatchObject({
      location: "https://192.0.2.10/seafhttp/x",
    });
  });

  test("waits for a request body for as long as a timer can", () => {
    const made = (requestBodyTimeoutMs: number) => () => frontEnd({ requestBodyTimeoutMs });
    for (const time of [1, 2_147_483_647]) expect(made(time)).not.toThrow();
    for (const time of [0, 1.5, 2_147_483_648])
      expect([time, problemsOf(made(time)).map((p) => [p.code, p.path])]).toEqual([
        time,
        [["config.out-of-range", "stack/files.requestBodyTimeoutMs"]],
      ]);
  });
});

describe("response fields and HSTS", () => {
  const files = { certificate: "/c.pem", key: "/k.pem", dhparam: false } as const;
  const material = TlsMaterial.fromFiles(files);

  test("are set on every route of the application, and nowhere else", () => {
    const { virtualServers } = renderProxyConfig(
      frontEnd({
        mode: Mode.tls({ material, hsts: { maxAge: 300 } }),
        responseHeaders: FILE_SYNC_RESPONSE_HEADERS,
      }),
    );
    const none = { set: {}, remove: [] };
    expect(virtualServers.map((v) => [v.name, v.responseHeaders, v.hsts])).toEqual([
      ["default", none, undefined],
      ["redirect", none, undefined],
      ["application", FILE_SYNC_RESPONSE_HEADERS, { maxAge: 300, includeSubDomains: false, preload: false }],
    ]);
  });

  test("are in the set that docs/response-headers.md describes, and no others", () => {
    const page = readFileSync(join(__dirname, "../../docs/response-headers.md"), "utf8");
    const rows = (row: RegExp): string[] => [...page.matchAll(row)].map(([, field]) => field!);
    const { set, remove } = FILE_SYNC_RESPONSE_HEADERS;
    expect(Object.entries(set!).map((field) => field.join(": "))).toEqual(rows(/^\| `([\w-]+: .+?)` /gm));
    expect(remove).toEqual(rows(/^\| `([\w-]+)` is removed /gm));
  });

  test("are set on single routes, and take priority there", () => {
    const responseHeaders = { set: { "X-Frame-Options": "DENY" }, remove: ["Server"] };
    const routeResponseHeaders = {
      web: { set: { "X-Frame-Options": "SAMEORIGIN" } },
      media: { set: { "Cross-Origin-Resource-Policy": "cross-origin" } },
    };
    const app = frontEnd({ mode: Mode.plain(), responseHeaders, routeResponseHeaders });
    const fieldsAt = (path: string) => resolveRequest(app, `http://192.0.2.10${path}`).responseHeaders;
    expect(fieldsAt("/sync/")).toEqual({ "x-frame-options": "SAMEORIGIN" });
    expect(fieldsAt("/syncdav/")).toEqual({ "x-frame-options": "DENY" });
    expect(fieldsAt("/syncmedia/a.png")).toEqual({
      "x-frame-options": "DENY",
      "cross-origin-resource-policy": "cross-origin",
    });
  });

  test("HSTS is accepted with a self-signed certificate if it is forced; the config does not show that", () => {
    const { virtualServers } = renderProxyConfig(frontEnd({ mode: Mode.tls({ hsts: { force: true } }) }));
    expect(virtualServers[2]!.hsts).toEqual({ maxAge: 31_536_000, includeSubDomains: false, preload: false });
  });

  test("HSTS depends on the certificate of the virtual server, if it has its own", () => {
    const add = (app: FileSyncFrontEnd, tls: TlsMaterial) =>
      app.proxy.addVirtualServer("office", {
        serverNames: ["office.example.org"],
        listeners: [app.httpsListener],
        tls,
        hsts: {},
      });
    expect(() => add(frontEnd(), material)).not.toThrow();
    expect(() => add(frontEnd({ mode: Mode.tls({ material }) }), TlsMaterial.selfSigned())).toThrow(
      /office\.hsts: is set with a self-signed certificate \[config\.hsts-self-signed\]/,
    );
  });

  test("plain mode has the fields, too", () => {
    const app = frontEnd({ mode: Mode.plain(), responseHeaders: { remove: ["Server"] } });
    expect(resolveRequest(app, "http://192.0.2.10/sync/").removedResponseHeaders).toEqual(["server"]);
  });
});

describe("the address that is listened on", () => {
  const host = { address: "10.0.0.10", ipv6Address: "2001:db8::10" };
  const listening = (app: FileSyncFrontEnd): string[] =>
    renderProxyConfig(app).listeners.map((l) => `${l.name} ${l.address} ${l.port}`);
  const warnings = ({ node }: FileSyncFrontEnd): unknown[] =>
    node.metadata.filter(({ type }) => type === "@cdktf/warn").map(({ data }) => data);

  test("is all addresses, unless the mode says otherwise", () => {
    expect(listening(frontEnd({ host }))).toEqual([
      "http 0.0.0.0 80",
      "http6 :: 80",
      "https 0.0.0.0 443",
      "https6 :: 443",
    ]);
    const app = frontEnd({ host, mode: Mode.tls({ address: "10.0.0.10", ipv6Address: "2001:db8::10" }) });
    expect(listening(app)).toEqual([
      "http 10.0.0.10 80",
      "http6 2001:db8::10 80",
      "https 10.0.0.10 443",
      "https6 2001:db8::10 443",
    ]);
    expect(warnings(app)).toEqual([]);
    expect(listening(frontEnd({ host, mode: Mode.plain({ address: "10.0.0.10" }) }))).toEqual([
      "http 10.0.0.10 80",
      "http6 :: 80",
    ]);
  });

  test("on loopback no port is exposed or forwarded, and systemd need not wait for the address", () => {
    const app = frontEnd({ host, mode: Mode.plain({ address: "127.0.0.1", ipv6Address: "::1" }) });
    expect(app.exposedPorts).toEqual([22]);
    expect(app.portForwards).toEqual([]);
    expect(warnings(app)).toEqual([]);
    const socket = synthesizedFile(app, "/etc/systemd/system/portico.socket").content;
    expect(socket).toContain("ListenStream=127.0.0.1:80\nListenStream=[::1]:80\n");
    expect(socket).toContain("FreeBind=yes");
  });

  test("is the target of a router, with a warning if clients are sent elsewhere", () => {
    const app = frontEnd({ host, mode: Mode.plain({ address: "10.0.0.11" }) });
    expect(app.portForwards).toEqual([{ protocol: "tcp", port: 80, toAddress: "10.0.0.11", toPort: 80 }]);
    expect(warnings(app)).toEqual([
      "The proxy listens on 10.0.0.11 only, but clients are sent to the host's address, which is 10.0.0.10.",
    ]);
    const shared = { ...host, virtualAddress: "10.0.0.11" };
    const told = (more: object) => warnings(frontEnd({ host: shared, mode: Mode.plain(more) }));
    expect(told({ address: "10.0.0.11", ipv6Address: "2001:DB8::0:10" })).toEqual([]);
    expect(told({ address: "10.0.0.10", ipv6Address: "2001:db8::11" })).toEqual([
      "The proxy listens on 10.0.0.10 only, but clients are sent to the host's address, which is 10.0.0.11.",
      "The proxy listens on 2001:db8::11 only, but clients are sent to the host's ipv6Address, which is 2001:db8::10.",
    ]);
  });

  test("may be known only to Terraform", () => {
    const stack = newStack();
    const address = new TerraformVariable(stack, "address", { type: "string" }).stringValue;
    const app = frontEnd({ mode: Mode.plain({ address }) }, "files", stack);
    expect(app.exposedPorts).toEqual([22, 80]);
    expect(warnings(app)).toEqual([]);
    expect(() => synthesize(stack)).not.toThrow();
  });
});

test("upstreams on Unix sockets, with groups that may write to them, need no loopback ports", () => {
  const url = "unix:/run/sync/web.sock";
  const service = { groups: ["sync", "www-data"] };
  const files = frontEnd({ upstreams: { web: { url } }, service, firewall: {} });
  expect(renderProxyConfig(files).upstreams[0]).toMatchObject({ name: "web", url });
  expect(synthesizedFile(files, "/etc/systemd/system/portico.service").content).toContain(
    "\nSupplementaryGroups=sync www-data\n",
  );
  expect(files.loopbackPorts).toEqual([3306, 8080, 8082]);
  expect(resolveRequest(files, "https://192.0.2.10/sync/")).toMatchObject({ upstreamUrl: url });
});

describe("the stack", () => {
  test("has these resources in TLS mode: their ids are part of the contract", () => {
    const files = frontEnd({
      application: Application.fileSync({
        installDirectory: "/srv/sync",
        settings: { startCommand: ["/srv/sync/web.sh", "start"] },
      }),
    });
    expect(addresses(files.node.root.node.findChild("stack") as never)).toMatchInlineSnapshot(`
[
  "local_file.files_DefaultPage_5E83DD37",
  "local_file.files_Deployment_C735064F",
  "local_file.files_Proxy_Config_3CCC93E8",
  "local_file.files_Proxy_DhParameters_8ED80BB9",
  "local_file.files_Proxy_Tls_CertificateFile_B86FEEA9",
  "local_file.files_Service_LogRotation_00437F03",
  "local_file.files_Service_Runtime_FEBDD47E",
  "local_file.files_Service_Schema_D003772C",
  "local_file.files_Service_ServiceUnit_4186471D",
  "local_file.files_Service_SocketUnit_DBBC631C",
  "local_file.files_Site_Settings_FileServer_0E1A483C",
  "local_file.files_Site_Settings_NetworkDaemon_3641A638",
  "local_file.files_Site_Settings_StartCommand_1E3E4470",
  "local_file.files_Site_Settings_WebApplication_EAF4B7BA",
  "local_sensitive_file.files_Proxy_Tls_KeyFile_A69910DB",
  "tls_private_key.files_Proxy_Tls_PrivateKey_01B6F875",
  "tls_self_signed_cert.files_Proxy_Tls_Certificate_761A88BB",
]
`);
  });

  test("writes these files to the host, with these modes", () => {
    const files = synthesizedFiles(frontEnd());
    expect(files.map((f) => `${f.mode} ${f.directoryMode} ${f.path}`)).toMatchInlineSnapshot(`
[
  "0644 0755 /etc/logrotate.d/portico",
  "0644 0755 /etc/portico/deployment.json",
  "0644 0755 /etc/portico/portico.json",
  "0644 0755 /etc/portico/tls/cacert.pem",
  "0644 0755 /etc/portico/tls/dhparam2048.pem",
  "0600 0755 /etc/portico/tls/privkey.pem",
  "0644 0755 /etc/systemd/system/portico.service",
  "0644 0755 /etc/systemd/system/portico.socket",
  "0755 0755 /usr/lib/portico/portico.mjs",
  "0644 0755 /usr/lib/portico/portico.schema.json",
  "0644 0755 /usr/share/portico/application-settings/file-server.conf",
  "0644 0755 /usr/share/portico/application-settings/network-daemon.conf",
  "0644 0755 /usr/share/portico/application-settings/web-application-settings.py",
  "0644 0755 /usr/share/portico/default/index.html",
]
`);
    expect(files.filter((f) => f.sensitive).map((f) => f.path)).toEqual(["/etc/portico/tls/privkey.pem"]);
    expect(
      files
        .filter(({ path, placeholder }) => placeholder && !path.endsWith("deployment.json"))
        .map((f) => f.placeholder),
    ).toEqual([
      expect.stringMatching(/^\$\{tls_self_signed_cert\..*\.cert_pem\}$/),
      expect.stringMatching(/^\$\{tls_private_key\..*\.private_key_pem\}$/),
    ]);
  });

  test("makes key and certificate as service 3.1 says, for the host's names and addresses", () => {
    const stack = newStack();
    frontEnd(
      { host: { address: "192.0.2.10", ipv6Address, publicName: "files.example.org" } },
      "files",
      stack,
    );
    const { resource } = synthesize(stack);
    const [key] = Object.values(resource["tls_private_key"]!);
    const [certificate] = Object.values(resource["tls_self_signed_cert"]!);
    expect(key).toMatchObject({ algorithm: "RSA", rsa_bits: 2048 });
    expect(certificate).toMatchObject({
      validity_period_hours: 87_600,
      subject: [{ common_name: "files.example.org" }],
      dns_names: ["files.example.org"],
      ip_addresses: ["192.0.2.10", "2001:db8::10"],
      allowed_uses: ["digital_signature", "key_encipherment", "server_auth"],
      set_subject_key_id: true,
      early_renewal_hours: 720,
    });
  });

  test("changes only the certificate, not the key, when the name changes", () => {
    const [before, after] = [undefined, "files.example.org"].map((publicName) => {
      const stack = newStack();
      frontEnd({ host: { address: "192.0.2.10", publicName } }, "files", stack);
      return synthesize(stack).resource;
    });
    expect(after!["tls_private_key"]).toEqual(before!["tls_private_key"]);
    expect(after!["tls_self_signed_cert"]).not.toEqual(before!["tls_self_signed_cert"]);
  });

  test("uses existing TLS files by their paths, with nothing of them in state", () => {
    const stack = newStack();
    const material = TlsMaterial.fromFiles({ certificate: "/etc/le/fullchain.pem", key: "/etc/le/key.pem" });
    const files = frontEnd({ mode: Mode.tls({ material }) }, "files", stack);
    expect(files.tls).toMatchObject({
      certificate: "/etc/le/fullchain.pem",
      key: "/etc/le/key.pem",
      dhparam: "/etc/portico/tls/dhparam2048.pem",
    });
    expect(Object.keys(synthesize(stack).resource)).toEqual(["local_file"]);
    expect(synthesizedFile(files, "/etc/systemd/system/portico.service").content).toContain(
      "LoadCredential=key.pem:/etc/le/key.pem\n",
    );
    const without = TlsMaterial.fromFiles({ certificate: "/c.pem", key: "/k.pem", dhparam: false });
    expect(
      renderProxyConfig(frontEnd({ mode: Mode.tls({ material: without }) })).listeners[1]!.tls,
    ).not.toHaveProperty("dhparam");
  });

  test("holds two front ends, and a second one changes nothing about the first", () => {
    const alone = newStack();
    frontEnd({}, "files", alone);
    const both = newStack();
    frontEnd({}, "files", both);
    const host = new Host(both, "other-host", {
      address: "192.0.2.11",
      delivery: Delivery.local({ root: "/mnt/other" }),
    });
    const other = frontEnd({ host, mode: Mode.plain() }, "other", both);
    const { resource } = synthesize(both);
    const names = Object.values(resource["local_file"]!).map((f) => f.filename as string);
    expect(new Set(names).size).toBe(names.length);
    expect(synthesizedFile(other, "/etc/portico/portico.json").filename).toBe(
      "/mnt/other/etc/portico/portico.json",
    );
    for (const [type, byId] of Object.entries(synthesize(alone).resource))
      expect(resource[type]).toMatchObject(byId);
  });

  test("keeps a relative root relative, so that the stack is the same in every checkout", () => {
    const host = { address: "192.0.2.10", delivery: Delivery.local({ root: "./out/host" }) };
    expect(synthesizedFile(frontEnd({ host }), "/etc/portico/portico.json").filename).toBe(
      "${path.module}/../../../out/host/etc/portico/portico.json",
    );
  });

  test("copies the runtime under a path that changes with its content", () => {
    const runtime = synthesizedFile(frontEnd(), "/usr/lib/portico/portico.mjs");
    expect(runtime.source).toMatch(/^assets\/files_Service_Runtime_Asset_\w+\/[0-9A-F]{32}\/stacks\.ts$/);
    const other = frontEnd({ service: { runtimeBundle: join(__dirname, "host.test.ts") } });
    expect(synthesizedFile(other, "/usr/lib/portico/portico.mjs").source).not.toBe(runtime.source);
  });

  test("has outputs on request", () => {
    const stack = newStack();
    const host = { address: "9.9.9.9", ipv6Address, publicName: "files.example.org" };
    frontEnd({ host, outputs: true }, "files", stack);
    const outputs = Object.values(synthesize(stack).output!);
    expect(outputs.map(({ description }) => description)).toEqual([
      "DNS records to create; only for public addresses.",
      "TCP ports that the network reaches.",
      "TCP ports that only the host itself may reach.",
      "Ports that a NAT router has to forward to the host.",
      "Where users find the application.",
    ]);
    expect(outputs.map((o) => o.value)).toEqual([
      [{ name: "files.example.org", type: "A", value: "9.9.9.9" }],
      [22, 80, 443],
      [3306, 8000, 8080, 8082],
      [],
      "https://files.example.org/sync/",
    ]);
    const silent = newStack();
    frontEnd({}, "files", silent);
    expect(synthesize(silent).output).toBeUndefined();
  });
});

describe("composition", () => {
  test("a server name may come from another resource", () => {
    const stack = newStack();
    const publicName = new TerraformVariable(stack, "name", { type: "string" }).stringValue;
    const files = frontEnd({ host: { address: "192.0.2.10", publicName } }, "files", stack);
    const { resource } = synthesize(stack);
    const config = synthesizedFile(files, "/etc/portico/portico.json");
    expect(config.content).toBeUndefined();
    expect(config.placeholder).toContain('"host": ${jsonencode(var.name)}');
    expect(config.placeholder).toMatch(/"serverNames": \[\n\s+\$\{jsonencode\(var\.name\)\}\n\s+\]/);
    expect(config.placeholder).toContain('"url": "http://127.0.0.1:8000"');
    // What cannot be checked here is checked on the host.
    expect(files.proxy.configFile.lateValues).toMatchObject([
      {
        path: "stack/files/Host.publicName",
        code: "host.bad-name",
        message: "is not a domain name in lower case, without a port",
        fix: "Use a lower-case domain name, or leave the field out.",
      },
    ]);
    const settings = synthesizedFile(
      files,
      "/usr/share/portico/application-settings/web-application-settings.py",
    );
    expect(settings.placeholder).toContain(
      `FILE_SERVER_ROOT = 'https://\${can(regex(":", var.name)) ? join("", ["[", var.name, "]"]) : var.name}/synchttp'\n`,
    );
    const [certificate] = Object.values(resource["tls_self_signed_cert"]!);
    expect(certificate.dns_names).toEqual(["${var.name}"]);
    expect(renderProxyConfig(files).virtualServers[1]!.serverNames).toEqual([
      expect.stringMatching(/^portico-token/),
    ]);
  });

  test("ports, addresses and directories may come from other resources", () => {
    const stack = newStack();
    const text = new TerraformVariable(stack, "text", { type: "string" }).stringValue;
    const number = new TerraformVariable(stack, "port", { type: "number" }).numberValue;
    const files = frontEnd(
      {
        host: { address: text },
        mode: Mode.plain({ publicPort: number }),
        application: Application.fileSync({ installDirectory: text }),
        upstreams: {
          web: { url: `http://${text}:9000`, readTimeoutMs: number },
          webdav: { url: `http://127.0.0.1:${number}` },
        },
      },
      "files",
      stack,
    );
    synthesize(stack);
    expect(files.loopbackPorts).toEqual([3306, 8082]);
    const { placeholder } = synthesizedFile(files, "/etc/portico/portico.json");
    expect(placeholder).toContain(
      '"url": "http://${trimsuffix(trimprefix(jsonencode(var.text), "\\""), "\\"")}:9000"',
    );
    expect(placeholder).toContain('"readTimeoutMs": ${jsonencode(var.port)}');
    expect(placeholder).toContain(
      '"url": "http://127.0.0.1:${trimsuffix(trimprefix(jsonencode(var.port), "\\""), "\\"")}"',
    );
    expect(placeholder).toContain(
      '"directory": "${trimsuffix(trimprefix(jsonencode(var.text), "\\""), "\\"")}/media"',
    );
    const daemon = synthesizedFile(files, "/usr/share/portico/application-settings/network-daemon.conf");
    expect(daemon.placeholder).toMatch(
      /^\[General\]\nSERVICE_URL = http:\/\/\$\{.*: var\.text\}\$\{\(var\.port == 80\) \? "" : .*\}\/sync\n$/,
    );
  });

  test("a further name twice is refused beside a name that is not known", () => {
    const stack = newStack();
    const publicName = new TerraformVariable(stack, "name", { type: "string" }).stringValue;
    const host = { address: "192.0.2.10", publicName };
    const additionalServerNames = ["www.example.org", "www.example.org"];
    expect(problemsOf(() => frontEnd({ host, additionalServerNames }, "files", stack))).toMatchObject([
      {
        path: "stack/files.additionalServerNames[1]",
        allowed: "names other than those of the host, each once",
      },
    ]);
  });

  test("a mistake next to an unknown value is still found", () => {
    const stack = newStack();
    const publicName = new TerraformVariable(stack, "name", { type: "string" }).stringValue;
    const files = frontEnd({ host: { address: "192.0.2.10", publicName } }, "files", stack);
    files.site.virtualServer.addRoute("again", {
      path: "/sync",
      match: "prefix",
      action: Action.respond(200),
    });
    expect(() => synthesize(stack)).toThrow(/config\.duplicate-route/);
  });

  test("every part can be added to, replaced and reached", () => {
    const stack = newStack();
    const files = frontEnd({}, "files", stack);
    files.site.virtualServer.addRoute("health", { path: "/health", action: Action.respond(204) });
    files.site.virtualServer.node.tryRemoveChild("webdav");
    Aspects.of(files).add({
      visit: (node) => {
        if (node === files.proxy.configFile)
          files.proxy.configFile.resource.addOverride("file_permission", "0640");
      },
    });
    files.tls!.selfSigned!.privateKey.rsaBits = 4096;
    const { resource } = synthesize(stack);
    expect(Object.values(resource["tls_private_key"]!)[0].rsa_bits).toBe(4096);
    expect(synthesizedFile(files, "/etc/portico/portico.json").mode).toBe("0640");
    expect(renderProxyConfig(stack).virtualServers[2]!.routes.map((r) => r.name)).toEqual([
      "web",
      "fileServer",
      "media",
      "page",
      "health",
    ]);
  });

  test.each([
    [Mode.tls(), ["default", "redirect", "application"]],
    [Mode.plain(), ["default", undefined, "application"]],
  ])("its virtual servers are members: %#", (mode, ids) => {
    const application = Application.fileSync({ mediaDirectory: "/srv/media" });
    const props = { mode, serverNames: ["files.example.org"], application };
    const url = "http://192.0.2.30:8000";
    const upstreams = { web: { url }, webdav: { url }, fileServer: { url } };
    const both = [frontEnd({ mode }), new ContainerFrontEnd(newStack(), "sync", { ...props, upstreams })];
    for (const made of both) {
      const servers = [made.defaultServer, made.site.redirect, made.site.virtualServer];
      expect(servers.map((server) => server?.node.id)).toEqual(ids);
      expect(made.proxy.virtualServers).toEqual(servers.filter((server) => server !== undefined));
    }
  });

  test("text that looks like a Terraform template is written as it is", () => {
    const files = frontEnd({ defaultPage: "<p>${var.x} %{if} $${y}</p>" });
    const synthesized = JSON.stringify(
      JSON.parse(Testing.synth(files.node.root.node.findChild("stack") as never)),
    );
    expect(synthesized).toContain("<p>$${var.x} %%{if} $$${y}</p>");
    expect(synthesizedFile(files, "/usr/share/portico/default/index.html").content).toBe(
      "<p>${var.x} %{if} $${y}</p>",
    );
  });
});

describe("what activation knows of the host", () => {
  const host = { address: "192.0.2.10", ipv6Address };
  const described = (props: Partial<FileSyncFrontEndProps>) => {
    const { files: _, config: _config, version: _version, ...rest } = frontEnd(props).activation!.deployment;
    return rest;
  };
  const services = { proxy: { service: "portico.service", socket: "portico.socket" } };

  test("is little if nothing is given", () => {
    const {
      trees,
      rows,
      network,
      expect: _,
      ...rest
    } = described({ host: { address: "192.0.2.10" }, activation: {} });
    expect(rest).toEqual({ services: { ...services, daemons: [] } });
    expect(trees).toMatchObject([
      { path: "/srv/sync/media", code: "media-permissions", fix: false },
      { path: "/srv/sync/media/avatars", code: "avatar", fix: false },
    ]);
    expect(rows!.map(({ code }) => code)).toEqual([
      "media-permissions",
      "avatar",
      "web-application",
      "public-urls",
    ]);
    expect(network!.addresses).toEqual(["192.0.2.10"]);
  });

  test("is all that is given", () => {
    const files = { networkDaemon: "/s/n.conf", webApplication: "/s/w.py", fileServer: "/s/f.conf" };
    const units = { webApplication: "web.service", fileServer: "files.service", webdav: "dav.service" };
    const database = { host: "db.example.org", port: 3306, name: "web", user: "reader" };
    const probe = { enabled: false, imagePath: "img/a.png", timeoutSeconds: 5 };
    const given = { settings: { apply: true }, database, probe };
    const {
      settings,
      trees,
      rows: _rows,
      network,
      expect: _,
      ...rest
    } = described({
      host,
      application: Application.fileSync({
        ...{ mediaDirectory: "/srv/media", avatarDirectory: "/srv/avatars" },
        ...{ units, settings: { files }, fixMedia: true },
      }),
      activation: { ...given, requireCertificate: false },
    });
    expect(settings!.files.map(({ name, path }) => [name, path])).toEqual([
      ["network-daemon", "/s/n.conf"],
      ["web-application", "/s/w.py"],
      ["file-server", "/s/f.conf"],
    ]);
    const url = { name: "SERVICE_URL", value: "https://192.0.2.10/sync", code: "public-urls", stored: true };
    expect(settings).toMatchObject({ files: [{ items: [url] }, {}, {}], apply: true });
    expect(trees).toMatchObject([
      { path: "/srv/media", fix: true },
      { path: "/srv/avatars", fix: true },
    ]);
    expect(network).toMatchObject({ addresses: ["192.0.2.10", ipv6Address], exposedPorts: [22, 80, 443] });
    const daemons = [
      { unit: "files.service", restartOn: ["network-daemon", "file-server"], domainChange: "restart" },
      { unit: "dav.service" },
      {
        unit: "web.service",
        restartOn: ["network-daemon", "web-application"],
        code: "web-application",
        command: expect.objectContaining({ never: expect.stringContaining("fastcgi") }),
      },
    ];
    expect(rest).toEqual({ services: { ...services, daemons }, database, probe, requireCertificate: false });
  });
});

describe("application settings", () => {
  const settings = (more: Partial<FileSyncFrontEndProps>) => frontEnd(more).site.settings.values;

  test("follow from the routes' public URL (service 2.1)", () => {
    expect(settings({ mode: Mode.plain() })).toEqual({
      serviceUrl: "http://192.0.2.10/sync",
      fileServerRoot: "http://192.0.2.10/synchttp",
      serveStatic: false,
      mediaUrl: "/syncmedia/",
      siteRoot: "/sync/",
      loginUrl: "/sync/accounts/login/",
      compressUrl: "/syncmedia/",
      staticUrl: "/syncmedia/assets/",
      enableSettingsViaWeb: false,
      csrfTrustedOrigins: ["http://192.0.2.10"],
      fileServerHost: "127.0.0.1",
      fileServerPort: 8082,
    });
  });

  test("trust every origin by which the application is reached", () => {
    expect(
      settings({ host: { address: "192.0.2.10", ipv6Address }, mode: Mode.tls({ publicPort: 8443 }) }),
    ).toMatchObject({
      serviceUrl: "https://192.0.2.10:8443/sync",
      csrfTrustedOrigins: ["https://192.0.2.10:8443", "https://[2001:db8::10]:8443"],
    });
  });

  test("write the port that clients use, unless it is the scheme's own", () => {
    const url = (mode: Mode): string => frontEnd({ mode }).site.url;
    expect(url(Mode.plain())).toBe("http://192.0.2.10/sync/");
    expect(url(Mode.plain({ httpPort: 81 }))).toBe("http://192.0.2.10:81/sync/");
    expect(url(Mode.plain({ httpPort: 81, publicPort: 80 }))).toBe("http://192.0.2.10/sync/");
    expect(url(Mode.tls({ httpsPort: 8443 }))).toBe("https://192.0.2.10:8443/sync/");
    expect(url(Mode.tls({ httpsPort: 8443, publicPort: 443 }))).toBe("https://192.0.2.10/sync/");
  });

  test("let the file server listen at the address of its upstream", () => {
    const at = (url: string) => settings({ upstreams: { fileServer: { url } } });
    expect(at("http://localhost:9082")).toMatchObject({ fileServerHost: "127.0.0.1", fileServerPort: 9082 });
    expect(at("http://[::1]")).toMatchObject({ fileServerHost: "::1", fileServerPort: 80 });
  });

  test("include the start command only if one is given", () => {
    const path = "/usr/share/portico/application-settings/web-application.service.conf";
    const given = frontEnd({
      application: Application.fileSync({
        installDirectory: "/srv/sync",
        settings: { startCommand: ["/srv/sync/web.sh", "start"], enableSettingsViaWeb: true },
      }),
    });
    expect(synthesizedFile(given, path).content).toBe(
      "[Service]\nExecStart=\nExecStart=/srv/sync/web.sh start\n",
    );
    expect(given.site.settings.values.enableSettingsViaWeb).toBe(true);
    expect(synthesizedFiles(frontEnd()).map((f) => f.path)).not.toContain(path);
  });
});

test("main.ts is the whole service in under 40 lines", () => {
  const main = resolve(__dirname, "../../main.ts");
  expect(readFileSync(main, "utf8").split("\n").length).toBeLessThan(40);
  const folder = mkdtempSync(join(tmpdir(), "portico-main-"));
  try {
    const runs = [{ PORTICO_MODE: "tls" }, { PORTICO_MODE: "plain", CDKTF_OUTDIR: "plain.out" }];
    const program = resolve(__dirname, "../../demo/runMain.ts");
    execFileSync(process.execPath, ["--require", require.resolve("tsx/cjs"), program, JSON.stringify(runs)], {
      cwd: folder,
      env: { ...process.env, PORTICO_ADDRESS: "127.0.0.1" },
      stdio: "pipe",
    });
    for (const { PORTICO_MODE, CDKTF_OUTDIR = "cdktf.out" } of runs) {
      const file = join(folder, CDKTF_OUTDIR, "stacks/portico/cdk.tf.json");
      const stack = JSON.parse(readFileSync(file, "utf8"));
      const written = Object.values(stack.resource.local_file) as { filename: string; content?: string }[];
      const config = written.find(
        (f) => f.filename === "${path.module}/../../../out/host/etc/portico/portico.json",
      )!;
      const parsed = parseConfigText(config.content!);
      expect(parsed.ok && parsed.value.listeners.map((l) => l.port)).toEqual(
        PORTICO_MODE === "tls" ? [80, 443] : [80],
      );
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test.each([
  ["/sync", ': "sync".'],
  ["//cloud-1/", ': "cloud-1".'],
  ["a/b", "."],
  ["/a/b/", "."],
  ["/", "."],
  ["a b", "."],
  ["a!", "."],
  ["!a", "."],
])("of the prefix %j the fix names the word, where there is one", (pathPrefix, end) => {
  expect(
    problemsOf(() =>
      frontEnd({ application: Application.fileSync({ installDirectory: "/srv/sync", pathPrefix }) }),
    ),
  ).toMatchObject([
    { path: "Application.fileSync.pathPrefix", fix: `Use the word alone, without slashes${end}` },
  ]);
});
