import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { build } from "esbuild";
import type { ProxyConfigInput } from "../../src/model/index.js";
import {
  proxyServiceUnit,
  proxySocketUnit,
  type ProxyUnitsInput,
  renderUnit,
} from "../../src/render/index.js";
import type { LoadOptions, LoadReport } from "../../testkit/load/steadyLoad.js";
import { type Issued, issue } from "../../testkit/certificates.js";
import { bootHost, type HostOptions, type TestHost } from "./harness/index.js";
import { copyOfBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";

/** A host with portico as its units run it, an application after it, and load from outside. */
export class PorticoHost {
  private constructor(
    readonly host: TestHost,
    private readonly folder: string,
  ) {}

  /** Boots it, with everything in place and running. */
  static async boot(options: HostOptions): Promise<PorticoHost> {
    const folder = mkdtempSync(join(tmpdir(), "portico-units-"));
    await copyOfBundle(join(folder, "portico.mjs"));
    const load = {
      entryPoints: [join(__dirname, "../../testkit/load/main.ts")],
      bundle: true,
      platform: "node" as const,
    };
    await build({ ...load, format: "cjs", outfile: join(folder, "load.js") });
    const portico = new PorticoHost(await bootHost(options), folder);
    try {
      await portico.deploy();
    } catch (error) {
      await portico.remove();
      throw error;
    }
    return portico;
  }

  async remove(): Promise<void> {
    await this.host.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  readonly units: ProxyUnitsInput = {
    nodePath: "/usr/lib/portico/node",
    runtime: "/usr/lib/portico/portico.mjs",
    config: "/etc/portico/portico.json",
    logDirectory: "/var/log/portico",
    listeners: [80, 443].flatMap((port) => ["0.0.0.0", "::"].map((address) => ({ address, port }))),
    tlsFiles: ["/etc/portico/tls/privkey.pem", "/etc/portico/tls/cacert.pem"],
    servedDirectories: ["/home/sync/media"],
    stopTimeoutSeconds: 60,
    openFilesMax: 65_536,
    memoryMax: "50%",
  };

  config(more: Partial<ProxyConfigInput> = {}): ProxyConfigInput {
    const [key, certificate] = this.units.tlsFiles as [string, string];
    return {
      version: 1,
      workers: 2,
      logs: {
        access: { path: "/var/log/portico/access.log" },
        error: { path: "/var/log/portico/error.log" },
      },
      listeners: this.units.listeners.map(({ address, port }) => ({
        name: `${port}-${address.includes(":") ? "v6" : "v4"}`,
        address,
        port,
        ...(port === 80
          ? { protocol: "http" as const }
          : { protocol: "https" as const, tls: { key, certificate } }),
      })),
      upstreams: [{ name: "web", url: "http://127.0.0.1:8000" }],
      virtualServers: [
        {
          name: "only",
          serverNames: ["_"],
          default: true,
          versionTokens: true,
          listeners: ["80-v4", "80-v6", "443-v4", "443-v6"],
          routes: [
            { name: "load", path: "/load", match: "prefix", action: { type: "proxy", upstream: "web" } },
            {
              name: "media",
              path: "/media",
              match: "segment",
              action: { type: "staticFiles", directory: "/home/sync/media" },
            },
          ],
        },
      ],
      ...more,
    };
  }

  writeConfig(config: ProxyConfigInput | string = this.config()): Promise<void> {
    return this.host.write(this.units.config, typeof config === "string" ? config : JSON.stringify(config));
  }

  async useCertificate({ key, cert }: Issued): Promise<void> {
    const [keyFile, certificateFile] = this.units.tlsFiles as [string, string];
    await this.host.write(keyFile, key, "0600");
    await this.host.write(certificateFile, cert);
  }

  /** Puts a runtime in the place of the one that is installed, as a deployment does: at once. */
  async install(version = "0.1.0", edit: (code: string) => string = (code) => code): Promise<void> {
    const bundle = join(this.folder, "portico.mjs");
    const code = readFileSync(bundle, "utf8");
    const { runtime } = this.units;
    await this.host.write(
      `${runtime}.new`,
      edit(code.replaceAll('"0.1.0"', JSON.stringify(version))),
      "0755",
    );
    await this.host.must(`mv ${runtime}.new ${runtime}`);
  }

  private async deploy(): Promise<void> {
    const { host } = this;
    await host.copyIn(process.execPath, this.units.nodePath, "0755");
    await host.copyIn(join(this.folder, "load.js"), "/opt/load.js");
    await this.install();
    await this.writeConfig();
    await this.useCertificate(await issue());
    await host.write("/home/sync/media/picture.txt", "a picture\n");
    await host.write("/etc/systemd/system/portico.service", renderUnit(proxyServiceUnit(this.units)));
    await host.write("/etc/systemd/system/portico.socket", renderUnit(proxySocketUnit(this.units)));
    await host.write(
      "/etc/systemd/system/application.service",
      "[Service]\nExecStart=/usr/lib/portico/node /opt/load.js upstream 8000\n[Install]\nWantedBy=multi-user.target\n",
    );
    await host.must(
      "systemctl daemon-reload && systemctl enable --now application portico.socket portico.service 2>&1",
    );
  }

  /** A property of the service, as `systemctl show` gives it. */
  async show(property: string): Promise<string> {
    return (await this.host.must(`systemctl show -P ${property} portico.service`)).trim();
  }

  /** Process ids of the service by what they call themselves. */
  async processes(kind: "master" | "worker"): Promise<number[]> {
    const text = await this.host.must(`pgrep -f '^portico: ${kind}' || true`);
    return text.split("\n").filter(Boolean).map(Number);
  }

  /** The release that responds from outside. */
  async release(): Promise<string | undefined> {
    const { stdout } = await this.curl("-sI http://HOST/none");
    return /^server: portico\/(\S+)/im.exec(stdout)?.[1];
  }

  /** Subject of the certificate that clients see. */
  async certificate(): Promise<string> {
    const { stdout } = await this.curl("-skv https://HOST/none 2>&1");
    return /subject: CN=(\S+)/.exec(stdout)?.[1] ?? stdout;
  }

  async curl(command: string): Promise<{ code: number; stdout: string }> {
    const outside = await this.host.outside();
    return outside.run(`curl --max-time 20 ${command.replaceAll("HOST", this.host.address)}`);
  }

  /** Starts load from outside; resolves when every kind of it has begun. */
  async load(transferMs: number): Promise<Load> {
    const options: LoadOptions = {
      address: this.host.address,
      httpPort: 80,
      httpsPort: 443,
      host: "localhost",
      path: "/load",
      transferMs,
      transferBytes: 3_000_000,
      clients: 2,
      pauseMs: 10,
    };
    const outside = await this.host.outside();
    const script = join(this.folder, "load.js");
    const child = outside.start(`exec ${process.execPath} ${script} load '${JSON.stringify(options)}'`);
    const load = new Load(child);
    await eventually(async () => load.text.startsWith("loading\n"), "until the load has begun", {
      everyMs: 100,
    });
    // The long transfers begin with the small requests.
    await sleep(transferMs / 4);
    return load;
  }
}

export class Load {
  text = "";
  private errors = "";

  constructor(private readonly child: ChildProcess) {
    child.stdout!.setEncoding("utf8").on("data", (chunk: string) => (this.text += chunk));
    child.stderr!.setEncoding("utf8").on("data", (chunk: string) => (this.errors += chunk));
  }

  async stop(): Promise<LoadReport> {
    const ended = once(this.child, "close");
    this.child.stdin!.end();
    await ended;
    const line = this.text.split("\n")[1];
    if (!line) throw new Error(`the load ended without a report: ${this.errors}`);
    return JSON.parse(line) as LoadReport;
  }
}
