import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { buildSync } from "esbuild";
import { createMedia } from "../../demo/media.js";
import { privateKey, selfSignedCertificate } from "../../demo/tlsResources.js";
import { daemonsOf } from "../../src/applications/index.js";
import type { DeploymentInput, FileRole, ProxyConfigInput } from "../../src/model/index.js";
import { applicationSettingsFiles, applicationSettingsValues } from "../../src/applications/index.js";
import {
  firewallDropIn,
  firewallUnit,
  proxyServiceUnit,
  proxySocketUnit,
  type ProxyUnitsInput,
  renderFirewall,
  renderUnit,
} from "../../src/render/index.js";
import { copyOfBundle } from "../../testkit/sharedBundle.js";
import { FILE_SYNC_ROWS } from "../../src/applications/index.js";
import { siteConfig, siteExpect } from "../../testkit/siteConfig.js";
import { bootHost, type Release, type Result, type TestHost } from "./harness/index.js";

export const STORE = "/var/lib/portico/deployment";
const INCOMING = "/var/lib/portico/incoming/test";
const NODE = "/usr/lib/portico/node";
const RUNTIME = "/usr/lib/portico/portico.mjs";
export const CONFIG = "/etc/portico/portico.json";
export const TLS = "/etc/portico/tls";
export const DAEMONS = {
  webApplication: "sync-web.service",
  fileServer: "sync-files.service",
  webdav: "sync-dav.service",
};
export const SETTINGS = {
  networkDaemon: "/opt/sync/conf/network.conf",
  webApplication: "/opt/sync/conf/web_settings.py",
  fileServer: "/opt/sync/conf/fileserver.conf",
};
export const FILE_SERVER_CONF = "[fileserver]\nport = 8082\n";
export const SECRET = "this-is-the-secret-key-of-the-application";

interface HostedFile {
  readonly content: string | Buffer;
  readonly mode?: "0600" | "0644" | "0755";
  readonly role: FileRole;
}
export type HostedFiles = Record<string, HostedFile>;

export const everything = ["portico.service", "portico.socket", ...Object.values(DAEMONS)];

export const SERVICES = {
  proxy: { service: "portico.service", socket: "portico.socket" },
  daemons: daemonsOf(DAEMONS),
};

/** What a deployment says of the files of `withFirewall`. */
export const FIREWALLED = { services: { ...SERVICES, firewall: "portico-firewall.service" } };

/** A host with the application as somebody else installed it, and what is deployed to it. */
export class ActivationHost {
  private constructor(
    readonly host: TestHost,
    private readonly folder: string,
  ) {}

  static async boot(name: string, release?: Release): Promise<ActivationHost> {
    const folder = mkdtempSync(path.join(tmpdir(), "portico-activation-host-"));
    const one = new ActivationHost(await bootHost({ name, ...(release && { release }) }), folder);
    try {
      await one.installApplication();
      one.base = await one.baseFiles();
      one.another = await one.certificate();
      await one.host.copyIn(process.execPath, "/root/node", "0755");
      await one.host.copyIn(path.join(folder, "portico.mjs"), "/root/portico.mjs", "0755");
      one.untouched = await one.traces();
    } catch (error) {
      await one.remove();
      throw error;
    }
    return one;
  }

