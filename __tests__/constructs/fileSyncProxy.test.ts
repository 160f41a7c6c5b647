import {
  Application,
  ContainerFrontEnd,
  type ContainerFrontEndProps,
  FrontEnd,
  Mode,
} from "../../src/index.js";
import { renderProxyConfig } from "../../src/testing/index.js";
import { sayings } from "../../testkit/sayings.js";
import { newStack, problemsOf } from "../../testkit/stacks.js";

const said = sayings("file-sync-proxy");

const PROPS = {
  mode: Mode.tls(),
  serverNames: ["files.example.org"],
  upstreams: {
    web: { url: "http://web.sync.svc:8000" },
    webdav: { url: "http://webdav.sync.svc:8080", idleTimeoutMs: 500 },
    fileServer: { url: "http://file-server.sync.svc:8082" },
  },
  application: Application.fileSync({ mediaDirectory: "/srv/media" }),
} satisfies ContainerFrontEndProps;

const configOf = (props: Partial<Omit<ContainerFrontEndProps, "upstreams">> = {}) =>
  renderProxyConfig(new ContainerFrontEnd(newStack(), "sync", { ...PROPS, ...props }));

test("in containers the service has the virtual servers and routes that it has on a host", () => {
  const host = new FrontEnd(newStack(), "files", {
    host: { address: "192.0.2.10", publicName: "files.example.org" },
    mode: Mode.tls(),
    application: Application.fileSync({ mediaDirectory: "/srv/media" }),
    service: { runtimeBundle: __filename },
  });
  const [here, there] = [configOf(), renderProxyConfig(host)];
  const withoutLogs = (config: typeof here) =>
    config.virtualServers.map((server) => ({
      ...server,
      routes: server.routes.map(({ accessLog: _, errorLog: __, ...route }) => route),
    }));
  expect(withoutLogs(here)).toEqual(withoutLogs(there));
  expect(here.upstreams.map(({ url: _, idleTimeoutMs: __, ...upstream }) => upstream)).toEqual(
    there.upstreams.map(({ url: _, idleTimeoutMs: __, ...upstream }) => upstream),
  );
});

test("error pages are those of the application's virtual server, wherever it runs", () => {
  const errorPages = [{ statuses: [502], html: "<p>{{status}}" }] as const;
  const pagesOf = ({ virtualServers }: ReturnType<typeof configOf>) =>
    Object.fromEntries(virtualServers.map((server) => [server.name, server.errorPages]));
  for (const mode of [Mode.plain(), Mode.tls()]) {
    const host = { address: "192.0.2.10", publicName: "files.example.org" };
    const service = { runtimeBundle: __filename };
    const props = { host, mode, errorPages, service };
    const files = new FrontEnd(newStack(), "files", {
      ...props,
      application: Application.fileSync({ mediaDirectory: "/srv/media" }),
    });
    const web = new FrontEnd(newStack(), "web", {
      ...props,
      application: Application.server("http://127.0.0.1:3000"),
    });
    for (const config of [configOf({ mode, errorPages }), renderProxyConfig(files), renderProxyConfig(web)]) {
      const { application, ...others } = pagesOf(config);
      expect(application).toEqual(errorPages);
      expect(Object.values(others).flat()).toEqual([]);
    }
  }
});

test.each([
  [
    Mode.tls(),
    [
      [8080, 80],
      [8443, 443],
    ],
  ],
  [
    Mode.tls({ publicPort: 8443 }),
    [
      [8080, 80],
      [8443, 8443],
    ],
  ],
  [Mode.plain(), [[8080, 80]]],
  [Mode.plain({ httpPort: 8000, publicPort: 80 }), [[8000, 80]]],
  [Mode.plain({ httpPort: 1023 }), [[9023, 1023]]],
  [Mode.plain({ httpPort: 1024 }), [[1024, 1024]]],
])("listeners are on ports above 1023 and published as the mode says: %#", (mode, ports) => {
  const { listeners } = configOf({ mode });
  expect(listeners.map(({ port, publishedPort }) => [port, publishedPort])).toEqual(ports);
});

test.each(["path", "absolute", "unchanged"] as const)(
  "the destination of a WebDAV request goes on as it says: %s",
  (webdavDestination) => {
    const { virtualServers } = configOf({
      application: Application.fileSync({ installDirectory: "/srv/sync", webdavDestination }),
    });
    const actions = virtualServers.flatMap(({ routes }) => routes.map(({ action }) => action));
    expect(actions).toContainEqual(expect.objectContaining({ destination: webdavDestination }));
  },
);

test("what the mode says of addresses and the PROXY protocol holds for its listeners", () => {
  const proxyProtocol = { from: ["10.0.0.0/8"] };
  const { listeners } = configOf({ mode: Mode.tls({ address: "127.0.0.1", proxyProtocol }) });
  expect(listeners).toMatchObject([
    { address: "127.0.0.1", proxyProtocol },
    { address: "127.0.0.1", proxyProtocol },
  ]);
});

test.each<[string, object, string]>([
  ["no name", { serverNames: [] }, "config.missing-field stack/sync.serverNames"],
  ["a name in upper case", { serverNames: ["Files"] }, "config.bad-server-name stack/sync.serverNames[0]"],
  ["no daemon", { upstreams: {} }, "config.missing-field stack/sync.upstreams.web"],
  [
    "an IPv6 address",
    { mode: Mode.tls({ ipv6Address: "2001:db8::1" }) },
    "config.bad-address stack/sync.mode",
  ],
])("refused: %s", (_, props, problem) => {
  const problems = said(problemsOf(() => configOf(props)));
  expect(problems.map(({ code, path }) => `${code} ${path}`)).toContain(problem);
});
