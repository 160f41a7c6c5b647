import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { type ClientRequest, request as plainRequest } from "node:http";
import { request } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { temporaryCertificate } from "../../src/runtime/acme/x509.js";
import { freePorts } from "../../testkit/ports.js";
import { eventually } from "../../testkit/waiting.js";
import {
  DNS_SERVER,
  PEBBLE,
  PEBBLE_ENVIRONMENT,
  pebbleConfig,
  requirePebble,
  SILENT,
} from "./pebble/programs.js";

/** An authority on this machine: Pebble, with a DNS server of its own that knows every name as 127.0.0.1. */

export interface CaOptions {
  /** An address of this machine by which containers reach it; the machine may get it later. */
  readonly address?: string;
  /** Port of the DNS server that it asks; its own by default. */
  readonly dnsPort?: number;
  /** Whether it says when to come again, in a second; else it is asked again when the client likes, which is sooner. */
  readonly saysWhen?: boolean;
  /** Percent of good nonces that are refused. */
  readonly badNonces?: number;
  /** Keys by id that accounts have to be bound to. */
  readonly externalKeys?: Readonly<Record<string, string>>;
  readonly profiles?: Readonly<Record<string, { description: string; validityPeriod: number }>>;
}

export class TestCa {
  private pebble: ChildProcess | undefined;
  private dns: ChildProcess | undefined;

  private constructor(
    readonly folder: string,
    private readonly options: CaOptions,
    private readonly ports: Readonly<
      Record<"acme" | "management" | "dns" | "dnsManagement" | "http" | "tls", number>
    >,
    private readonly identity: { readonly key: string; readonly cert: string },
  ) {}

  static async start(options: CaOptions = {}): Promise<TestCa> {
    requirePebble();
    const folder = mkdtempSync(join(tmpdir(), "portico-ca-"));
    const [acme, management, dns, dnsManagement, http, tls] = (await freePorts(6)) as [
      ...[number, number, number],
      ...[number, number, number],
    ];
    const names = ["127.0.0.1", "localhost", ...(options.address === undefined ? [] : [options.address])];
    const identity = await temporaryCertificate(names, "ecdsa-p256");
    const ports = { acme, management, dns, dnsManagement, http, tls };
    const ca = new TestCa(folder, options, ports, identity);
    writeFileSync(ca.roots, identity.cert);
    writeFileSync(join(folder, "key.pem"), identity.key);
    await ca.startDns();
    await ca.startPebble();
    return ca;
  }

  get directory(): string {
    return `https://${this.options.address ?? "127.0.0.1"}:${this.ports.acme}/dir`;
  }

  get port(): number {
    return this.ports.acme;
  }

  /** PEM file by which the authority's own HTTPS is trusted; also its certificate. */
  get roots(): string {
    return join(this.folder, "roots.pem");
  }

  get key(): string {
    return this.identity.key;
  }

  get certificate(): string {
    return this.identity.cert;
  }

  /** Where the authority looks for responses to http-01. */
  get httpPort(): number {
    return this.ports.http;
  }

  /** Where it connects to for tls-alpn-01. */
  get tlsPort(): number {
    return this.ports.tls;
  }

  /** It forgets everything, also its own key. */
  async kill(): Promise<void> {
    await killed(this.pebble);
  }