  async remove(): Promise<void> {
    await this.host.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** Files of a deployment, to which others add. */
  base: HostedFiles = {};
  private another: HostedFiles = {};
  /** What a deployment may touch, before the first one. */
  untouched = "";

  /** The application as somebody else installed it: daemons with units, media, settings. */
  private async installApplication(): Promise<void> {
    const daemon = path.join(this.folder, "daemon.cjs");
    const contents = `
      import { createFileServer } from ${JSON.stringify(path.resolve("demo/upstreams/fileServer.ts"))};
      import { createWebUi } from ${JSON.stringify(path.resolve("demo/upstreams/webUi.ts"))};
      const [kind, port] = process.argv.slice(2);
      const paths = { web: "/sync", fileServer: "/synchttp", media: "/syncmedia", webdav: "/syncdav" };
      const server = kind === "web" ? Promise.resolve(createWebUi(paths)) : createFileServer("/var/lib/sync-" + kind);
      server.then((s) => s.listen(Number(port), "127.0.0.1"));`;
    buildSync({
      stdin: { contents, resolveDir: path.resolve(".") },
      outfile: daemon,
      bundle: true,
      platform: "node",
      target: "node20",
      logLevel: "error",
    });
    await this.host.copyIn(process.execPath, "/opt/sync/node", "0755");
    await this.host.copyIn(daemon, "/opt/sync/daemon.cjs");
    for (const [unit, kind, port] of [
      ["sync-web.service", "web", 8000],
      ["sync-files.service", "files", 8082],
      ["sync-dav.service", "dav", 8080],
    ]) {
      const text = `[Unit]\nDescription=${kind} of the application\n[Service]\nExecStart=/opt/sync/node /opt/sync/daemon.cjs ${kind} ${port}\n[Install]\nWantedBy=multi-user.target\n`;
      await this.host.write(`/etc/systemd/system/${unit}`, text);
    }
    await createMedia(path.join(this.host.root, "opt/sync/media"));
    await this.host.write(SETTINGS.networkDaemon, "[General]\nID = 1\n");
    await this.host.write(SETTINGS.fileServer, FILE_SERVER_CONF);
    await this.host.write(SETTINGS.webApplication, `SECRET_KEY = "${SECRET}"\n\nDATABASES = {}\n`, "0640");
    await this.host.must(
      // A link that no unit file asks for is its owner's all the same.
      `systemctl daemon-reload && systemctl enable --now ${Object.values(DAEMONS).join(" ")} &&
        systemctl add-wants graphical.target ${DAEMONS.webApplication}`,
    );
  }

  private async baseFiles(): Promise<HostedFiles> {
    const file = await copyOfBundle(path.join(this.folder, "portico.mjs"));
    return {
      [NODE]: { role: "node", mode: "0755", content: readFileSync(process.execPath) },
      [RUNTIME]: { role: "runtime", mode: "0755", content: readFileSync(file) },
      [CONFIG]: { role: "config", content: JSON.stringify(this.proxyConfig()) },
      ...(await this.certificate()),
      "/usr/share/portico/default/index.html": { role: "page", content: "<title>It works</title>" },
      "/etc/systemd/system/portico.service": {
        role: "unit",
        content: renderUnit(proxyServiceUnit(unitsInput())),
      },
      "/etc/systemd/system/portico.socket": {
        role: "unit",
        content: renderUnit(proxySocketUnit(unitsInput())),
      },
    };
  }

  private async certificate(): Promise<HostedFiles> {
    const key = privateKey({ algorithm: "RSA", rsa_bits: 2048 })["private_key_pem"]!;
    const { cert_pem } = await selfSignedCertificate({
      private_key_pem: key,
      validity_period_hours: 24 * 365,
      ip_addresses: [this.host.address],
      dns_names: ["files.example.org"],
      subject: { common_name: "files.example.org" },
    });
    return {
      [`${TLS}/privkey.pem`]: { role: "tls", mode: "0600", content: key },
      [`${TLS}/cacert.pem`]: { role: "tls", content: cert_pem! },
    };
  }

  proxyConfig(serverName = this.host.address): ProxyConfigInput {
    return siteConfig({ mode: "tls", host: serverName });
  }

  /** Uploads what the host does not have and activates it. */
  async deploy(
    files: HostedFiles,
    more: Partial<DeploymentInput> = {},
    options = "",
    prefix = "",
  ): Promise<Result> {
    const hashed = Object.keys(files)
      .sort()
      .map((name) => {
        const { content, mode = "0644", role } = files[name]!;
        return {
          path: name,
          mode,
          role,
          content,
          sha256: hashOf(content),
        };
      });
    const incoming = path.join(this.host.root, INCOMING);
    mkdirSync(incoming, { recursive: true, mode: 0o700 });
    for (const { path: at, sha256, content } of hashed) {
      const there = [path.join(STORE, "blobs", sha256), ...(at === NODE ? [NODE] : [])];
      if (!there.some((one) => existsSync(path.join(this.host.root, one))))
        writeFileSync(path.join(incoming, sha256), content);
    }
    const named = /"serverNames":\s*\["([^"_]+)"\]/.exec(String(files[CONFIG]?.content));
    const deployment: DeploymentInput = {
      version: 1,
      config: CONFIG,
      expect: siteExpect({ mode: "tls", host: named?.[1] ?? this.host.address }),
      files: hashed.map(({ path: at, mode, sha256, role }) => ({ path: at, mode, sha256, role })),
      services: SERVICES,
      rows: FILE_SYNC_ROWS,
      probe: { timeoutSeconds: 10 },
      ...more,
    };
    writeFileSync(path.join(incoming, "deployment.json"), JSON.stringify(deployment));
    const command = `/root/node /root/portico.mjs activate --incoming ${INCOMING} ${options}`;
    return this.host.run(`${prefix} ${command}`, { timeoutSeconds: 120 });
  }

