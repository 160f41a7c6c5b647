import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openStore } from "../../src/activation/store.js";
import { awaitService } from "../../src/activation/verification.js";
import { expectedResponses } from "../../src/diagnosis/expectedResponses.js";
import { parseConfig, type RouteInput } from "../../src/model/index.js";
import { startEveryProtocol } from "../kit/everyProtocol.js";
import { deploymentOf } from "../diagnosis/site.js";

test("a certificate that an authority has not issued yet is not a reason to roll back", async () => {
  const folder = mkdtempSync(join(tmpdir(), "portico-verification-"));
  const routes: RouteInput[] = [{ name: "page", path: "/", action: { type: "respond", status: 200 } }];
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
  mkdirSync(join(folder, "etc/portico"), { recursive: true });
  writeFileSync(join(folder, "etc/portico/portico.json"), JSON.stringify(config));
  const deployment = deploymentOf({ expect: [], probe: { enabled: true, timeoutSeconds: 1 } });
  try {
    const parsed = parseConfig(config);
    const subjects = parsed.ok ? expectedResponses(parsed.value, { expect: [] }).map(({ name }) => name) : [];
    expect(subjects).toEqual(["certificate for www.example.org"]);
    expect(await awaitService(openStore(folder), deployment, [], new AbortController().signal)).toEqual([]);
  } finally {
    await front.close();
    rmSync(folder, { recursive: true });
  }
});
