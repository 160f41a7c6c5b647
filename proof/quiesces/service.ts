import { type ChildProcess, spawn } from "node:child_process";
import { publicFolder } from "../../testkit/publicFolder.js";
import { once } from "node:events";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProxyConfigInput } from "../../src/model/index.js";
import { askMaster } from "../../src/runtime/supervisor/control/askMaster.js";
import type { WorkerHoldings } from "../../src/runtime/worker/holdings.js";
import { issue } from "../../testkit/certificates.js";
import {
  everywhere,
  logsIn,
  loopback,
  oneServer,
  type OneServer,
  writeCertificate,
} from "../../testkit/oneServer.js";
import { freePorts } from "../../testkit/ports.js";
import { childrenOf } from "../../testkit/processes.js";
import { sharedBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";

/** The service as systemd has it: its master dies, then so do its workers, and another one starts in the same directory. */
export class Service {
  readonly folder = publicFolder("portico-quiesces-");
  private master: ChildProcess | undefined;

  private constructor(
    private readonly bundle: string,
    readonly plainPort: number,
    readonly securePort: number,
  ) {}

  /**
   * @param url of the application
   * @param server more of the virtual server
   */
  static async start(url: string, server: OneServer["server"] = {}): Promise<Service> {
    const [plainPort, securePort] = await freePorts(2);
    const service = new Service(await sharedBundle(), plainPort!, securePort!);
    const tls = writeCertificate(service.folder, await issue({ name: "app.example" }));
    const config: ProxyConfigInput = oneServer({
      workers: 2,
      logs: logsIn(service.folder),
      listeners: [loopback("plain", plainPort!), loopback("secure", securePort!, tls)],
      upstreams: [{ name: "web", url }],
      routes: [everywhere({ type: "proxy", upstream: "web" })],
      server,
    });
    writeFileSync(service.config, JSON.stringify(config));
    await service.up();
    return service;
  }

  get pausesFile(): string {
    return join(this.folder, "pauses.json");
  }

  get errors(): string {
    return readFileSync(join(this.folder, "error.log"), "utf8");
  }

  /** `KillMode=mixed` and `Restart=on-failure` of the unit. */
  async crash(): Promise<void> {
    const workers = this.workers();
    await kill(this.master!);
    for (const pid of workers) signal(pid, "SIGKILL");
    await eventually(() => !workers.some((pid) => existsSync(`/proc/${pid}`)), "for the workers to go");
    await this.up();
  }

  workers(): readonly number[] {
    return childrenOf(this.master!.pid!);
  }

  reload(): void {
    this.master!.kill("SIGHUP");
  }

  /** `portico quiesce -- sh -c SCRIPT`. */
  quiesce(script: string, options: readonly string[] = ["--wait", "20s"]): ChildProcess {
    const args = [this.bundle, "quiesce", ...options, "--", "sh", "-c", script];
    return spawn(process.execPath, args, { env: this.env, stdio: ["ignore", "ignore", "pipe"] });
  }

  async holdings(): Promise<readonly WorkerHoldings[]> {
    const outcome = await askMaster(join(this.folder, "control.sock"), { command: "holdings" }, 10_000);
    return outcome.ok ? outcome.value.workers! : [];
  }

  async end(): Promise<void> {
    this.master!.kill("SIGTERM");
    await once(this.master!, "exit");
    rmSync(this.folder, { recursive: true, force: true });
  }

  private get config(): string {
    return join(this.folder, "portico.json");
  }

  private get env(): NodeJS.ProcessEnv {
    return { ...process.env, RUNTIME_DIRECTORY: this.folder };
  }

  private async up(): Promise<void> {
    const master = spawn(process.execPath, [this.bundle, "serve", this.config], {
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    this.master = master;
    let said = "";
    for (const stream of [master.stdout, master.stderr])
      stream.on("data", (text: Buffer) => (said += text.toString()));
    const ready = () => said.includes(" ready: ") || master.exitCode !== null;
    await eventually(ready, "for portico to be ready", { seen: () => said });
    if (master.exitCode !== null) throw new Error(said);
  }
}

export async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, "exit");
  child.kill("SIGKILL");
  await gone;
}

export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended a moment ago.
  }
}
