import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startProxy, type TestProxy } from "../../testkit/harness.js";
import { exchange, RawUpstream, responding } from "../../testkit/peers.js";
import type { RouteInput } from "../../src/model/index.js";
import { type Resolution, resolve } from "../../src/testing/index.js";
import { publicFolder } from "../../testkit/publicFolder.js";

/** `resolve` and the proxy itself, asked the same. */

const folder = publicFolder("portico-served-");
for (const name of ["a/index.html", "a/b c.txt", "a/é.txt", "a-side"]) {
  mkdirSync(join(folder, "a"), { recursive: true });
  writeFileSync(join(folder, name), join(folder, name));
}
const files = { type: "staticFiles", directory: join(folder, "a"), index: ["index.html"] } as const;
const routes: RouteInput[] = [
  { name: "segment", path: "/segment", action: files },
  { name: "prefix", path: "/prefix", match: "prefix", action: files },
  { name: "slash", path: "/slash/", action: files },
  { name: "exact", path: "/exact", match: "exact", action: files },
  { name: "root", path: "/root", action: { ...files, directory: "/" } },
  { name: "secure", path: "/secure", action: { type: "redirect" } },
  { name: "other", path: "/other", action: { type: "redirect", status: 307, scheme: "http", port: 8080 } },
  { name: "ipv6", path: "/ipv6", action: { type: "redirect", host: "2001:db8::1", port: 443 } },
  { name: "moved", path: "/moved", action: { type: "redirect", path: "/new", keep: "rest" } },
  { name: "asked", path: "/asked", action: { type: "redirect", path: "/new", keep: "query" } },
  { name: "fixed", path: "/fixed", action: { type: "respond", status: 410, body: "gone" } },
  { name: "small", path: "/small", requestBodyBytesMax: 4, action: { type: "respond", status: 200 } },
  {
    name: "proxied",
    path: "/proxied",
    action: { type: "proxy", upstream: "upstream", strip: "raw", slashRedirect: false },
  },
  { name: "whole", path: "/whole", action: { type: "proxy", upstream: "upstream" } },
  {
    name: "decoded",
    path: "/decoded",
    action: { type: "proxy", upstream: "upstream", strip: "nginx", slashRedirect: false },
  },
  { name: "renamed", path: "/renamed", action: { type: "proxy", upstream: "upstream", rewrite: "/ping" } },
];

const upstream = new RawUpstream(responding("HTTP/1.1 204 No Content\r\n\r\n"));
let proxy: TestProxy;

beforeAll(async () => {
  await upstream.listen();
  proxy = await startProxy({
    routes,
    upstreams: [{ name: "upstream", url: `http://127.0.0.1:${upstream.port}` }],
    config: { trustedProxies: ["::/0"] },
  });
});

afterAll(async () => {
  await proxy.close();
  await upstream.close();
  rmSync(folder, { recursive: true });
});

const targets = [
  ...["", "/", "/b%20c.txt", "/%C3%A9.txt", "/a/../b%20c.txt", "//b%20c.txt", "-side"].flatMap((rest) =>
    ["/segment", "/prefix", "/slash", "/exact"].map((path) => `GET ${path}${rest}`),
  ),
  `GET /root${folder}/a-side`,
  "HEAD /segment/b%20c.txt",
  ...["/segment/b%20c.txt", "/prefix-side", "/secure", "/fixed"].map((target) => `POST ${target}`),
  ...["/secure", "/other", "/ipv6"].flatMap((path) =>
    ["", "/", "/%41//b/../c?d=/e%20"].map((rest) => `GET ${path}${rest}`),
  ),
  ...["GET /fixed", "GET /none", "TRACE /fixed", "GET /../x", "GET /%zz"],
];

test.each(targets)("%s", async (line) => {
  const [method, target] = line.split(" ") as [string, string];
  const listener = proxy.config.listeners[0]!.name;
  const said = resolve(proxy.config, { method, url: `http://Files.example.org:8000${target}`, listener });
  const request = `${line} HTTP/1.1\r\nHost: Files.example.org:8000\r\nConnection: close\r\n\r\n`;
  const { status, headers, body } = await exchange(proxy.port, request);
  if (said.kind === "staticFile" && status === 301) {
    // Only the disk tells that a path without its slash is a directory.
    expect(said.file).toBe(files.directory);
    expect(headers.location).toBe(`${target}/`);
    return;
  }
  const expected: Record<Resolution["kind"], unknown> = {
    staticFile: said.kind === "staticFile" && { status: 200, body: method === "HEAD" ? "" : said.file },
    redirect: said.kind === "redirect" && { status: said.status, location: said.location },
    respond: said.kind === "respond" && { status: said.status, body: said.body },
    error: said.kind === "error" && { status: said.status },
    proxy: "none of the targets",
    status: "none of the targets",
  };
  const file = Buffer.from(body, "latin1").toString("utf8");
  expect({ status, location: headers.location, body: file }).toMatchObject(expected[said.kind] as object);
});

