import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/host/activation/store.js";
import { awaitService, failedBefore } from "../../src/host/activation/verification.js";
import { formatChecked } from "../../src/host/diagnosis/expected/liveCheck.js";
import { expectedResponses } from "../../src/host/diagnosis/expected/expectedResponses.js";
import { parseConfig, ProblemError, type ProxyConfigInput, type RouteInput } from "../../src/model/index.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { nextEvent } from "../../testkit/waiting.js";
import { configOf } from "../diagnosis/site.js";
import { deploymentOf } from "../../testkit/deployment.js";

let folder: string;
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), "portico-verification-"))));
afterEach(() => rmSync(folder, { recursive: true }));

const routes: RouteInput[] = [{ name: "page", path: "/", action: { type: "respond", status: 200 } }];

/** Waits for a second for what the config promises. */
function awaited(config: object, more: Parameters<typeof deploymentOf>[0] = {}) {
  return awaitService(openStore(folder), deployed(config, more), [], new AbortController().signal);
}

function deployed(config: object, more: Parameters<typeof deploymentOf>[0] = {}) {
  const deployment = deploymentOf({ probe: { enabled: true, timeoutSeconds: 1 }, ...more });
  return { deployment, config: configOf(config as ProxyConfigInput) };
}

test("a certificate that an authority has not issued yet is not a reason to roll back", async () => {
  // It serves with a certificate for another name.
  const front = await startEveryProtocol({ routes });
  const tls = { acme: { authority: "ca", names: ["example.org", "www.example.org"] } };
  const config = {
    version: 1,
    certificateAuthorities: [{ name: "ca", agreeToTerms: true }],
    listeners: [{ name: "https", address: "127.0.0.1", port: front.securePort, protocol: "https", tls }],
    virtualServers: [
      { name: "application", serverNames: ["example.org"], listeners: ["https"], default: true, routes },
    ],
  };
  try {
    const parsed = parseConfig(config);
    const subjects = parsed.ok ? expectedResponses(parsed.value, { expect: [] }).map(({ name }) => name) : [];
    expect(subjects).toEqual(["certificate for www.example.org"]);
    expect(await awaited(config, { expect: [] })).toEqual([]);
  } finally {
    await front.close();
  }
});

test("what does not respond as expected is asked twice a second at most", async () => {
  // A second request may ask for the body, which shows who responded.
  let asks = 0;
  let more = 0;
  const server = createServer(({ method }, response) => {
    if (method === "HEAD") asks++;
    else more++;
    response.writeHead(503).end();
  }).listen(0, "127.0.0.1");
  await nextEvent(server, "listening");
  const { port } = server.address() as AddressInfo;
  const config = {
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port, protocol: "http" }],
    virtualServers: [{ name: "a", serverNames: ["_"], listeners: ["http"], default: true, routes }],
  };
  const began = performance.now();
  try {
    await expect(awaited(config)).rejects.toThrow(ProblemError);
    expect(asks).toBeGreaterThan(0);
    expect(more).toBeLessThanOrEqual(asks);
    expect(asks).toBeLessThanOrEqual(2 + (performance.now() - began) / 500);
  } finally {
    server.close();
  }
});

test("what was wrong before in the same way is reported, and is not a reason to roll back", async () => {
  let status = 503;
  const server = createServer((_, response) => void response.writeHead(status).end()).listen(0, "127.0.0.1");
  await nextEvent(server, "listening");
  const { port } = server.address() as AddressInfo;
  const served = deployed({
    version: 1,
    listeners: [{ name: "http", address: "127.0.0.1", port, protocol: "http" }],
    virtualServers: [{ name: "a", serverNames: ["_"], listeners: ["http"], default: true, routes }],
  });
  const store = openStore(folder);
  const { signal } = new AbortController();
  try {
    const before = await failedBefore(store, served);
    const rows = await awaitService(store, served, [], signal, before);
    expect(rows.map(({ pass, asBefore }) => ({ pass, asBefore }))).toEqual([{ pass: false, asBefore: true }]);
    expect(rows.map(formatChecked).join()).toMatch(/^FAIL .* seen 503 \| the same before the activation/);
    status = 500;
    await expect(awaitService(store, served, [], signal, before)).rejects.toThrow(ProblemError);
    status = 200;
    const [row] = await awaitService(store, served, [], signal, before);
    expect(row).not.toHaveProperty("asBefore");
  } finally {
    server.close();
  }
});

test("without an image below a directory no image is requested, and nothing is rolled back", async () => {
  const media: RouteInput = {
    name: "media",
    path: "/media",
    action: { type: "staticFiles", directory: "/srv/media" },
  };
  const front = await startEveryProtocol({ routes: [media] });
  mkdirSync(join(folder, "srv/media"), { recursive: true });
  const expected = [
    { name: "an image", request: { server: "a", path: "/media/", file: "image" as const }, status: 200 },
  ];
  try {
    const rows = await awaited(
      {
        version: 1,
        listeners: [{ name: "http", address: "127.0.0.1", port: front.plainPort, protocol: "http" }],
        virtualServers: [
          { name: "a", serverNames: ["_"], listeners: ["http"], default: true, routes: [media] },
        ],
      },
      { expect: expected },
    );
    expect(rows.map(({ name, pass, seen }) => ({ name, pass, seen }))).toEqual([
      { name: "an image", pass: false, seen: "not probed" },
    ]);
  } finally {
    await front.close();
  }
});
