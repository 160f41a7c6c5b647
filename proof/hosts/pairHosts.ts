import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { VERSION } from "../../src/model/text/version.js";
import { issue } from "../../testkit/certificates.js";
import type { ProbeReport } from "../../testkit/load/probe.js";
import { copyOfBundle } from "../../testkit/sharedBundle.js";
import { eventually } from "../../testkit/waiting.js";
import { Workspace } from "../terraform/workspace.js";
import { Deployment } from "./deploy/deployment.js";
import type { PairApp } from "./deploy/pairApp.js";
import { bootHost, type Namespace, PAIR_PACKAGES, type Result, type TestHost } from "./harness/index.js";

export const VIRTUAL = "203.0.113.20";

/** Two hosts with keepalived in one network, clients in it as well, and Terraform that deploys a pair to them. */
export class PairHosts {
  private readonly workspace = new Workspace();
  private readonly bundle = join(this.workspace.folder, "portico.mjs");
  /** Whether the providers are there; every stack of a pair has the same. */
  private isReady = false;

  private constructor(
    readonly hosts: readonly [TestHost, TestHost],
    readonly outside: Namespace,
  ) {}

  static async boot(): Promise<PairHosts> {
    const boot = (name: string, address: string): Promise<TestHost> =>
      bootHost({ name, address, address6: null, packages: PAIR_PACKAGES });
    const hosts = await Promise.all([boot("first", "203.0.113.11"), boot("second", "203.0.113.12")] as const);
    const [outside, other] = await Promise.all(hosts.map((host) => host.outside()));
    // One network out of two: the outside's address is in the first.
    await other!.must("ip address flush dev lan");
    await outside!.connect(other!, { name: "cable", bridge: "lan" }, { name: "cable", bridge: "lan" });
    const pair = new PairHosts(hosts, outside!);
    await pair.installApplications();
    return pair;
  }

  async remove(): Promise<void> {
    this.workspace.remove();
    await Promise.all(this.hosts.map((host) => host.stop()));
  }

  /** @param version another one makes another runtime */
  async synthesize({
    version,
    acme,
    without,
    direct = false,
  }: { version?: string; direct?: boolean } & Pick<PairApp, "acme" | "without"> = {}): Promise<void> {
    await copyOfBundle(this.bundle);
    if (version !== undefined) {
      const code = readFileSync(this.bundle, "utf8");
      writeFileSync(this.bundle, code.replaceAll(JSON.stringify(VERSION), JSON.stringify(version)));
    }
    const app: PairApp = {
      hosts: await this.logins(direct),
      ...(without && { without }),
      virtualAddress: VIRTUAL,
      runtimeBundle: this.bundle,
      ...(acme && { acme }),
    };
    this.workspace.synthesize(join(__dirname, "deploy/pairApp.ts"), { PORTICO_TEST: JSON.stringify(app) });
    if (!this.isReady) this.workspace.terraform("init", "-input=false");
    this.isReady = true;
  }

  /** One as root; the other as a user with sudo, through the first unless that is gone. */
  private async logins(direct: boolean): Promise<PairApp["hosts"]> {
    const [first, second] = this.hosts;
    const hostKey = (host: TestHost): Promise<string> => host.must("cat /etc/ssh/ssh_host_ecdsa_key.pub");
    const root = { privateKeyFile: first.sshKey, hostKey: await hostKey(first) };
    const whenDestroyed = "purge" as const;
    const deploy = {
      user: "deploy",
      sudo: true,
      privateKeyFile: second.sshKey,
      hostKey: await hostKey(second),
    };
    return [
      { address: first.address, ssh: { ...root, whenDestroyed } },
      {
        address: second.address,
        ssh: {
          ...deploy,
          ...(direct ? {} : { bastion: { ...root, address: first.address } }),
          whenDestroyed,
        },
      },
    ];
  }

  async terraform(args: string): Promise<Result> {
    const { stack: cwd, environment: env } = this.workspace;
    return this.outside.run(`terraform ${args} -no-color`, { cwd, env, timeoutSeconds: 300 });
  }

  async must(args: string): Promise<string> {
    const { code, stdout, stderr } = await this.terraform(args);
    if (code !== 0) throw new Error(`terraform ${args} exited with ${code}\n${stdout}\n${stderr}`);
    return stdout;
  }

  get state(): string {
    return readFileSync(join(this.workspace.folder, "terraform.tfstate"), "utf8");
  }

  /** What was synthesized. */
  get synthesized(): string {
    return readFileSync(join(this.workspace.stack, "cdk.tf.json"), "utf8");
  }

  /** Hosts that have the virtual address. */
  async holders(): Promise<TestHost[]> {
    const all = await Promise.all(
      this.hosts.map(async (host) => [host, await host.run(`ip -4 -o address show to ${VIRTUAL}`)] as const),
    );
    return all.filter(([, { stdout }]) => stdout !== "").map(([host]) => host);
  }

  async holder(): Promise<TestHost> {
    const [holder, ...more] = await this.holders();
    if (holder === undefined || more.length > 0) throw new Error(`${more.length + 1} hosts have ${VIRTUAL}`);
    return holder;
  }

  other(host: TestHost): TestHost {
    return this.hosts.find((one) => one !== host)!;
  }

  /** Until a host that is not ready for the address any more, or was, is as ready as the other. */
  async settled(): Promise<void> {
    const ready = async (): Promise<boolean> => {
      const states = await Promise.all(this.hosts.map((host) => host.run("cat /run/portico-ready/state")));
      return states.every(({ stdout }) => stdout === "0\n") && (await this.holders()).length === 1;
    };
    await eventually(ready, "until both hosts are ready, and one has the address", {
      // Each look starts a dozen processes, which slow down what it waits for.
      everyMs: 300,
    });
  }

  /** Has a request sent every 10 ms to the virtual address while something happens. */
  async probe(happens: () => Promise<void>): Promise<ProbeReport> {
    const outfile = join(this.workspace.folder, "probe.js");
    const entryPoints = [join(__dirname, "../../testkit/load/probe.ts")];
    await build({ entryPoints, bundle: true, platform: "node", format: "cjs", outfile });
    const child = this.outside.start(`exec ${process.execPath} ${outfile} ${VIRTUAL} 80`);
    let text = "";
    child.stdout!.on("data", (data) => (text += data));
    const ended = once(child, "close");
    try {
      await eventually(async () => text !== "", "until the probe has a response", { everyMs: 20 });
      await happens();
    } finally {
      child.stdin!.end();
      await ended;
    }
    return JSON.parse(text.slice("probing\n".length)) as ProbeReport;
  }

  private async installApplications(): Promise<void> {
    await this.hosts[1].must(`useradd --create-home --shell /bin/sh deploy
      echo 'deploy ALL=(root) NOPASSWD: ALL' > /etc/sudoers.d/deploy
      install -d -m 0700 -o deploy /home/deploy/.ssh
      install -m 0600 -o deploy /root/.ssh/authorized_keys /home/deploy/.ssh/`);
    const { cert, key } = await issue({ names: [VIRTUAL] });
    for (const host of this.hosts) {
      const application = new Deployment(host, {});
      await application.installApplication();
      application.remove();
      await host.copyIn(process.execPath, "/srv/sync/bin/node", "0755");
      await host.write("/srv/tls/cert.pem", cert);
      await host.write("/srv/tls/key.pem", key, "0600");
    }
  }
}
