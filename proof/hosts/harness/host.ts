import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmdirSync, rmSync } from "node:fs";
import { appendFile, mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { mustRun, type Result, runCommand, type RunOptions, startCommand, stopCommand } from "./commands.js";
import { hostImage, type Release, refuseMissingTools } from "./image.js";
import { Namespace } from "./namespace.js";
import { sharedTree } from "./tree.js";
import { eventually } from "../../../testkit/waiting.js";

export interface HostOptions {
  /** Host name; also tells its folder from others. */
  readonly name: string;
  /**
   * Static IPv4 address, prefix length 24; `.1` is the outside's. No two hosts see each other, so all may have the
   * same.
   * @default "203.0.113.10"
   */
  readonly address?: string;
  /**
   * Static IPv6 address, prefix length 64; `::1` is the outside's. `null` for a host without IPv6.
   * @default "2001:db8:113::10"
   */
  readonly address6?: string | null;
  /**
   * Debian packages besides those of the image; each set costs another image.
   * @default - none
   */
  readonly packages?: readonly string[];
  /**
   * Contents of files that are there at its first boot, by path; their folders exist.
   * @default - none
   */
  readonly files?: Readonly<Record<string, string>>;
  /**
   * Release of Debian.
   * @default - that of a suite which names none: `releaseOfSuite`
   */
  readonly release?: Release;
}

/** Boots a Debian with systemd and sshd, its network configured by systemd-networkd on `eth0`, and waits until it is up. */
export async function bootHost(options: HostOptions): Promise<TestHost> {
  await refuseMissingTools();
  await sweep();
  const image = await hostImage(options.packages, options.release);
  const host = new TestHost(options);
  try {
    await host.prepare(await sharedTree(image), options.files);
    await host.boot();
  } catch (error) {
    await host.stop();
    throw error;
  }
  return host;
}

const GENERATORS = [
  "cryptsetup",
  "debug",
  "getty",
  "gpt-auto",
  "hibernate-resume",
  "integritysetup",
  "veritysetup",
];
const UNIFIED = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((path) =>
  existsSync(`${path}/cgroup.procs`),
);
const FOLDER = /^portico-host-(\d+)-(\d+)-/;

/** A Debian of its own in a network of its own. */
export class TestHost {
  readonly name: string;
  readonly address: string;
  /** Empty for a host without IPv6. */
  readonly address6: string;
  /** Its folder on this machine, for files that are needed beside it. */
  readonly folder: string;
  /** Private key that root's `authorized_keys` holds; nothing else lets anybody in. */
  readonly sshKey: string;
  private readonly id: string;
  private world?: ChildProcess;
  /** Status of its last boot, once that has ended otherwise than for the next one. */
  private end: string | undefined;
  private gateway?: Namespace;

  /** @internal Made by `bootHost`. */
  constructor({ name, address = "203.0.113.10", address6 = "2001:db8:113::10" }: HostOptions) {
    this.name = name;
    this.address = address;
    this.address6 = address6 ?? "";
    this.folder = mkdtempSync(join(tmpdir(), `portico-host-${process.pid}-${startOf(process.pid)}-${name}-`));
    this.id = this.folder.split("/").at(-1)!;
    this.sshKey = join(this.folder, "id_ed25519");
  }

  /** The host's `/`, seen from this machine; `/run` and `/tmp` of a running host are elsewhere. */
  get root(): string {
    // It is mounted in the world's own namespace.
    return `/proc/${this.world!.pid}/root${this.mountPoint}`;
  }

  private get mountPoint(): string {
    return join(this.folder, "root");
  }

  /** Runs a shell command on the host as root. */
  async run(command: string, options: RunOptions = {}): Promise<Result> {
    return runCommand(this.inside(command), { env: ENVIRONMENT, ...options });
  }

  /** The same; a status other than 0 is an error that shows the output. Returns standard output. */
  async must(command: string, options: RunOptions = {}): Promise<string> {
    return mustRun(this.inside(command), { env: ENVIRONMENT, ...options });
  }

  /** Starts a command on the host; it ends with the host at the latest. */
  start(command: string): ChildProcess {
    return startCommand(this.inside(command), { env: ENVIRONMENT });
  }

  /** Copies a file of this machine. */
  async copyIn(from: string, to: string, mode = "0644"): Promise<void> {
    await this.write(to, await readFile(from), mode);
  }

  /** Writes a file; missing folders are made. */
  async write(path: string, content: string | Buffer, mode = "0644"): Promise<void> {
    const folder = path.replace(/\/[^/]*$/, "/");
    await this.must(`mkdir -p '${folder}' && cat > '${path}' && chmod ${mode} '${path}'`, { input: content });
  }

  /** The network outside: it reaches the host at its addresses, and nothing else. `lan` there is a bridge. */
  async outside(): Promise<Namespace> {
    return this.gateway!;
  }

  /** The public key that sshd shows, as `known_hosts` and a pinned key have it: type and key. */
  async hostKey(): Promise<string> {
    const line = await readFile(join(this.root, "etc/ssh/ssh_host_ed25519_key.pub"), "utf8");
    return line.split(" ").slice(0, 2).join(" ");
  }

  /** As `reboot` on the host does it: services are stopped, and everything starts anew. */
  async reboot(): Promise<void> {
    const before = this.leader();
    await this.run("systemctl reboot");
    await eventually(async () => this.leader() !== before, "until the host goes down", {
      everyMs: 100,
      // systemd waits for up to 90 s until a service has stopped.
      ms: 180_000,
    });
    await this.up();
  }

  /** Every process is gone at once, without a word; then it boots. */
  async powerCut(): Promise<void> {
    const ended = this.said();
    process.kill(this.leader()!, "SIGKILL");
    await ended;
    await this.boot();
  }

  /** Removes the host and its network. */
  async stop(): Promise<void> {
    this.gateway?.remove();
    if (this.world !== undefined && this.world.exitCode === null && this.world.signalCode === null) {
      const gone = new Promise((done) => this.world!.once("exit", done));
      stopCommand(this.world);
      await gone;
    }
    await removeTraces(this.id);
  }

  /** What the console showed since the last boot. */
  console(): Promise<string> {
    return readFile(`${this.mountPoint}.console`, "utf8");
  }

  /** @internal */
  async prepare(tree: string, files: Readonly<Record<string, string>> = {}): Promise<void> {
    await this.startWorld(tree);
    await mustRun(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "test", "-f", this.sshKey]);
    const file = (path: string): string => join(this.root, path);
    await mkdir(file("root/.ssh"), { recursive: true, mode: 0o700 });
    await writeFile(file("root/.ssh/authorized_keys"), await readFile(`${this.sshKey}.pub`), { mode: 0o600 });
    await writeFile(file("etc/hostname"), `${this.name}\n`);
    await appendFile(file("etc/hosts"), `127.0.1.1 ${this.name}\n`);
    // An empty id would make it a first boot, which enables whatever is installed.
    await writeFile(file("etc/machine-id"), `${randomBytes(16).toString("hex")}\n`);
    await writeFile(file("etc/systemd/network/10-eth0.network"), this.networkFile());
    // At each `systemctl daemon-reload` they look for disks and terminals, and a container has none.
    await mkdir(file("etc/systemd/system-generators"));
    for (const name of GENERATORS)
      await symlink("/dev/null", file(`etc/systemd/system-generators/systemd-${name}-generator`));
    for (const [path, content] of Object.entries(files)) await writeFile(file(path), content);
  }

  /** @internal */
  async boot(): Promise<void> {
    this.end = undefined;
    this.world!.stdin!.write("boot\n");
    await this.up();
  }

  private networkFile(): string {
    const families = [
      `Address=${this.address}/24`,
      `Gateway=${outsideOf(this.address)}`,
      ...(this.address6 === "" ? [] : [`Address=${this.address6}/64`, `Gateway=${outsideOf(this.address6)}`]),
    ];
    return ["[Match]", "Name=eth0", "", "[Network]", "IPv6AcceptRA=no", ...families, ""].join("\n");
  }

  private async startWorld(tree: string): Promise<void> {
    const outside = [`${outsideOf(this.address)}/24`];
    if (this.address6 !== "") outside.push(`${outsideOf(this.address6)}/64`);
    const group = `${UNIFIED}/${this.id}`;
    const script = `mkdir "$0"; echo $$ > "$0/cgroup.procs"; exec "$@"`;
    const unshare = "unshare --net --mount --cgroup --pid --mount-proc --fork --kill-child".split(" ");
    const boot = ["bash", join(__dirname, "boot.sh"), this.mountPoint, tree, this.name, ...outside];
    const world = startCommand(["bash", "-euc", script, group, ...unshare, ...boot]);
    this.world = world;
    let complaint = "";
    world.stderr!.on("data", (data) => (complaint += data));
    await new Promise((ready, failed) => {
      world.stdout!.once("data", ready);
      world.once("exit", (code) => failed(new Error(`the host's world ended with ${code}: ${complaint}`)));
    });
    world.stdout!.on("data", (status) => (this.end = String(status).trim()));
    this.gateway = new Namespace(world);
  }

  /** The next thing that the world says. */
  private said(): Promise<void> {
    return new Promise((done) => this.world!.stdout!.once("data", () => done()));
  }

  private async up(): Promise<void> {
    let state = "";
    const ask = async (): Promise<boolean> => {
      if (this.world!.exitCode !== null || this.end !== undefined)
        throw new Error(`the host ended with ${this.end}:\n${await this.console()}`);
      if (this.leader() === undefined) return false;
      // Now and then systemd does not tell whoever waits: then it is asked again.
      const asked = await this.run("systemctl is-system-running --wait", { timeoutSeconds: 10 });
      state = asked.stdout.trim();
      return state === "running" || state === "degraded";
    };
    await eventually(ask, `until ${this.name} is up`, { ms: 180_000, everyMs: 100 }).catch(
      async (error: Error) => {
        const jobs = this.leader() === undefined ? this.processes() : await this.run(WHAT_IT_WAITS_FOR);
        throw new Error(`${error.message}\n${await this.console()}\n${(await jobs).stdout}`);
      },
    );
    if (state === "degraded") {
      throw new Error(
        `units failed on ${this.name}:\n${await this.must("systemctl --failed; journalctl -b -p err")}`,
      );
    }
    await eventually(
      async () => (await this.gateway!.run(`: < /dev/tcp/${this.address}/22`)).code === 0,
      "until sshd responds",
      { everyMs: 100 },
    );
  }

  /** Those of the world without a host: what each is, and where in the kernel it waits. */
  private processes(): Promise<Result> {
    const [first] = childrenOf(this.world?.pid);
    return runCommand([
      "ps",
      "--forest",
      "-o",
      "pid,stat,wchan:30,args",
      "--pid",
      `${first}`,
      "--ppid",
      `${first}`,
    ]);
  }

  /** The container's manager, a child of the world's first process. */
  private nspawn(): number | undefined {
    const [first] = childrenOf(this.world?.pid);
    return childrenOf(first).find((pid) => nameOf(pid) === "systemd-nspawn");
  }

  /** Process 1 of the host. */
  private leader(): number | undefined {
    return childrenOf(this.nspawn()).find((pid) => nameOf(pid) === "systemd");
  }

  private inside(command: string): string[] {
    const leader = this.leader();
    if (leader === undefined) throw new Error(`${this.name} is not running`);
    const enter = [
      "nsenter",
      `--target=${leader}`,
      "--mount",
      "--uts",
      "--ipc",
      "--net",
      "--pid",
      "--cgroup",
    ];
    return [...enter, "--root", "--wd", "--", "bash", "-c", command];
  }
}

