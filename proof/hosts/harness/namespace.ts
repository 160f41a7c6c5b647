import type { ChildProcess } from "node:child_process";
import { mustRun, type Result, runCommand, type RunOptions, startCommand, stopCommand } from "./commands.js";

/** A network of its own: what runs in it sees only its own interfaces. */
export class Namespace {
  private readonly started: ChildProcess[] = [];

  /** @param holder a process that lives in the namespace, and with it the namespace */
  constructor(private readonly holder: ChildProcess) {}

  /** A new, empty one (loopback is up). */
  static async create(): Promise<Namespace> {
    const holder = startCommand([
      "unshare",
      "--net",
      "sh",
      "-c",
      "ip link set lo up && echo && exec sleep infinity",
    ]);
    await new Promise((ready, failed) => {
      holder.stdout!.once("data", ready);
      holder.once("exit", () => failed(new Error("no network namespace could be made")));
    });
    return new Namespace(holder);
  }

  /** A process in it, for `ip link … netns PID`. */
  get pid(): number {
    return this.holder.pid!;
  }

  /** Runs a shell command in this network, on the files of this machine. */
  run(command: string, options?: RunOptions): Promise<Result> {
    return runCommand(this.argv(command), options);
  }

  /** The same; a status other than 0 is an error. */
  must(command: string, options?: RunOptions): Promise<string> {
    return mustRun(this.argv(command), options);
  }

  /** Starts a command that ends with the namespace at the latest. */
  start(command: string, options?: Pick<RunOptions, "env" | "cwd">): ChildProcess {
    const child = startCommand(this.argv(command), options);
    this.started.push(child);
    return child;
  }

  /**
   * A cable to another namespace.
   *
   * @param here name and addresses (with prefix length) of this end
   * @param there of the other end; a `bridge` in its namespace takes it as a port
   */
  async connect(other: Namespace, here: CableEnd, there: CableEnd): Promise<void> {
    await this.must(`ip link add ${here.name} type veth peer name ${there.name} netns ${other.pid}`);
    await this.configure(here);
    await other.configure(there);
  }

  /** Ends what was started here; the namespace vanishes with its last process. */
  remove(): void {
    this.started.forEach((child) => stopCommand(child));
    stopCommand(this.holder);
  }

  private async configure({ name, addresses = [], bridge, gateways = [] }: CableEnd): Promise<void> {
    const family = (address: string): string => (address.includes(":") ? "-6" : "-4");
    await this.must(
      [
        ...(bridge === undefined ? [] : [`ip link set ${name} master ${bridge}`]),
        `ip link set ${name} up`,
        // Duplicate address detection would keep an address from use for a second.
        ...addresses.map((a) => `ip address add ${a} dev ${name}${a.includes(":") ? " nodad" : ""}`),
        ...gateways.map((a) => `ip ${family(a)} route add default via ${a}`),
      ].join(" && "),
    );
  }

  private argv(command: string): string[] {
    return ["nsenter", `--net=/proc/${this.pid}/ns/net`, "bash", "-c", command];
  }
}

export interface CableEnd {
  /** Name of the interface, at most 15 characters. */
  readonly name: string;
  /** With prefix length. */
  readonly addresses?: readonly string[];
  readonly bridge?: string;
  /** Default routes, at most one a family. */
  readonly gateways?: readonly string[];
}
