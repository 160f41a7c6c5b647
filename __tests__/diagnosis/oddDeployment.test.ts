import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gather } from "../../src/diagnosis/gather.js";
import type { DeploymentInput } from "../../src/model/index.js";
import { siteConfig } from "../cli/siteConfig.js";

test("a SERVICE_URL that is no URL is no end of the diagnosis", async () => {
  const folder = mkdtempSync(path.join(tmpdir(), "portico doctor "));
  try {
    const configFile = path.join(folder, "portico.json");
    const deploymentFile = path.join(folder, "deployment.json");
    const config = "/etc/portico/portico.json";
    const file = (name: string): string => path.join(folder, name);
    const deployment: DeploymentInput = {
      version: 1,
      config,
      files: [{ path: config, mode: "0644", sha256: "0".repeat(64), role: "config" }],
      services: { proxy: { service: "portico.service", socket: "portico.socket" } },
      settings: {
        values: {
          serviceUrl: "files.example.org",
          fileServerRoot: "http://127.0.0.1/f",
          serveStatic: false,
          mediaUrl: "/m/",
          siteRoot: "/",
          loginUrl: "/l/",
          compressUrl: "/m/",
          staticUrl: "/m/",
          enableSettingsViaWeb: false,
          csrfTrustedOrigins: [],
          fileServerHost: "127.0.0.1",
          fileServerPort: 8082,
        },
        files: { networkDaemon: file("a"), webApplication: file("b"), fileServer: file("c") },
      },
    };
    writeFileSync(configFile, JSON.stringify(siteConfig({ mode: "plain" })));
    writeFileSync(deploymentFile, JSON.stringify(deployment));
    const gathered = await gather({
      deploymentFile,
      configFile,
      place: "elsewhere",
      connect: "127.0.0.1",
      publicAddresses: [],
      insecure: true,
      timeoutMs: 2_000,
    });
    expect(gathered).toMatchObject({ ok: true, value: { place: "elsewhere" } });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}, 30_000);
