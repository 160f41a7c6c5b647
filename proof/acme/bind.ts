import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Resolver } from "node:dns/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";

/** Debian's BIND: a primary server, which takes signed updates, and a secondary one, which it notifies. */
export class Bind {
  private readonly children: ChildProcess[] = [];

  private constructor(
    private readonly folder: string,
    readonly primary: number,
    readonly secondary: number,
  ) {}

  /**
   * @param records further ones of `example.net`
   * @param forwarded ports of other servers, by the zone that they have
   */
  static async start(records = "", forwarded: Readonly<Record<string, number>> = {}): Promise<Bind> {
    const folder = mkdtempSync(join(tmpdir(), "portico-bind-"));
    const [primary, secondary] = (await freePorts(2)) as [number, number];
    const bind = new Bind(folder, primary, secondary);
    const key = (name: string, secret: string): string =>
      `key "${name}" {\n\talgorithm hmac-sha256;\n\tsecret "${Buffer.from(secret).toString("base64")}";\n};\n`;
    writeFileSync(bind.keyFile, key("acme.key", SECRET));
    writeFileSync(bind.otherSecret, key("acme.key", "another secret of 32 characters."));
    writeFileSync(bind.otherKey, key("unknown.key", SECRET));
    const zones = { "example.net": ALIASES + records, "example.org": "" };
    for (const [name, own] of Object.entries(zones))
      writeFileSync(
        join(folder, `${name}.zone`),
        `$TTL 60\n@ SOA ns root 1 60 60 600 1\n@ NS ns\nns A 127.0.0.1\n${own}`,
      );
    const of = (what: (name: string) => string): string =>
      Object.keys(zones)
        .map((name) => `zone "${name}" { ${what(name)} };`)
        .join("\n");
    const updates = (name: string) =>
      `type primary; file "${name}.zone"; update-policy { grant acme.key subdomain ${name} TXT; };`;
    const notify = `notify explicit; also-notify { 127.0.0.1 port ${secondary}; };`;
    await Promise.all([
      bind.run(
        "primary",
        primary,
        `include "${bind.keyFile}";\n${of((name) => `${updates(name)} ${notify}`)}\n${forwardedZones(forwarded)}`,
      ),
      bind.run(
        "secondary",
        secondary,
        of((name) => `type secondary; file "${name}.copy"; primaries port ${primary} { 127.0.0.1; };`),
      ),
    ]);
    return bind;
  }

  get keyFile(): string {
    return join(this.folder, "acme.key");
  }

  /** The key's name, with another secret. */
  get otherSecret(): string {
    return join(this.folder, "secret.key");
  }

  get otherKey(): string {
    return join(this.folder, "other.key");
  }

  /** Values of a record; none if there is none. */
  async values(port: number, name: string): Promise<string[]> {
    const resolver = new Resolver({ tries: 1 });
    resolver.setServers([`127.0.0.1:${port}`]);
    return (await resolver.resolveTxt(name).catch(() => [])).map((pieces) => pieces.join(""));
  }

  async stop(): Promise<void> {
    await Promise.all(
      this.children.map(async (child) => {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const exited = once(child, "exit");
        child.kill("SIGKILL");
        await exited;
      }),
    );
    rmSync(this.folder, { recursive: true });
  }

  private async run(name: string, port: number, zones: string): Promise<void> {
    const file = join(this.folder, `${name}.conf`);
    const options = [
      `directory "${this.folder}"; pid-file none; session-keyfile none; lock-file none; recursion yes;`,
      `listen-on port ${port} { 127.0.0.1; }; listen-on-v6 { none; }; dnssec-validation no; serial-query-rate 1000;`,
      "min-refresh-time 1; notify-delay 0;",
    ];
    writeFileSync(file, `options {\n${options.join("\n")}\n};\ncontrols {};\n${zones}\n`);
    const child = spawn("named", ["-g", "-n", "1", "-c", file], { stdio: ["ignore", "ignore", "pipe"] });
    let lines = "";
    child.stderr.on("data", (chunk: Buffer) => (lines = (lines + chunk.toString()).slice(-5000)));
    this.children.push(child);
    await eventually(async () => (await this.values(port, "ready.example.net")).length > 0, "for BIND", {
      seen: () => lines,
      everyMs: 50,
    });
  }
}

const forwardedZones = (forwarded: Readonly<Record<string, number>>): string =>
  Object.entries(forwarded)
    .map(
      ([zone, port]) =>
        `zone "${zone}" { type forward; forward only; forwarders { 127.0.0.1 port ${port}; }; };`,
    )
    .join("\n");

const SECRET = "a secret of some thirty-two characters";
/** Records that there are without an update. */
const ALIASES =
  'ready TXT "yes"\n_acme-challenge.there CNAME proofs.example.org.\n_acme-challenge.too CNAME proofs.example.org.\n';
