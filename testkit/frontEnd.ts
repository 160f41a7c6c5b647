import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { TerraformStack, Testing } from "cdktf";
import {
  Application,
  FrontEnd as FrontEndOnHost,
  type FrontEndProps,
  Mode,
  type ReverseProxyProps,
  TlsMaterial,
  TlsPolicy,
} from "../src/constructs/index.js";
import type { ProxyConfigInput } from "../src/model/index.js";
import { dhParametersPem, proxyConfigText } from "../src/render/index.js";
import { freePorts } from "./ports.js";
import { sharedBundle } from "./sharedBundle.js";
import { sharedFile } from "./sharedFile.js";
import { publicFolder } from "./publicFolder.js";

const HOST = "127.0.0.1";

export interface FrontEndOptions {
  /** Ports of the daemons on loopback. */
  readonly upstreams: { readonly web: number; readonly fileServer: number; readonly webdav: number };
  /** Settings of the proxy as a whole. */
  readonly proxy?: Omit<ReverseProxyProps, "host" | "paths">;
  /** Default: the front end's own. */
  readonly policy?: TlsPolicy;
  /** Files below the media directory. */
  readonly media?: Readonly<Record<string, string | Buffer>>;
  /** Longest time between two reads of a request body. */
  readonly requestBodyTimeoutMs?: number;
  /** Default: none. Addresses of clients on loopback have to come from a proxy in `trustedProxies`. */
  readonly passwordGuard?: FrontEndProps["passwordGuard"];
  /** A last change to the config that is deployed. */
  readonly change?: (config: ProxyConfigInput) => ProxyConfigInput;
  /** Environment and limits of the proxy: a command that runs the rest of its arguments. */
  readonly under?: readonly string[];
  /** Options of Node for the master, which passes them on to its workers. */
  readonly nodeOptions?: readonly string[];
}

/**
 * The proxy as bundled from the sources as they are, on the config that a front end deploys, on free ports of
 * loopback.
 */
export interface FrontEnd {
  /** The application over plain HTTP. A deployed TLS mode only redirects there; here one proxy serves both. */
  readonly plainPort: number;
  readonly tlsPort: number;
  /** Where its config, TLS files, logs and media lie. */
  readonly folder: string;
  readonly logDirectory: string;
  /** Path of the master's control socket. */
  readonly control: string;
  /** The master. */
  readonly process: ChildProcess;
  /** Text of the error stream so far. */
  stderr(): string;
  stop(): Promise<void>;
}