const WHAT_IT_WAITS_FOR = "systemctl is-system-running; systemctl list-jobs; journalctl -b -n 60 --no-pager";

/** What a login gives; nothing of this process leaks in. */
const ENVIRONMENT = { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", HOME: "/root", LANG: "C.UTF-8", TERM: "dumb" };

function outsideOf(address: string): string {
  return address.includes(":") ? address.replace(/::.*$/, "::1") : address.replace(/\.\d+$/, ".1");
}

function childrenOf(pid: number | undefined): number[] {
  if (pid === undefined) return [];
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number);
  } catch {
    return [];
  }
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  } catch {
    return "";
  }
}

/** When a process began, in clock ticks; with it a number that was given again is told from the old one. */
function startOf(pid: number): string {
  try {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8");
    return fields.slice(fields.lastIndexOf(")") + 2).split(" ")[19]!;
  } catch {
    return "";
  }
}

/** Hosts of processes that were killed: theirs died with them, but not the folders and control groups. */
async function sweep(): Promise<void> {
  const names = [...readdirSync(tmpdir()), ...(UNIFIED === undefined ? [] : readdirSync(UNIFIED))];
  for (const name of new Set(names)) {
    const [, pid, start] = FOLDER.exec(name) ?? [];
    if (pid !== undefined && startOf(Number(pid)) !== start) await removeTraces(name);
  }
}

async function removeTraces(id: string): Promise<void> {
  rmSync(join(tmpdir(), id), { recursive: true, force: true });
  const group = `${UNIFIED}/${id}`;
  if (!existsSync(group)) return;
  // Processes that were killed a moment ago may still be leaving.
  await eventually(async () => removeGroup(group), `until control group ${id} is empty`, {
    everyMs: 100,
  });
}

function removeGroup(group: string): boolean {
  try {
    const below = readdirSync(group, { withFileTypes: true }).filter((entry) => entry.isDirectory());
    if (!below.every((entry) => removeGroup(join(group, entry.name)))) return false;
    rmdirSync(group);
    return true;
  } catch {
    // Another run may sweep at the same moment.
    return !existsSync(group);
  }
}
