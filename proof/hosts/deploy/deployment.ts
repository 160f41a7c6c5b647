import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { build } from "esbuild";
import { VERSION } from "../../../src/model/text/version.js";
import { copyOfBundle } from "../../../testkit/sharedBundle.js";
import { Workspace } from "../../terraform/workspace.js";
import { type Result, type TestHost } from "../harness/index.js";
import type { DeployedApp } from "./app.js";

const CACHE = join(__dirname, "../../../.cache");

/** A deployment onto a test host, as a user makes it: synthesized here, applied over ssh from the network outside. */
export class Deployment {
  private readonly bundle: string;

  constructor(
    private readonly host: TestHost,
    private readonly ssh: DeployedApp["ssh"],
    private readonly workspace = new Workspace(),
    /** What is deployed: a program beside this one. */
    private readonly program = "app.ts",
  ) {
    this.bundle = join(workspace.folder, "portico.mjs");
  }

  /** The same deployment by another way in. */
  by(ssh: DeployedApp["ssh"]): Deployment {
    return new Deployment(this.host, ssh, this.workspace, this.program);
  }

  /** Installs what the host had before: the application with its own daemons, on loopback, and its files. */
  async installApplication(): Promise<void> {
    const { host } = this;
    const file = join(this.workspace.folder, "application.js");
    const entry = join(__dirname, "application.ts");
    await build({ entryPoints: [entry], bundle: true, platform: "node", format: "cjs", outfile: file });
    // Its own interpreter: nothing that a deployment could run by accident.
    await host.copyIn(process.execPath, "/srv/sync/bin/interpreter", "0755");
    await host.copyIn(file, "/srv/sync/bin/application.js");
    await host.write("/srv/sync/media/img/icon.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>\n');
    await host.write("/srv/sync/conf/network.conf", "[General]\nSERVICE_URL = http://old.example:8000\n");
    await host.write("/srv/sync/conf/fileserver.conf", "[fileserver]\nhost = 0.0.0.0\nport = 8082\n", "0640");
    await host.write(
      "/srv/sync/conf/web_settings.py",
      'SECRET_KEY = "never to be copied"\n\nDATABASES = {"default": {"PORT": "3306"}}\n',
      "0600",
    );
    const names = ["web", "files", "webdav", "database"];
    for (const name of names) {
      await host.write(
        `/etc/systemd/system/sync-${name}.service`,
        `[Service]\nExecStart=/srv/sync/bin/interpreter /srv/sync/bin/application.js ${name}\n[Install]\nWantedBy=multi-user.target\n`,
      );
    }
    await host.must(`systemctl enable --now ${names.map((name) => `sync-${name}`).join(" ")}`);
  }

  /** @param version another one makes another runtime */
  async buildRuntime(version?: string): Promise<void> {
    await copyOfBundle(this.bundle);
    if (version === undefined) return;
    const code = readFileSync(this.bundle, "utf8");
    writeFileSync(this.bundle, code.replaceAll(JSON.stringify(VERSION), JSON.stringify(version)));
  }

  /** The header of a program for a processor that is not the host's. */
  foreignNode(): string {
    const file = join(this.workspace.folder, "foreign-node");
    const header = readFileSync(process.execPath).subarray(0, 64);
    header.writeUInt16LE(process.arch === "arm64" ? 62 : 183, 18);
    writeFileSync(file, header);
    return file;
  }

  synthesize<App extends DeployedApp = DeployedApp>(more: Partial<App> = {}): void {
    const { host, ssh } = this;
    const app: DeployedApp = {
      address: host.address,
      ipv6Address: host.address6,
      ssh,
      runtimeBundle: this.bundle,
      nodeCache: join(CACHE, "portico/node"),
      ...more,
    };
    this.workspace.synthesize(join(__dirname, this.program), { PORTICO_TEST: JSON.stringify(app) });
  }

  /** Here, not in the network outside: providers may come from the registry. */
  init(): void {
    this.workspace.terraform("init", "-input=false");
  }

  get synthesized(): string {
    return readFileSync(join(this.workspace.stack, "cdk.tf.json"), "utf8");
  }

  get state(): string {
    return readFileSync(join(this.workspace.folder, "terraform.tfstate"), "utf8");
  }

  async terraform(args: string, env: NodeJS.ProcessEnv = {}): Promise<Result> {
    const outside = await this.host.outside();
    const { stack, environment } = this.workspace;
    return outside.run(`terraform ${args}`, {
      cwd: stack,
      env: { ...environment, ...env },
      timeoutSeconds: 300,
    });
  }

  /** An apply that may fail. */
  tryApply(env?: NodeJS.ProcessEnv, more = ""): Promise<Result> {
    return this.terraform(`apply -input=false -auto-approve -no-color ${more}`, env);
  }

  /** Sends everything again, as to a host that is gone. */
  async applyAgain(): Promise<string> {
    const staging = /terraform_data\.\S*Host_Staging\S*/.exec(
      (await this.terraform("state list")).stdout,
    )![0];
    return this.applied(await this.tryApply({}, `-replace=${staging}`));
  }

  async apply(env?: NodeJS.ProcessEnv): Promise<string> {
    return this.applied(await this.tryApply(env));
  }

  private applied({ code, stdout, stderr }: Result): string {
    if (code !== 0) throw new Error(`terraform apply exited with ${code}\n${stdout}\n${stderr}`);
    return stdout;
  }

  /** Moves the identity to where the stack has it now, as somebody does who has renamed the construct. */
  async moveIdentity(): Promise<void> {
    const [from] = /^terraform_data\.\S*Host_Deployment\S*$/m.exec(
      (await this.terraform("state list")).stdout,
    )!;
    const [, to] = /"(\w*Host_Deployment\w*)": \{/.exec(this.synthesized)!;
    const { code, stderr } = await this.terraform(`state mv ${from} terraform_data.${to}`);
    if (code !== 0) throw new Error(stderr);
  }

  /** Addresses of what an apply would change, with the numbers in their ends taken off. */
  async planned(): Promise<string[]> {
    const { stdout, stderr, code } = await this.terraform("plan -input=false -no-color -out=plan");
    if (code !== 0) throw new Error(stdout + stderr);
    const plan = JSON.parse((await this.terraform("show -json plan")).stdout);
    return (plan.resource_changes as { address: string; change: { actions: string[] } }[])
      .filter(({ change }) => change.actions.join() !== "no-op")
      .map(({ address, change }) => `${change.actions.join("+")} ${address.replace(/_[0-9A-F]{8}$/, "")}`)
      .sort();
  }

  remove(): void {
    this.workspace.remove();
  }
}