test.each([4, 5])("a body of %i bytes where four are allowed", async (length) => {
  const headers = { "Content-Length": String(length) };
  const said = resolve(proxy.config, { method: "PUT", url: "http://x/small", headers });
  const request = `PUT /small HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n${"x".repeat(length)}`;
  const { status } = await exchange(proxy.port, request);
  expect("status" in said && said.status).toBe(status);
});

test.each(["proxied", "whole", "decoded", "renamed"])(
  "the target of a request to %s goes upstream",
  async (name) => {
    for (const rest of ["", "/", "/a%41/../b%20c?d=/e%20"]) {
      const said = resolve(proxy.config, { url: `http://x/${name}${rest}` });
      const seen = upstream.received.length;
      await exchange(proxy.port, `GET /${name}${rest} HTTP/1.1\r\nHost: x\r\n\r\n`);
      const [requestLine] = /^GET \S+ HTTP\/1\.1/m.exec(upstream.received.slice(seen))!;
      expect(said).toMatchObject({ kind: "proxy", requestLine });
    }
  },
);

test("a range of all IPv6 addresses does not trust IPv4 clients", async () => {
  const clientAddress = "127.0.0.1";
  const headers = { "X-Real-IP": "192.0.2.1" };
  const said = resolve(proxy.config, { url: "http://x/proxied", headers, clientAddress });
  await exchange(proxy.port, "GET /proxied HTTP/1.1\r\nHost: x\r\nX-Real-IP: 192.0.2.1\r\n\r\n");
  expect(upstream.connections[0]!.received).toContain("X-Real-IP: 127.0.0.1\r\n");
  expect(said).toMatchObject({ kind: "proxy", headers: { "x-real-ip": clientAddress } });
  const ipv6 = resolve(proxy.config, { url: "http://x/proxied", headers, clientAddress: "2001:db8::1" });
  expect(ipv6).toMatchObject({ headers: { "x-real-ip": "192.0.2.1" } });
});

test.each<[string, string, Record<string, string>, boolean]>([
  ["by a GET", "GET", { Connection: "Upgrade", Upgrade: "WebSocket" }, true],
  ["with other options", "GET", { Connection: "keep-alive, upgrade", Upgrade: "websocket" }, true],
  ["with an empty body", "GET", { Connection: "upgrade", Upgrade: "websocket", "Content-Length": "0" }, true],
  ["without Connection: upgrade", "GET", { Upgrade: "websocket" }, false],
  ["by another method", "POST", { Connection: "upgrade", Upgrade: "websocket" }, false],
  ["with a body", "GET", { Connection: "upgrade", Upgrade: "websocket", "Content-Length": "2" }, false],
  [
    "with a body in chunks",
    "GET",
    { Connection: "upgrade", Upgrade: "websocket", "Transfer-Encoding": "chunked" },
    false,
  ],
  ["for another protocol", "GET", { Connection: "upgrade", Upgrade: "h2c" }, false],
])("a WebSocket is asked for %s", async (_what, method, headers, forwarded) => {
  const resolved = resolve(proxy.config, { method, url: "http://x/proxied", headers });
  expect("headers" in resolved && resolved.headers.upgrade).toBe(forwarded ? "websocket" : undefined);
  const fields = Object.entries({ Host: "x", ...headers }).map(([name, value]) => `${name}: ${value}\r\n`);
  const body = { "2": "ab", chunked: "0\r\n\r\n" }[
    headers["Content-Length"] ?? headers["Transfer-Encoding"] ?? ""
  ];
  const seen = upstream.received.length;
  await exchange(proxy.port, `${method} /proxied HTTP/1.1\r\n${fields.join("")}\r\n${body ?? ""}`);
  expect(/^upgrade: websocket\r$/im.test(upstream.received.slice(seen))).toBe(forwarded);
});
