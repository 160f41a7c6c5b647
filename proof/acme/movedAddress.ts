import { execFileSync } from "node:child_process";

/**
 * Addresses of two hosts' names, which one of them has at a time: on the loopback interface, as this machine is both
 * hosts. Each is in 127.0.0.0/8, where listeners can be opened whether an interface has it or not.
 */
export class MovedAddress {
  readonly addresses: readonly [string, string];
  private holder: string | undefined;

  constructor() {
    const { pid } = process;
    const network = `127.${64 + ((pid >> 16) & 63)}.${(pid >> 8) & 255}`;
    // An even number and the next one: runs at the same time have others.
    const first = (2 * pid) & 254;
    this.addresses = [`${network}.${first}`, `${network}.${first + 1}`];
  }

  /** Gives the address to one of the two, and takes it from the other. */
  moveTo(host: 0 | 1 | undefined): void {
    if (this.holder !== undefined) ip("delete", this.holder);
    this.holder = host === undefined ? undefined : this.addresses[host];
    if (this.holder !== undefined) ip("add", this.holder);
  }
}

const ip = (change: "add" | "delete", address: string): void => {
  execFileSync("ip", ["address", change, `${address}/32`, "dev", "lo"]);
};