  /** What systemd did meanwhile, in order: `stop web`, `start web`, `reload portico`. */
  async observed<T>(act: () => Promise<T>): Promise<[T, string[]]> {
    const cursor = (await this.host.must("journalctl --sync; journalctl -n 0 --show-cursor -q"))
      .trim()
      .replace("-- cursor: ", "");
    const result = await act();
    const json = await this.host.must(
      `journalctl --sync; journalctl -q -o json --after-cursor='${cursor}' _PID=1`,
    );
    const jobs = json
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Record<string, string>)
      .filter(
        ({ UNIT, JOB_TYPE }) =>
          JOB_TYPE !== undefined && /^(?:sync|portico(?!-activation-))/.test(UNIT ?? ""),
      )
      .filter(({ JOB_RESULT }) => JOB_RESULT === "done" || JOB_RESULT === "failed")
      .map(({ UNIT, JOB_TYPE, JOB_RESULT }) => {
        const verb = `${JOB_TYPE} ${UNIT!.replace(/\.service$/, "").replace("sync-", "")}`;
        return JOB_RESULT === "done" ? verb : `${verb} failed`;
      });
    // The second half of a restart is told as a start.
    const isHalf = (job: string, i: number): boolean =>
      job.replace(/ failed$/, "") === (jobs[i - 1] ?? "").replace(/^restart/, "start") &&
      jobs[i - 1]!.startsWith("restart");
    const done = jobs.filter((job, i) => !isHalf(job, i) || job.endsWith("failed"));
    return [result, done];
  }

  /** Everything that a deployment may touch, to be compared; without logs. */
  async traces(): Promise<string> {
    const found = "find /etc /opt/sync/conf /srv /usr/lib/portico /usr/share/portico";
    const names = await this.host.run(`${found} -printf '%M %U:%G %p %l\\n' | sort -k 3`);
    const contents = await this.host.run(`${found} -type f -print0 | sort -z | xargs -0 openssl sha256 -r`);
    return names.stdout + contents.stdout;
  }

  /** `active active failed`, … */
  async active(...units: string[]): Promise<string> {
    const { stdout } = await this.host.run(`systemctl is-active ${units.join(" ")}`);
    return stdout.trim().replaceAll("\n", " ");
  }

  /** What a client outside sees. */
  async seenOutside(url: string): Promise<string> {
    const outside = await this.host.outside();
    return (await outside.run(`curl -sk -o /dev/null -w '%{http_code}' -m 5 ${url}`)).stdout;
  }

  changedConfig(): HostedFiles {
    const config = this.proxyConfig();
    return {
      ...this.base,
      [CONFIG]: { role: "config", content: JSON.stringify({ ...config, timeouts: { keepAliveMs: 4321 } }) },
    };
  }

  renamedConfig(): HostedFiles {
    const config = this.proxyConfig("files.example.org");
    return { ...this.base, [CONFIG]: { role: "config", content: JSON.stringify(config) } };
  }

  withRuntime(files: HostedFiles): HostedFiles {
    const runtime = this.base[RUNTIME]!;
    const content = Buffer.concat([runtime.content as Buffer, Buffer.from("// another release\n")]);
    return { ...files, [RUNTIME]: { ...runtime, content } };
  }

  /** Another one for the same names. */
  withCertificate(files: HostedFiles): HostedFiles {
    return { ...files, ...this.another };
  }

  withUnit(files: HostedFiles): HostedFiles {
    const content = renderUnit(proxyServiceUnit({ ...unitsInput(), openFilesMax: 8192 }));
    return { ...files, "/etc/systemd/system/portico.service": { role: "unit", content } };
  }

  withFirewall(files: HostedFiles, ports: readonly number[]): HostedFiles {
    const rules = renderFirewall({ ports, loopbackPorts: [8000], allowed: [], dhcpClient: false });
    const unit = renderUnit(firewallUnit("/usr/sbin/nft", "/etc/portico/firewall.nft"));
    return {
      ...files,
      "/etc/portico/firewall.nft": { role: "firewall", content: rules },
      "/etc/systemd/system/portico-firewall.service": { role: "unit", content: unit },
      "/etc/systemd/system/nftables.service.d/portico.conf": {
        role: "firewall",
        content: renderUnit(firewallDropIn()),
      },
    };
  }

  withListener(files: HostedFiles): HostedFiles {
    const config = JSON.parse(files[CONFIG]!.content.toString()) as ProxyConfigInput;
    const listener = { name: "more", address: "0.0.0.0", port: 8888, protocol: "http" as const };
    const [first, ...rest] = config.virtualServers;
    const more = {
      ...config,
      listeners: [...config.listeners, listener],
      virtualServers: [{ ...first!, listeners: [...first!.listeners, "more"] }, ...rest],
    };
    const socket = proxySocketUnit({ ...unitsInput(), listeners: [...listeners(), listener] });
    return {
      ...files,
      [CONFIG]: { role: "config", content: JSON.stringify(more) },
      "/etc/systemd/system/portico.socket": { role: "unit", content: renderUnit(socket) },
    };
  }
}

