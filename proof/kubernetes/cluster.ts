import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { eventually } from "../../testkit/waiting.js";
import {
  containerdConfig,
  dnsConfig,
  kubeconfig,
  kubeletConfig,
  podNetwork,
  proxyConfig,
} from "./settings.js";

export interface ClusterOptions {
  /** Holds everything that the cluster writes. */
  readonly folder: string;
  /** Kubernetes, as `cluster/build.sh` leaves it. */
  readonly programs: string;
  /** Control group of the pods. */
  readonly group: string;
}

export interface Applied {
  readonly ok: boolean;
  /** What kubectl warned of, or why it failed. */
  readonly warned: string;
}

export const NODE_ADDRESS = "10.99.0.1";
export const NODE_NAME = "node1";

type Program = "etcd" | "api" | "controllers" | "scheduler" | "containerd" | "kubelet" | "proxy" | "dns";

/**
 * A control plane and one node. Everything ends with the namespaces that `run.sh` started it in; nothing is ended here.
 */
export class Cluster {
  private readonly children = new Map<Program, ChildProcess>();
  private readonly config: string;

  private constructor(private readonly options: ClusterOptions) {
    this.config = join(options.folder, "kubeconfig");
  }

  /** Resolves when the node is ready. */
  static async start(options: ClusterOptions, images: readonly string[]): Promise<Cluster> {
    const cluster = new Cluster(options);
    cluster.writeSettings();
    cluster.run("etcd");
    cluster.run("containerd");
    cluster.run("api");
    await cluster.import(images);
    await eventually(
      async () => (await cluster.ran(["get", "--raw", "/readyz"])).out === "ok",
      "for the API server to be ready",
      { ...WAITING, seen: () => cluster.logOf("api") },
    );
    for (const program of ["controllers", "scheduler", "kubelet", "proxy", "dns"] as const)
      cluster.run(program);
    await eventually(async () => (await cluster.ran(["get", "node", NODE_NAME])).ok, "for the node", WAITING);
    await cluster.kubectl(["wait", "--for=condition=Ready", `node/${NODE_NAME}`, "--timeout=60s"]);
    return cluster;
  }

  /** Runs kubectl and gives what it printed. */
  async kubectl(args: readonly string[]): Promise<string> {
    const { ok, out, errors } = await this.ran(args);
    if (!ok) throw new Error(`kubectl ${args.join(" ")}: ${errors.trim()}`);
    return out;
  }

  /** Applies objects. */
  async apply(objects: readonly object[], ...options: readonly string[]): Promise<Applied> {
    const list = JSON.stringify({ apiVersion: "v1", kind: "List", items: objects });
    const { ok, errors } = await this.ran(["apply", "-f", "-", ...options], list);
    return { ok, warned: errors.trim() };
  }

  async get<T>(...args: readonly string[]): Promise<T> {
    return JSON.parse(await this.kubectl(["get", ...args, "-o", "json"])) as T;
  }

  /** Prints each state of an object as it becomes so, until it is ended. */
  watch(...args: readonly string[]): ChildProcess {
    return this.spawnKubectl(["get", ...args, "--watch"]);
  }

  /** Ends a program without a word, as a crash does. */
  async crash(program: Program): Promise<void> {
    const child = this.children.get(program)!;
    child.removeAllListeners("exit");
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  }

  /** Starts a program; as under systemd it is started again if it ends, a few times. */
  run(program: Program, attempts = ATTEMPTS_MAX): void {
    const { command, args } = this.commandOf(program);
    const log = openSync(join(this.options.folder, `${program}.log`), "a");
    const child = spawn(command, args, { cwd: this.options.folder, stdio: ["ignore", log, log] });
    closeSync(log);
    this.children.set(program, child);
    child.on("error", (error) => fail(`${command} cannot be run: ${error.message}`));
    child.on("exit", (code, signal) => {
      if (attempts === 1) fail(`${program} ended with ${code ?? signal}:\n${this.logOf(program)}`);
      setTimeout(() => this.run(program, attempts - 1), 1_000);
    });
  }

  /** The end of what a program wrote. */
  logOf(program: Program): string {
    return readFileSync(join(this.options.folder, `${program}.log`), "utf8").slice(-3_000);
  }

  private spawnKubectl(args: readonly string[]) {
    const env = { ...process.env, KUBECONFIG: this.config };
    return spawn(join(this.options.programs, "kubectl"), args, { env, stdio: "pipe" });
  }

  private async ran(args: readonly string[], input = "") {
    const child = this.spawnKubectl(args);
    child.stdin.end(input);
    const ended = once(child, "close") as Promise<[number]>;
    const [out, errors, [code]] = await Promise.all([text(child.stdout), text(child.stderr), ended]);
    return { ok: code === 0, out, errors };
  }

