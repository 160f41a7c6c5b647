import { type EveryProtocol, startEveryProtocol } from "../../testkit/everyProtocol.js";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { expectedResponses } from "../../src/host/diagnosis/expected/expectedResponses.js";
import {
  Application,
  ContainerFrontEnd,
  type ContainerProxy,
  Delivery,
  FrontEndPair,
  Mode,
  type ReverseProxy,
  TlsMaterial,
} from "../../src/index.js";
import type { RouteInput } from "../../src/model/index.js";
import { renderProxyConfig, resolve } from "../../src/testing/index.js";
import { type FileSyncFrontEndProps, frontEnd, newStack, synthesize } from "../../testkit/stacks.js";

/** `rootRedirect`: where `/` leads, in the config, among the expected responses, and on the wire. */

function made(props: Partial<FileSyncFrontEndProps>) {
  const stack = newStack();
  const files = frontEnd(props, "files", stack);
  const written: { filename: string; content: string }[] = Object.values(
    synthesize(stack).resource.local_file!,
  );
  const page = written.find(({ filename }) => filename.endsWith("/index.html"))!.content;
  const config = renderProxyConfig(files.proxy);
  const rows = expectedResponses(config, {
    expect: files.proxy.virtualServers.flatMap((one) => one.expectedRows()),
  }).filter(({ name }) => name.startsWith("/ over"));
  return { stack, files, config, page, rows };
}

const NAME = "192.0.2.10";

const PLAIN = { mode: Mode.plain() };
const TLS = { mode: Mode.tls() };

test.each<[what: string, props: Partial<FileSyncFrontEndProps>, asked: string[], location: string]>([
  ["plain mode", PLAIN, [`http://${NAME}/`], `http://${NAME}/sync/`],
  ["TLS mode", TLS, [`http://${NAME}/`, `https://${NAME}/`], `https://${NAME}/sync/`],
  [
    "another prefix",
    { ...TLS, application: Application.fileSync({ installDirectory: "/srv/sync", pathPrefix: "cloud" }) },
    [`https://${NAME}/`],
    `https://${NAME}/cloud/`,
  ],
])("`/` leads to the application: %s", (_, props, asked, location) => {
  const { stack, files, page, rows } = made({ ...props, rootRedirect: true });
  for (const url of asked) expect(resolve(stack, url)).toMatchObject({ status: 302, location });
  expect(files.site.url).toBe(location);
  expect(page).toContain(`<a href="${location}">${location}</a>`);
  expect(rows.map(({ request: { scheme, host, path } }) => `${scheme}://${host}${path}`)).toEqual(
    expect.arrayContaining(asked),
  );
  for (const { expected } of rows) expect(JSON.stringify(expected)).toContain(location);
});

test.each([
  ["plain mode", PLAIN],
  ["TLS mode", TLS],
])("without it, `/` is a page, and nothing more is expected: %s", (_, props) => {
  const { page, config, rows } = made(props);
  expect(rows).toEqual([]);
  expect(page).not.toContain("href");
  const roots = config.virtualServers.flatMap(({ name, routes }) =>
    routes.filter(({ path }) => path === "/").map(({ action }) => `${name}: ${action.type}`),
  );
  expect(roots).toEqual(["default: staticFiles", "application: staticFiles"]);
});

const UPSTREAMS = {
  web: { url: "http://web" },
  webdav: { url: "http://dav" },
  fileServer: { url: "http://files" },
};
const machine = (address: string) => ({
  address,
  netmask: "255.255.255.0",
  interface: "eth0",
  delivery: Delivery.ssh({ hostKey: "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTY=" }),
});
const material = TlsMaterial.fromFiles({ certificate: "/etc/tls/chain.pem", key: "/etc/tls/key.pem" });

describe.each<[name: string, make: () => ReverseProxy | ContainerProxy]>([
  ["192.0.2.10", () => made({ ...TLS, rootRedirect: true }).files.proxy],
  [
    "files.example.org",
    () =>
      new ContainerFrontEnd(newStack(), "sync", {
        ...TLS,
        rootRedirect: true,
        serverNames: ["files.example.org"],
        upstreams: UPSTREAMS,
        application: Application.fileSync({ mediaDirectory: "/srv/media" }),
      }).proxy,
  ],
  [
    "192.0.2.20",
    () =>
      new FrontEndPair(newStack(), "pair", {
        hosts: [machine("192.0.2.11"), machine("192.0.2.12")],
        virtualAddress: "192.0.2.20",
        mode: Mode.tls({ material }),
        rootRedirect: true,
        application: Application.fileSync({ installDirectory: "/srv/sync" }),
        service: { runtimeBundle: __filename },
      }).frontEnds[1].proxy,
  ],
])("a whole front end at %s, on the wire", (name, make) => {
  let front: EveryProtocol;
  beforeAll(async () => {
    const { listeners, upstreams, virtualServers } = make().config;
    const unlogged = ({ accessLog: _, errorLog: __, ...route }: RouteInput): RouteInput => route;
    const servers = virtualServers.map((one) => ({ ...one, routes: one.routes.map(unlogged) }));
    front = await startEveryProtocol({
      routes: [],
      config: { listeners, upstreams, virtualServers: servers },
    });
  });
  afterAll(() => front.close());

  const SEEN = [302, `https://${name}/sync/`];

  test("over HTTP/1.1", async () => {
    const seen = await new Promise((done, fail) => {
      const options = { host: "127.0.0.1", port: front.plainPort, headers: { Host: name }, agent: false };
      httpRequest(options, (response: IncomingMessage) => {
        response.resume();
        done([response.statusCode, response.headers.location]);
      })
        .on("error", fail)
        .end();
    });
    expect(seen).toEqual(SEEN);
  });

  test("over HTTP/2", async () => {
    const seen = await new Promise((done, fail) => {
      const session = connect(`https://127.0.0.1:${front.securePort}`, { rejectUnauthorized: false });
      session.on("error", fail);
      const stream = session.request({ ":path": "/", ":authority": name });
      stream.on("error", fail).on("response", (head) => {
        done([head[":status"], head.location]);
        session.destroy();
      });
      stream.end();
    });
    expect(seen).toEqual(SEEN);
  });
});
