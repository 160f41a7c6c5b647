import { getSystemErrorName } from "node:util";
import type { BoundSocket } from "../sockets/node/socketHolder.js";
import {
  canonicalIpv6,
  endpoint,
  isIpv6,
  type ListenerConfig,
  type Problem,
  problem,
  type Result,
} from "../../model/serving.js";
import { listenOwner } from "./listenOwner.js";
import { bind, socketOf } from "../sockets/node/boundSockets.js";

/** A bound socket that the master keeps open, so that it keeps listening whatever happens to the workers. */
export interface ListenSocket {
  /** The socket's descriptor, which workers inherit. */
  readonly fd: number;
  /** Node's handle of the socket, for workers that run already; undefined if this Node lacks the piece. */
  readonly handle?: object | undefined;
}

/** A bound socket that this process was started with. */
export interface PassedSocket {
  readonly fd: number;
  /** The socket's source, for messages. */
  readonly name: string;
  /** Whether portico bound it itself, so that it can do so again. */
  readonly own: boolean;
}

/** All listening sockets of the master: its own, and those that systemd passed in. Nothing is accepted here. */
export class ListenSockets {
  private readonly own = new Map<string, BoundSocket>();
  private readonly inherited: InheritedSocket[] = [];

  /** @param env has systemd's variables for passed sockets (sd_listen_fds(3)), which are removed */
  constructor(env: NodeJS.ProcessEnv = process.env) {
    this.adopt(passedBySystemd(env));
  }

  /** Takes over sockets that came with this process. */
  adopt(sockets: readonly PassedSocket[]): void {
    for (const socket of sockets) {
      const { handle, key, name } = openPassed(socket);
      if (socket.own && handle !== undefined) this.own.set(key, handle);
      else this.inherited.push({ handle, key, name });
    }
  }

  /** All sockets, to be passed to a new process. */
  passable(): PassedSocket[] {
    const own = [...this.own.values()].map(({ fd }) => ({ fd, name: "portico", own: true }));
    const inherited = this.inherited.flatMap(({ handle, name }) =>
      handle === undefined ? [] : [{ fd: handle.fd, name, own: false }],
    );
    return [...inherited, ...own];
  }

  /**
   * A socket for every listener, by listener name: one that is open already, one of systemd's, or a new one.
   * On failure nothing has changed.
   */
  acquire(listeners: readonly ListenerConfig[]): Result<Map<string, ListenSocket>> {
    const sockets = new Map<string, ListenSocket>();
    const added: string[] = [];
    const problems: Problem[] = [];
    listeners.forEach((listener, i) => {
      const key = keyOf(listener.address, listener.port);
      const held = this.inherited.find((socket) => socket.key === key)?.handle ?? this.own.get(key);
      if (held !== undefined) return void sockets.set(listener.name, held);
      const bound = bind(listener.address, listener.port);
      if (typeof bound === "number") return void problems.push(this.explain(bound, listener, i));
      this.own.set(key, bound);
      added.push(key);
      sockets.set(listener.name, bound);
    });
    if (problems.length === 0) return { ok: true, value: sockets };
    for (const key of added) this.close(key);
    return { ok: false, problems };
  }

  /** Closes the sockets that none of these listeners uses. Those from systemd stay: they cannot be opened again. */
  keepOnly(listeners: readonly ListenerConfig[]): void {
    const used = new Set(listeners.map((l) => keyOf(l.address, l.port)));
    for (const key of [...this.own.keys()]) if (!used.has(key)) this.close(key);
  }

  /** Sockets from systemd that no listener accepts from: clients would wait there without a response. */
  unused(listeners: readonly ListenerConfig[]): Problem[] {
    const used = new Set(listeners.map((l) => keyOf(l.address, l.port)));
    return this.inherited
      .filter(({ key }) => !used.has(key))
      .map(({ key, name }) =>
        problem("listen.unused-socket", name, `was passed by systemd, but no listener listens on ${key}`),
      );
  }

  closeAll(): void {
    for (const key of [...this.own.keys()]) this.close(key);
    for (const { handle } of this.inherited.splice(0)) handle?.close();
  }