  private async import(images: readonly string[]): Promise<void> {
    const socket = join(this.options.folder, CONTAINERD_SOCKET);
    await eventually(() => existsSync(socket), "for containerd to listen", WAITING);
    for (const image of images)
      execFileSync("ctr", ["-a", socket, "-n", "k8s.io", "images", "import", image]);
  }

  private writeSettings(): void {
    const { folder, group } = this.options;
    for (const name of ["certs", "cni", "containerd"]) mkdirSync(join(folder, name), { recursive: true });
    const write = (name: string, text: string): void =>
      writeFileSync(join(folder, name), text, { mode: 0o600 });
    const token = randomBytes(16).toString("hex");
    execFileSync("openssl", ["genrsa", "-out", join(folder, "certs/sa.key"), "2048"], { stdio: "ignore" });
    write("certs/tokens.csv", `${token},admin,admin,"system:masters"\n`);
    write("kubeconfig", kubeconfig(API_PORT, token));
    write("cni/pods.conflist", podNetwork());
    write("containerd/config.toml", containerdConfig(folder, CONTAINERD_SOCKET));
    write("kubelet.yaml", kubeletConfig({ folder, group, socket: CONTAINERD_SOCKET, address: NODE_ADDRESS }));
    write("proxy.yaml", proxyConfig({ kubeconfig: this.config, node: NODE_NAME, address: NODE_ADDRESS }));
    write("Corefile", dnsConfig({ kubeconfig: this.config, address: NODE_ADDRESS }));
  }

  private commandOf(program: Program): { readonly command: string; readonly args: readonly string[] } {
    const { folder, programs } = this.options;
    const own = (name: string, args: readonly string[]) => ({ command: join(programs, name), args });
    const config = `--kubeconfig=${this.config}`;
    switch (program) {
      case "etcd":
        return { command: "etcd", args: ["--data-dir", join(folder, "etcd"), ...ETCD] };
      case "containerd":
        return { command: "containerd", args: ["-c", join(folder, "containerd/config.toml")] };
      case "api":
        return own("kube-apiserver", API);
      case "controllers":
        return own("kube-controller-manager", [config, ...CONTROLLERS]);
      case "scheduler":
        return own("kube-scheduler", [config, "--leader-elect=false", "--bind-address=127.0.0.1"]);
      case "kubelet":
        return own("kubelet", [
          config,
          `--config=${join(folder, "kubelet.yaml")}`,
          `--root-dir=${join(folder, "kubelet")}`,
          `--hostname-override=${NODE_NAME}`,
          `--node-ip=${NODE_ADDRESS}`,
        ]);
      case "proxy":
        return own("kube-proxy", [`--config=${join(folder, "proxy.yaml")}`]);
      case "dns":
        return own("coredns", ["-conf", join(folder, "Corefile")]);
    }
  }
}

const ATTEMPTS_MAX = 5;
const WAITING = { ms: 120_000, everyMs: 200 };
const CONTAINERD_SOCKET = "containerd/c.sock";
const API_PORT = 16443;
const ETCD_URL = "http://127.0.0.1:23790";

/** It need not survive a power cut. */
const ETCD = [
  `--listen-client-urls=${ETCD_URL}`,
  `--advertise-client-urls=${ETCD_URL}`,
  "--listen-peer-urls=http://127.0.0.1:23800",
  "--initial-advertise-peer-urls=http://127.0.0.1:23800",
  "--initial-cluster=default=http://127.0.0.1:23800",
  "--unsafe-no-fsync",
];

const API = [
  `--etcd-servers=${ETCD_URL}`,
  `--secure-port=${API_PORT}`,
  "--bind-address=127.0.0.1",
  `--advertise-address=${NODE_ADDRESS}`,
  "--cert-dir=certs",
  "--kubelet-preferred-address-types=InternalIP",
  "--service-cluster-ip-range=10.96.0.0/16",
  "--service-account-key-file=certs/sa.key",
  "--service-account-signing-key-file=certs/sa.key",
  "--service-account-issuer=https://kubernetes.default.svc",
  "--authorization-mode=RBAC",
  "--token-auth-file=certs/tokens.csv",
];

const CONTROLLERS = [
  "--service-account-private-key-file=certs/sa.key",
  "--root-ca-file=certs/apiserver.crt",
  "--leader-elect=false",
  "--allocate-node-cidrs=false",
  "--bind-address=127.0.0.1",
];

function fail(message: string): never {
  console.error(`kubernetes: ${message}`);
  process.exit(2);
}
