import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type RequestListener, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type CheckedResponse, checkLive } from "../../src/host/diagnosis/expected/liveCheck.js";
import { expectedResponses } from "../../src/host/diagnosis/expected/expectedResponses.js";
import type { RouteInput, UpstreamInput } from "../../src/model/index.js";
import { type ProxyOptions, startProxy } from "../../testkit/harness.js";
import { freePorts } from "../../testkit/ports.js";

/** Whether a check of a running proxy tells the proxy's own refusals from responses of an application, and says why. */

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const cleanup of cleanups.splice(0)) cleanup();
});

/** What the check says of the only route. */
async function checked(options: ProxyOptions, after?: () => void): Promise<CheckedResponse> {
  const proxy = await startProxy(options);
  try {
    after?.();
    const rows = expectedResponses(proxy.config);
    const [row, ...others] = await checkLive(rows, { timeoutMs: 10_000, insecure: true });
    expect(others).toEqual([]);
    return row!;
  } finally {
    await proxy.close();
  }
}

const proxied = (upstream: Omit<UpstreamInput, "name">): ProxyOptions => ({
  upstreams: [{ name: "web", ...upstream } as UpstreamInput],
  routes: [{ name: "all", path: "/", action: { type: "proxy", upstream: "web" } }],
});

async function application(handle: RequestListener): Promise<Server> {
  const server = createServer(handle).listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanups.push(() => server.close());
  return server;
}

const urlOf = (server: Server): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

test("a route whose servers are all down fails, and the cause names each server", async () => {
  const urls = (await freePorts(2)).map((port) => `http://127.0.0.1:${port}`);
  const row = await checked(proxied({ servers: urls.map((url) => ({ url })) }));
  const at = urls.map((url) => `ECONNREFUSED at ${url}`).join(", ");
  expect(row).toMatchObject({
    pass: false,
    seen: "503 from the proxy, Server: portico",
    cause: `no server of upstream web is up, tried from this machine: nothing listens at the upstream's address (${at})`,
    fix: "start the service, or correct port or path in the upstream's `url`.",
  });
});

test.each([502, 503, 504])("an application's own %d is not the proxy's", async (status) => {
  const server = await application((_, response) => response.writeHead(status).end("<center>nginx</center>"));
  const row = await checked(proxied({ url: urlOf(server) }));
  // An application that is in maintenance responds.
  if (status === 503) expect(row).toMatchObject({ pass: true, seen: "503, Server: portico" });
  else
    expect(row).toMatchObject({
      pass: false,
      cause: `the upstream ${urlOf(server)} itself responds with ${status}`,
    });
});

test("a name that does not resolve is the cause, and not a refused connection", async () => {
  const row = await checked(proxied({ url: "http://app.portico.invalid:3000" }));
  expect(row.pass).toBe(false);
  expect(row.cause).toMatch(
    /^upstream web cannot be reached, tried from this machine, by its resolver: (?:the upstream's name has no address \(ENOTFOUND|.*\(EAI_AGAIN) at http:\/\/app\.portico\.invalid:3000\)$/,
  );
});

test("an upstream that accepts connections and ends them does not refuse them", async () => {
  const server = await application((request) => request.socket.destroy());
  const row = await checked(proxied({ url: urlOf(server) }));
  expect(row.cause).toBe(
    "upstream web accepts connections from here, but the proxy gets no complete response",
  );
});

test("of a socket that accepts connections from here, the fix names the right to write to the socket", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-behind-"));
  const path = join(folder, "web.sock");
  const server = createServer((request) => request.socket.destroy()).listen(path);
  await once(server, "listening");
  cleanups.push(() => {
    server.close();
    rmSync(folder, { recursive: true });
  });
  const row = await checked(proxied({ url: `unix:${path}` }));
  expect(row.fix).toMatch(/^Let the proxy's user write to the socket: .*\. Read the proxy's error log: /);
});

test("the cause of an application's definition is followed by the one that was seen", async () => {
  const proxy = await startProxy(proxied({ url: "http://127.0.0.1:1" }));
  try {
    const asked = [
      {
        name: "web",
        request: { server: "application", path: "/" },
        from: "upstream" as const,
        causes: [{ evidence: { status: [502] }, message: "the daemon does not respond" }],
      },
    ];
    const rows = expectedResponses(proxy.config, { expect: asked });
    const [row] = await checkLive(rows, { timeoutMs: 10_000, insecure: true });
    expect(row!.cause).toMatch(
      /^the daemon does not respond: upstream web cannot be reached, .*ECONNREFUSED/,
    );
  } finally {
    await proxy.close();
  }
});

describe("files", () => {
  let directory: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "portico-behind-"));
    mkdirSync(join(directory, "site"), { mode: 0o755 });
    cleanups.push(() => rmSync(directory, { recursive: true }));
  });
  const route = (): ProxyOptions => ({
    routes: [
      {
        name: "all",
        path: "/",
        action: { type: "staticFiles", directory: join(directory, "site"), index: ["index.html"] },
      } satisfies RouteInput,
    ],
  });

  test.each<
    [what: string, status: number, prepare: () => void, after: () => void, cause: (site: string) => string]
  >([
    ["is empty", 403, () => undefined, () => undefined, (site) => `the directory ${site} is empty`],
    [
      "is gone",
      404,
      () => undefined,
      () => rmSync(join(directory, "site"), { recursive: true }),
      (site) => `the directory ${site} does not exist`,
    ],
    [
      "has no index",
      403,
      () => writeFileSync(join(directory, "site", "a"), ""),
      () => undefined,
      (site) => `the directory ${site} has no file index.html, or cannot be read by others`,
    ],
  ])("files are missing because the directory %s: %d", async (_what, status, prepare, after, cause) => {
    prepare();
    const row = await checked(route(), after);
    expect(row).toMatchObject({ pass: false, seen: String(status), cause: cause(join(directory, "site")) });
  });
});