  private close(key: string): void {
    this.own.get(key)!.close();
    this.own.delete(key);
  }

  private explain(errno: number, listener: ListenerConfig, index: number): Problem {
    const path = `listeners[${index}]`;
    const at = keyOf(listener.address, listener.port);
    const error = getSystemErrorName(errno);
    const taken = error === "EADDRINUSE" ? this.inUseByUs(listener, path, at) : undefined;
    return taken ?? listenProblem(error, path, listener, error === "EACCES" ? this.socketUnitFix(at) : {});
  }

  private inUseByUs(listener: ListenerConfig, path: string, at: string): Problem | undefined {
    // Our own socket at `0.0.0.0:80` blocks `192.0.2.1:80`, but has to stay open until the new one is bound.
    const ours = [...this.own.keys(), ...this.inherited.map(({ key }) => key)].find(
      (key) => key.endsWith(`:${listener.port}`) && isIpv6(listener.address) === key.startsWith("["),
    );
    if (ours === undefined) return undefined;
    const message = `cannot listen on ${at} while portico itself listens on ${ours}`;
    return problem("listen.address-in-use", path, message, {
      fix: "Restart portico: it cannot change this address while it runs.",
    });
  }

  private socketUnitFix(at: string): { fix?: string } {
    return this.inherited.length === 0
      ? {}
      : { fix: `Add ListenStream=${at} to the socket unit, and restart the socket unit.` };
  }
}

/**
 * Why nothing can listen there.
 *
 * @param error name of the system's error
 * @param path the field that says where
 */
export function listenProblem(
  error: string,
  path: string,
  { address, port }: Pick<ListenerConfig, "address" | "port">,
  more: { fix?: string } = {},
): Problem {
  const at = keyOf(address, port);
  switch (error) {
    case "EADDRINUSE": {
      const owner = listenOwner(address, port)?.text;
      const message = `cannot listen on ${at}: ${owner ?? "another process"} already listens there`;
      const fix = owner === undefined ? {} : { fix: `Stop ${owner}, or choose another port.` };
      return problem("listen.address-in-use", path, message, fix);
    }
    case "EACCES":
      return problem("listen.permission-denied", path, `may not listen on ${at}`, more);
    case "EADDRNOTAVAIL":
      return problem(
        "listen.address-not-available",
        path,
        `cannot listen on ${at}: this host does not have the address`,
      );
    default:
      return problem("listen.failed", path, `cannot listen on ${at}: ${error}`);
  }
}

/** `192.0.2.1:80` or `[2001:db8::1]:80`: identifies a socket, also in messages. */
export function keyOf(address: string, port: number): string {
  return endpoint({ host: canonicalIpv6(address) ?? address, port });
}

interface InheritedSocket {
  /** Undefined if it is not a TCP socket. */
  readonly handle: BoundSocket | undefined;
  readonly key: string;
  readonly name: string;
}

/** The first descriptor that systemd passes sockets in (SD_LISTEN_FDS_START). */
const FIRST_FD = 3;

function passedBySystemd(env: NodeJS.ProcessEnv): PassedSocket[] {
  const { LISTEN_PID, LISTEN_FDS, LISTEN_FDNAMES } = env;
  // These are not meant for workers.
  for (const name of ["LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES", "LISTEN_PIDFDID"]) delete env[name];
  if (LISTEN_PID !== String(process.pid)) return [];
  const names = LISTEN_FDNAMES?.split(":") ?? [];
  return Array.from({ length: Number(LISTEN_FDS) || 0 }, (_, i) => {
    const fd = FIRST_FD + i;
    return { fd, name: names[i] || `descriptor ${fd}`, own: false };
  });
}

function openPassed({ fd, name }: PassedSocket): InheritedSocket {
  const socket = socketOf(fd);
  return socket === undefined
    ? { handle: undefined, key: `a socket of this kind (descriptor ${fd})`, name }
    : { handle: socket, key: keyOf(socket.address, socket.port), name };
}
