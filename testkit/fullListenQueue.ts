import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import * as net from "node:net";

/** Listens, and accepts nothing. */
const HANGS = `
const server = require("node:net").createServer();
server.listen({ path: process.argv[1], backlog: 1 }, () => {
  require("node:fs").writeSync(1, "listens");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
});
`;

/** A Unix socket of which the listen queue is full: connect() gives EAGAIN, where a port would let the kernel try again. */
export class FullListenQueue {
  private constructor(
    private readonly path: string,
    private readonly process: ChildProcess,
    private readonly waiting: readonly net.Socket[],
  ) {}

  /** It stands at its path only once the queue is full. */
  static async at(path: string): Promise<FullListenQueue> {
    const filled = `${path}.filled`;
    const child = spawn(process.execPath, ["-e", HANGS, filled], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout!, "data");
    const waiting = await fillListenQueue(filled);
    renameSync(filled, path);
    return new FullListenQueue(path, child, waiting);
  }

  end(): void {
    rmSync(this.path, { force: true });
    this.process.kill("SIGKILL");
    for (const socket of this.waiting) socket.destroy();
  }
}

/** Fills the listen queue of a process that accepts nothing. @returns the connections that wait in it */
export async function fillListenQueue(path: string): Promise<net.Socket[]> {
  const waiting: net.Socket[] = [];
  for (;;) {
    const socket = net.connect(path);
    const error = await once(socket, "connect").then(
      () => undefined,
      (failed: NodeJS.ErrnoException) => failed,
    );
    if (error === undefined) waiting.push(socket.on("error", () => undefined));
    else if (error.code === "EAGAIN") return waiting;
    else throw error;
  }
}
