import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { renameSync, rmSync } from "node:fs";
import * as net from "node:net";
import { nextEvent } from "./waiting.js";

/** Listens, and accepts nothing; not for ever, should nobody end it. */
const HANGS = `
const server = require("node:net").createServer();
server.listen({ path: process.argv[1], backlog: 1 }, () => {
  require("node:fs").writeSync(1, "listens");
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60_000);
  process.exit();
});
`;

/** A Unix socket of which the listen queue is full: connect() gives EAGAIN, where a port would let the kernel try again. */
export class FullListenQueue {
  private constructor(
    private readonly path: string,
    private readonly process: ChildProcess,
    private readonly waiting: readonly net.Socket[],
  ) {}

  /** The queue is full when it is made; {@link takePlace} puts it at the path. */
  static async make(path: string): Promise<FullListenQueue> {
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, ["-e", HANGS, draftOf(path)], { stdio: [...stdio] });
    try {
      await nextEvent(child.stdout!, "data");
      return new FullListenQueue(path, child, await fillListenQueue(draftOf(path)));
    } catch (error) {
      child.kill("SIGKILL");
      throw error;
    }
  }

  takePlace(): void {
    renameSync(draftOf(this.path), this.path);
  }

  end(): void {
    rmSync(this.path, { force: true });
    this.process.kill("SIGKILL");
    for (const socket of this.waiting) socket.destroy();
  }
}

const draftOf = (path: string): string => `${path}.full`;

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
