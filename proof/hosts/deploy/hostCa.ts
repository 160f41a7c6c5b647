import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporaryCertificate } from "../../../src/runtime/acme/x509.js";
import {
  DNS_SERVER,
  PEBBLE,
  PEBBLE_ENVIRONMENT,
  pebbleConfig,
  requirePebble,
  SILENT,
} from "../../acme/pebble/programs.js";
import { eventually } from "../../../testkit/waiting.js";
import type { Namespace } from "../harness/index.js";

const ACME = 14_000;
const MANAGEMENT = 15_000;
const DNS = 8053;
const DNS_MANAGEMENT = 8055;
export const TOKEN = "the secret of the program";

/** An authority in the network outside of a host, which proves names on the host's own ports 80 and 443. */
export class HostCa {
  private pebble: ChildProcess | undefined;
  private output = "";

  private constructor(
    private readonly outside: Namespace,
    /** Address of the authority. */
    private readonly address: string,
    private readonly folder: string,
    /** PEM: by it the authority's own HTTPS is trusted. */
    readonly roots: string,
  ) {}

  static async start(outside: Namespace, address: string): Promise<HostCa> {
    requirePebble();
    const folder = mkdtempSync(join(tmpdir(), "portico-host-ca-"));
    const { key, cert } = await temporaryCertificate([address], "ecdsa-p256");
    writeFileSync(join(folder, "roots.pem"), cert);
    writeFileSync(join(folder, "key.pem"), key);
    const ca = new HostCa(outside, address, folder, cert);
    outside.start(
      `exec ${DNS_SERVER} -dnsserver 127.0.0.1:${DNS} -management ${address}:${DNS_MANAGEMENT} ` +
        SILENT.map((argument) => `'${argument}'`).join(" "),
    );
    await ca.startPebble();
    return ca;
  }

  /** A program that writes records, if it has its secret and does not run as root. */
  get dnsProgram(): string {
    return `#!/bin/bash
[ "$(< "$PORTICO_CREDENTIAL_FILE")" = "${TOKEN}" ] || exit 4
[ "$(id -u)" != 0 ] || exit 5
[ "$1" = present ] || exit 0
body="{\\"host\\": \\"$2.\\", \\"value\\": \\"$3\\"}"
exec 3<> /dev/tcp/${this.address}/${DNS_MANAGEMENT}
printf 'POST /set-txt HTTP/1.0\\r\\nContent-Length: %d\\r\\n\\r\\n%s' \${#body} "$body" >&3
read -r _ status _ <&3
[ "$status" = 200 ]
`;
  }

  get directory(): string {
    return `https://${this.address}:${ACME}/dir`;
  }

  /** Orders that it has had since it started first. */
  get orders(): number {
    return this.output.match(/Added order /g)?.length ?? 0;
  }

  /** It forgets all accounts and orders. */
  async startPebble(): Promise<void> {
    const config = pebbleConfig(this.folder, {
      listenAddress: `${this.address}:${ACME}`,
      managementListenAddress: `127.0.0.1:${MANAGEMENT}`,
      httpPort: 80,
      tlsPort: 443,
    });
    this.pebble = this.outside.start(`exec ${PEBBLE} -config ${config} -dnsserver 127.0.0.1:${DNS}`, {
      env: { ...process.env, ...PEBBLE_ENVIRONMENT },
    });
    for (const stream of [this.pebble.stdout!, this.pebble.stderr!])
      stream.on("data", (data: Buffer) => (this.output += data.toString()));
    const asked = `curl -sf --cacert ${join(this.folder, "roots.pem")} ${this.directory}`;
    await eventually(async () => (await this.outside.run(asked)).code === 0, "until Pebble responds", {
      everyMs: 100,
      seen: () => this.output,
    });
  }

  async kill(): Promise<void> {
    const exited = once(this.pebble!, "exit");
    this.pebble!.kill("SIGKILL");
    await exited;
  }

  /** The address that a name has from now on. */
  async setAddress(name: string, address: string): Promise<void> {
    for (const [path, more] of [
      ["clear-a", {}],
      ["add-a", { addresses: [address] }],
    ] as const) {
      const body = JSON.stringify({ host: `${name}.`, ...more });
      const url = `http://${this.address}:${DNS_MANAGEMENT}/${path}`;
      await this.outside.must(`curl -sSf --retry 5 --retry-connrefused -d '${body}' ${url}`);
    }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}