export async function startFrontEnd(options: FrontEndOptions): Promise<FrontEnd> {
  const folder = publicFolder("portico-front-end-");
  // The media directory has to be readable for others (service 2.8).
  const [plainPort, tlsPort, redirectPort] = await freePorts(3);
  const paths = { folder, logDirectory: join(folder, "logs"), config: join(folder, "portico.json") };
  writeTlsFiles(folder, JSON.parse(readFileSync(await issued(), "utf8")) as Issued);
  mkdirSync(join(folder, "media"));
  for (const [name, content] of Object.entries(options.media ?? {})) {
    mkdirSync(join(folder, "media", name, ".."), { recursive: true });
    writeFileSync(join(folder, "media", name), content, { mode: 0o644 });
  }
  const ports = { plainPort: plainPort!, tlsPort: tlsPort!, redirectPort: redirectPort! };
  writeFileSync(paths.config, deployedConfig(folder, ports, options));
  const file = await sharedBundle();
  const node = [process.execPath, ...(options.nodeOptions ?? []), file];
  const [command, ...args] = [...(options.under ?? []), ...node];
  const child = spawn(command!, [...args, "serve", paths.config], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, RUNTIME_DIRECTORY: runtimeOf(folder) },
  });
  let stderr = "";
  child.stderr.on("data", (chunk: Buffer) => (stderr += chunk.toString()));
  await ready(child, () => stderr);
  return {
    ...ports,
    folder,
    logDirectory: paths.logDirectory,
    control: join(folder, "run/control.sock"),
    process: child,
    stderr: () => stderr,
    stop: async () => {
      if (child.exitCode === null && child.signalCode === null) {
        const exited = once(child, "exit");
        child.kill("SIGTERM");
        setTimeout(() => child.kill("SIGTERM"), 5_000).unref();
        await exited;
      }
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

interface Ports {
  readonly plainPort: number;
  readonly tlsPort: number;
  readonly redirectPort: number;
}

/** What is deployed, but on loopback, and with the application on a plain listener as well. */
function deployedConfig(folder: string, ports: Ports, options: FrontEndOptions): string {
  const { web, fileServer, webdav } = options.upstreams;
  const material = TlsMaterial.fromFiles({
    certificate: join(folder, "cacert.pem"),
    key: join(folder, "privkey.pem"),
    dhparam: join(folder, "dhparam2048.pem"),
  });
  const frontEnd = new FrontEndOnHost(new TerraformStack(Testing.app(), "stack"), "FrontEnd", {
    host: { address: HOST },
    mode: Mode.tls({
      httpPort: ports.redirectPort,
      httpsPort: ports.tlsPort,
      publicPort: 443,
      material,
      policy: options.policy ?? TlsPolicy.fileSync(),
    }),
    application: Application.fileSync({ installDirectory: folder }),
    upstreams: {
      web: { url: `http://${HOST}:${web}` },
      fileServer: { url: `http://${HOST}:${fileServer}` },
      webdav: { url: `http://${HOST}:${webdav}` },
    },
    requestBodyTimeoutMs: options.requestBodyTimeoutMs,
    passwordGuard: options.passwordGuard,
    paths: { defaultPageDirectory: folder, logDirectory: join(folder, "logs") },
    proxy: { workers: 1, ...options.proxy },
  });
  const { config } = frontEnd.proxy;
  const plain = { name: "plain", address: HOST, port: ports.plainPort, protocol: "http" as const };
  const changed: ProxyConfigInput = {
    ...config,
    listeners: [...config.listeners.map((l) => ({ ...l, address: HOST })), plain],
    virtualServers: config.virtualServers.map((server) =>
      server.name === "application" ? { ...server, listeners: [...server.listeners, "plain"] } : server,
    ),
  };
  return proxyConfigText(options.change?.(changed) ?? changed);
}

/** A key, and a certificate of it by itself. */
interface Issued {
  readonly key: string;
  readonly certificate: string;
}

// One for all front ends: it takes longer to make than a proxy to start, and so do its modules to load.
const issued = (): Promise<string> =>
  sharedFile("front-end.json", async (file) =>
    writeFileSync(file, JSON.stringify(await issue()), { mode: 0o600 }),
  );

async function issue(): Promise<Issued> {
  const { privateKey, selfSignedCertificate } = await import("../demo/tlsResources.js");
  const { private_key_pem: key } = privateKey({ algorithm: "RSA", rsa_bits: 2048 });
  const { cert_pem: certificate } = await selfSignedCertificate({
    private_key_pem: key,
    subject: [{ common_name: HOST }],
    ip_addresses: [HOST],
    // As deployed (service 3.1).
    validity_period_hours: 24 * 3650,
    allowed_uses: ["digital_signature", "key_encipherment", "server_auth"],
  });
  return { key: key!, certificate: certificate! };
}

function writeTlsFiles(folder: string, { key, certificate }: Issued): void {
  writeFileSync(join(folder, "cacert.pem"), certificate);
  writeFileSync(join(folder, "privkey.pem"), key, { mode: 0o600 });
  writeFileSync(join(folder, "dhparam2048.pem"), dhParametersPem());
}

function ready(child: ChildProcess, stderr: () => string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.stdout!.once("data", () => resolve());
    child.once("exit", (code) =>
      reject(new Error(`the proxy exited with ${code}; was it built? (npm run build)\n${stderr()}`)),
    );
  });
}

/** Where its control socket is: nothing is served from that directory. */
function runtimeOf(folder: string): string {
  const runtime = join(folder, "run");
  mkdirSync(runtime, { recursive: true });
  return runtime;
}