  async startPebble(): Promise<void> {
    const { acme, management, http, tls, dns } = this.ports;
    const { dnsPort = dns, saysWhen = false, badNonces = 0, externalKeys, profiles } = this.options;
    const seconds = saysWhen ? 1 : 0;
    const config = pebbleConfig(this.folder, {
      listenAddress: `${this.options.address === undefined ? "127.0.0.1" : "0.0.0.0"}:${acme}`,
      managementListenAddress: `127.0.0.1:${management}`,
      httpPort: http,
      tlsPort: tls,
      retryAfter: { authz: seconds, order: seconds },
      externalAccountBindingRequired: externalKeys !== undefined,
      externalAccountMACKeys: externalKeys ?? {},
      ...(profiles === undefined ? {} : { profiles }),
    });
    const args = ["-config", config, "-dnsserver", `127.0.0.1:${dnsPort}`];
    const env = { ...process.env, ...PEBBLE_ENVIRONMENT, PEBBLE_WFE_NONCEREJECT: String(badNonces) };
    this.pebble = spawn(PEBBLE, args, { env, stdio: "ignore" });
    const responds = (port: number, path: string): Promise<void> =>
      eventually(
        () => this.asked("GET", port, path).then((status) => status === 200, no),
        "for Pebble",
        SELDOM,
      );
    await responds(acme, "/dir");
    await responds(management, "/roots/0");
  }

  /** What the authority says of the renewal of a certificate from now on: any text. */
  async setRenewalInfo(certificate: string, text: string): Promise<void> {
    const [leaf] = /-----BEGIN[^]+?-----END CERTIFICATE-----\n/.exec(certificate)!;
    const body = JSON.stringify({ Certificate: leaf, ARIResponse: text });
    const status = await this.asked("POST", this.ports.management, "/set-renewal-info/", body);
    if (status !== 200) throw new Error(`Pebble responded with ${status}`);
  }

  /** The address that a name has from now on. */
  async setAddress(name: string, address: string): Promise<void> {
    const host = `${name}.`;
    for (const [path, body] of [
      ["clear-a", { host }],
      ["add-a", { host, addresses: [address] }],
    ] as const)
      await this.askedOfDns("POST", `/${path}`, JSON.stringify(body));
  }

  get dnsManagementPort(): number {
    return this.ports.dnsManagement;
  }

  /** A text record more of a name. */
  async setText(name: string, value: string): Promise<void> {
    await this.askedOfDns("POST", "/set-txt", JSON.stringify({ host: `${name}.`, value }));
  }

  /** All text records of a name from now on. */
  async setTexts(name: string, values: readonly string[]): Promise<void> {
    await this.askedOfDns("POST", "/clear-txt", JSON.stringify({ host: `${name}.` }));
    for (const value of values) await this.setText(name, value);
  }

  /** Where a name leads from now on. */
  async setAlias(name: string, target: string): Promise<void> {
    await this.askedOfDns("POST", "/set-cname", JSON.stringify({ host: `${name}.`, target: `${target}.` }));
  }

  async stop(): Promise<void> {
    await Promise.all([killed(this.pebble), killed(this.dns)]);
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async startDns(): Promise<void> {
    const { dns, dnsManagement } = this.ports;
    const args = ["-dnsserver", `127.0.0.1:${dns}`, "-management", `127.0.0.1:${dnsManagement}`, ...SILENT];
    this.dns = spawn(DNS_SERVER, args, { stdio: "ignore" });
    await eventually(() => this.askedOfDns("GET", "/").then(() => true, no), "for the DNS server", SELDOM);
  }

  private asked(method: string, port: number, path: string, body?: string): Promise<number> {
    // Pebble refuses requests without a user agent.
    const headers = { "user-agent": "portico-tests" };
    const options = { host: "127.0.0.1", port, path, method, headers, agent: false };
    return statusOf(request({ ...options, ca: this.identity.cert }), body);
  }

  private askedOfDns(method: string, path: string, body?: string): Promise<number> {
    const options = { host: "127.0.0.1", port: this.ports.dnsManagement, path, method, agent: false };
    return statusOf(plainRequest(options), body);
  }
}

function statusOf(sent: ClientRequest, body: string | undefined): Promise<number> {
  return new Promise((resolve, reject) => {
    sent.on("response", (response) => {
      response.resume();
      response.on("end", () => resolve(response.statusCode!));
    });
    sent.on("error", reject).end(body);
  });
}

const no = (): boolean => false;
/** Each look is a connection. */
const SELDOM = { everyMs: 20 };

async function killed(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGKILL");
  await exited;
}