/** Hashes of contents: Node is large, and in every deployment. */
const hashes = new WeakMap<Buffer, string>();

function hashOf(content: string | Buffer): string {
  const known = typeof content === "string" ? undefined : hashes.get(content);
  if (known !== undefined) return known;
  const hash = createHash("sha256").update(content).digest("hex");
  if (typeof content !== "string") hashes.set(content, hash);
  return hash;
}

const unitsInput = (): ProxyUnitsInput => ({
  nodePath: NODE,
  runtime: RUNTIME,
  config: CONFIG,
  logDirectory: "/var/log/portico",
  listeners: listeners(),
  tlsFiles: [`${TLS}/privkey.pem`, `${TLS}/cacert.pem`],
  servedDirectories: ["/usr/share/portico/default", "/opt/sync/media"],
  stopTimeoutSeconds: 20,
  openFilesMax: 4096,
  memoryMax: "50%",
});

const listeners = () => [
  { address: "0.0.0.0", port: 80 },
  { address: "0.0.0.0", port: 443 },
];

export function values(serverName: string, more: { fileServerPort?: number } = {}) {
  return {
    ...applicationSettingsValues({
      origins: [{ scheme: "https", host: serverName, port: 443 }],
      pathPrefix: "sync",
      enableSettingsViaWeb: false,
      fileServerHost: "127.0.0.1",
      fileServerPort: 8082,
    }),
    ...more,
  };
}

export const settings = (of: ReturnType<typeof values>): DeploymentInput["settings"] => ({
  files: applicationSettingsFiles(of, SETTINGS),
  apply: true,
});
