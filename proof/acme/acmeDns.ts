import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { freePorts } from "../../testkit/ports.js";
import { eventually, nextEvent } from "../../testkit/waiting.js";

/** The real acme-dns (https://github.com/acme-dns/acme-dns), as somebody built it: its zone is `auth.example.com`. */
export class AcmeDns {
  static readonly zone = "auth.example.com";

  private constructor(
    private readonly folder: string,
    private readonly child: ChildProcess,
    readonly dnsPort: number,
    private readonly apiPort: number,
  ) {}

  /** @param identity of its API */
  static async start(program: string, identity: { key: string; certificate: string }): Promise<AcmeDns> {
    const folder = mkdtempSync(join(tmpdir(), "portico-acme-dns-"));
    const [dnsPort, apiPort] = (await freePorts(2)) as [number, number];
    writeFileSync(join(folder, "key.pem"), identity.key);
    writeFileSync(join(folder, "chain.pem"), identity.certificate);
    const { zone } = AcmeDns;
    const config = `[general]
listen = "127.0.0.1:${dnsPort}"
protocol = "both4"
domain = "${zone}"
nsname = "${zone}"
nsadmin = "admin.example.com"
records = ["${zone}. A 127.0.0.1", "${zone}. NS ${zone}."]
[database]
engine = "sqlite"
connection = "${folder}/acme-dns.db"
[api]
ip = "127.0.0.1"
port = "${apiPort}"
tls = "cert"
tls_cert_privkey = "${folder}/key.pem"
tls_cert_fullchain = "${folder}/chain.pem"
[logconfig]
loglevel = "info"
logtype = "stdout"
logformat = "text"
`;
    writeFileSync(join(folder, "config.cfg"), config);
    const child = spawn(program, ["-c", join(folder, "config.cfg")], { stdio: ["ignore", "pipe", "pipe"] });
    let lines = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (piece: Buffer) => (lines = (lines + piece.toString()).slice(-5_000)));
    const server = new AcmeDns(folder, child, dnsPort, apiPort);
    const lives = (): Promise<boolean> =>
      server.ask("GET", "/health").then(
        () => true,
        () => false,
      );
    await eventually(lives, "for acme-dns", { everyMs: 50, seen: () => lines });
    return server;
  }

  get url(): string {
    return `https://127.0.0.1:${this.apiPort}/`;
  }

  /** A new account, as the file of accounts has it. */
  async register(): Promise<{ readonly fulldomain: string }> {
    return JSON.parse(await this.ask("POST", "/register")) as { fulldomain: string };
  }

  async stop(): Promise<void> {
    const exited = once(this.child, "exit");
    this.child.kill("SIGKILL");
    await exited;
    rmSync(this.folder, { recursive: true });
  }

  private async ask(method: string, path: string): Promise<string> {
    const asked = request(new URL(path, this.url), { method, rejectUnauthorized: false, agent: false });
    asked.end();
    const [response] = (await nextEvent(asked, "response")) as [NodeJS.ReadableStream];
    return text(response);
  }
}
