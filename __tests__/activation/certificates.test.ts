import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { awaitCertificates } from "../../src/activation/certificates.js";
import type { Store } from "../../src/activation/store.js";
import type { Deployment } from "../../src/model/index.js";
import type { ListedCertificate } from "../../src/runtime/process/certificateList.js";
import { ControlServer } from "../../src/runtime/process/control.js";

/** How long an activation waits for certificates, by what a running master says of them. */

const runtime = `portico-test-${process.pid}`;
let folder: string;
let control: ControlServer;
let certificates: readonly ListedCertificate[];
const path = process.env["PATH"];

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "portico-certificates-"));
  const systemctl = join(folder, "systemctl");
  writeFileSync(systemctl, `#!/bin/sh\necho ${runtime}\n`);
  chmodSync(systemctl, 0o755);
  process.env["PATH"] = `${folder}:${path}`;
  mkdirSync(`/run/${runtime}`);
  control = await ControlServer.open(`/run/${runtime}/control.sock`, () =>
    Promise.resolve({ ok: true, value: { message: "certificates", warnings: [], certificates } }),
  );
  const listeners = [
    {
      name: "https",
      address: "127.0.0.1",
      port: 8443,
      protocol: "https",
      tls: { acme: { authority: "ca", names: ["example.org"] } },
    },
  ];
  const config = {
    version: 1,
    certificateAuthorities: [{ name: "ca", agreeToTerms: true, holderAddress: "192.0.2.20" }],
    listeners,
    virtualServers: [{ name: "site", serverNames: ["_"], listeners: ["https"], default: true, routes: [] }],
  };
  writeFileSync(join(folder, "portico.json"), JSON.stringify(config));
});

afterAll(() => {
  process.env["PATH"] = path;
  control.close();
  for (const one of [folder, `/run/${runtime}`]) rmSync(one, { recursive: true });
});

const listed = (more: Partial<ListedCertificate>): ListedCertificate => ({
  names: ["example.org"],
  listeners: ["https"],
  source: "temporary",
  from: "ca",
  issuer: "temporary",
  notAfter: Date.now() + 86_400_000,
  state: "none",
  ...more,
});

const ELSEWHERE = listed({ waitsFor: "192.0.2.20" });
const ISSUED = listed({ source: "acme", state: "valid" });
const REFUSED = listed({
  state: "waiting",
  nextAttempt: Date.now() + 3_600_000,
  lastError: {
    code: "connection",
    message: "example.org: no connection",
    fix: "Open port 80.",
    at: Date.now() + 60_000,
  },
});
const WAITS =
  "WAIT  certificate for example.org: waiting for the address 192.0.2.20 | until the host that has it shares its certificate, a temporary one serves";

async function awaited(requireCertificate: boolean): Promise<{ rows: string[]; ms: number }> {
  const rows: string[] = [];
  const deployment = {
    config: join(folder, "portico.json"),
    services: { proxy: { service: "portico.service" } },
    requireCertificate,
  } as Deployment;
  const store = { onHost: (file: string) => file } as Store;
  const start = performance.now();
  await awaitCertificates(store, deployment, new AbortController().signal, (row) => rows.push(row));
  return { rows, ms: performance.now() - start };
}

/** What the master says from then on. */
const later = (ms: number, ...now: ListedCertificate[]): unknown =>
  setTimeout(() => (certificates = now), ms);

test("a host without the address that decides who asks is reported, and not waited for", async () => {
  certificates = [ELSEWHERE];
  expect(await awaited(false)).toMatchObject({ rows: [WAITS] });
});

describe("where certificates are required", () => {
  const FOR = "waiting for the certificate for example.org";

  test("a host without the address does not fail: after some seconds its certificate is the other's affair", async () => {
    certificates = [ELSEWHERE];
    const { rows, ms } = await awaited(true);
    expect(rows).toEqual([FOR, WAITS]);
    expect(ms).toBeGreaterThan(9_000);
  }, 20_000);

  test("a host that gets the address meanwhile is waited for", async () => {
    certificates = [ELSEWHERE];
    later(1_000, listed({ state: "ordering" }));
    later(2_000, ISSUED);
    expect(await awaited(true)).toMatchObject({ rows: [FOR] });
  });

  test("one that gets the address, and whom the authority refuses, fails", async () => {
    certificates = [ELSEWHERE];
    later(1_000, REFUSED);
    await expect(awaited(true)).rejects.toMatchObject({ problems: [{ code: "activation.no-certificate" }] });
  });
});
