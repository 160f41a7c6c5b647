import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loopback, oneServerConfig } from "../../testkit/oneServer.js";
import type { ProxyConfig } from "../../src/model/index.js";
import { CertificateManager } from "../../src/runtime/supervisor/served/certificateManager.js";

/** How a master responds to requests for certificates by ACME that has none, or has them no more. */

const folder = mkdtempSync(join(tmpdir(), "portico-manager-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function parsed(...names: string[]): ProxyConfig {
  const tls = { acme: { authority: "ca", names } };
  return oneServerConfig({
    // Nothing listens there: what is asked is refused at once.
    certificateAuthorities: [{ name: "ca", directory: "https://127.0.0.1:1/dir", agreeToTerms: true }],
    listeners: [loopback("front", 443, names.length === 0 ? undefined : tls)],
    routes: [],
  });
}

const [WITHOUT, WITH] = [parsed(), parsed("a.example.net")];

/** A manager, and how it is told to look after the certificates of a config. */
function managing(directory: string | undefined, write: (level: string, message: string) => void = () => {}) {
  let config = WITHOUT;
  const logs = { write, warn: () => undefined };
  const manager = new CertificateManager(directory, logs, {
    loaded: () => ({ config, tls: {}, warnings: [] }),
    respondToChallenges: () => Promise.resolve(),
    install: () => Promise.resolve(),
  });
  const lookAfter = (next: ProxyConfig): void => {
    config = next;
    manager.lookAfter();
  };
  return { manager, lookAfter };
}

/** What it says to those who ask for all certificates, and for one. */
async function refusals(manager: CertificateManager) {
  const responses = [await manager.renew(undefined), await manager.renew("b.example.net")];
  return responses.flatMap((one) =>
    one.ok ? [] : one.problems.map(({ code, path, fix }) => ({ code, path, fix })),
  );
}

const refused = (code: string, fix: unknown) => ["", "b.example.net"].map((path) => ({ code, path, fix }));
const UNKNOWN = refused("acme.unknown-name", expect.any(String));

test("a master that has no certificates says so, and one that has left them to another says that", async () => {
  const { manager, lookAfter } = managing(folder);
  expect(await refusals(manager)).toEqual(UNKNOWN);
  lookAfter(WITHOUT);
  await manager.stop();
  expect(await refusals(manager)).toEqual(UNKNOWN);
  lookAfter(WITH);
  expect(await manager.renew("b.example.net")).toMatchObject({ problems: [{ allowed: "a.example.net" }] });
  expect(manager.status()).toMatchObject([{ names: ["a.example.net"], authority: "ca" }]);
  await manager.stop();
  expect(manager.status()).toEqual([]);
  expect(await refusals(manager)).toEqual(refused("acme.not-issued", "Run the command again."));
  // A successor that failed gives them back.
  lookAfter(WITHOUT);
  expect(await refusals(manager)).toEqual(UNKNOWN);
});

test("without a directory no authority is asked, which is said once", async () => {
  const lines: string[] = [];
  const write = (level: string, message: string): void => void lines.push(`${level} ${message}`);
  const { manager, lookAfter } = managing(undefined, write);
  for (const config of [WITHOUT, WITH, WITH]) lookAfter(config);
  expect(await refusals(manager)).toEqual(UNKNOWN);
  const why = /^warn no certificate is requested, .*: run `portico serve --state DIR`, or /;
  expect(lines).toEqual([expect.stringMatching(why)]);
});
