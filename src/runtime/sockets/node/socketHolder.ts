import type { ListenOptions } from "node:net";
import { constants } from "node:os";
import { Worker } from "node:worker_threads";
import { listeningSockets, ownSockets } from "./listeningSockets.js";

/** A bound TCP socket that stays open whatever happens to the workers, and from which this process does not accept. */
export interface BoundSocket {
  readonly fd: number;
  /** Can be sent to another process of Node, which may listen on it. */
  readonly handle?: object;
  readonly address: string;
  readonly port: number;
  close(): void;
}

/**
 * Binds a socket with public names only. `server.listen` would accept in this process, so a thread does it and goes to
 * sleep in the callback that says it listens: its event loop never runs again, and connections wait for the workers.
 *
 * @param options where to listen, or the descriptor of a socket that is bound
 * @returns the socket, or an errno
 */
export function holdSocket(options: ListenOptions & { readonly fd?: number }): BoundSocket | number {
  const shared = new SharedArrayBuffer(SHARED_BYTES);
  const state = new Int32Array(shared, 0, 2);
  const before = ownSockets();
  const thread = new Worker(HOLDER, { eval: true, execArgv: [], workerData: { options, shared } });
  thread.unref();
  // If it fails, it does not respond.
  thread.on("error", () => undefined);
  if (Atomics.wait(state, 0, HolderState.Nothing, WAIT_MS) === "timed-out") return -constants.errno.ETIMEDOUT;
  if (state[0] === HolderState.Failed) return state[1]!;
  const text = Buffer.from(new Uint8Array(shared, 8, state[1]));
  const { address, port } = JSON.parse(text.toString()) as { address?: string; port?: number };
  const fd = options.fd ?? addedListener(before, port!);
  const close = (): void => {
    Atomics.store(state, 0, HolderState.ToClose);
    Atomics.notify(state, 0);
    Atomics.wait(state, 0, HolderState.ToClose, WAIT_MS);
  };
  if (fd !== undefined) return { fd, address: address ?? "", port: port ?? 0, close };
  close();
  return -constants.errno.EBADF;
}

const enum HolderState {
  Nothing,
  Failed,
  Listens,
  ToClose,
  Closed,
}

/** A state, a number, and an address in JSON. */
const SHARED_BYTES = 1024;
const WAIT_MS = 10_000;

/** The holder is text and not an import, because the deployed runtime is a single file. */
const HOLDER = `
const { options, shared } = require("node:worker_threads").workerData;
const state = new Int32Array(shared, 0, 2);
const publish = (what, number) => {
  state[1] = number;
  Atomics.store(state, 0, what);
  Atomics.notify(state, 0);
};
const server = require("node:net").createServer();
const fail = (error) => publish(${HolderState.Failed}, error.errno ?? ${-constants.errno.EINVAL});
server.on("error", fail);
const listening = () => {
  const at = server.address();
  const text = Buffer.from(JSON.stringify(typeof at === "string" ? {} : at));
  new Uint8Array(shared, 8).set(text);
  publish(${HolderState.Listens}, text.length);
  Atomics.wait(state, 0, ${HolderState.Listens});
  server.close();
  publish(${HolderState.Closed}, 0);
};
try {
  server.listen(options, listening);
} catch (error) {
  fail(error);
}
`;

/** The new descriptor, of a socket that listens on the port. */
function addedListener(before: ReadonlyMap<number, string>, port: number): number | undefined {
  const onPort = listeningSockets().filter((socket) => socket.port === port);
  const listening = new Set(onPort.map(({ inode }) => inode));
  for (const [fd, inode] of ownSockets()) {
    if (before.get(fd) !== inode && listening.has(inode)) return fd;
  }
  return undefined;
}
