import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/host/activation/store.js";
import { awaitService } from "../../src/host/activation/verification.js";
import { expectedResponses } from "../../src/host/diagnosis/expectedResponses.js";
import { parseConfig, ProblemError, type RouteInput } from "../../src/model/index.js";
import { startEveryProtocol } from "../../testkit/everyProtocol.js";
import { nextEvent } from "../../testkit/waiting.js";
import { deploymentOf } from "../../testkit/deployment.js";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "portico-verification-"));
  mkdirSync(join(folder, "etc/portico"), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const routes: RouteInput[] = [{ name: "page", path: "/", action: { type: "respond", status: 200 } }];

/** Waits for a second for what the config on a host below the folder promises. */
function awaited(config: object, more: Parameters<typeof deploymentOf>[0] = {}) {
  writeFileSync(join(folder, "etc/portico/portico.json"), JSON.stringify(config));
  const deployment = deploymentOf({ probe: { enabled: true, timeoutSeconds: 1 }, ...more });
  return awaitService(openStore(folder), deployment, [], new AbortController().signal);
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
  let asks = 0;
  const server = createServer((_, response) => {
    asks++;
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
    expect(asks).toBeLessThanOrEqual(2 + (performance.now() - began) / 500);
  } finally {
    server.close();
  }
});
