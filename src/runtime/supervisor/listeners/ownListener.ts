import { chmodSync, closeSync, existsSync, renameSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { isIpv6, type Problem, problem } from "../../../model/serving.js";
import { keyOf, listenProblem } from "../../listen/sockets.js";
import { systemReason } from "../../files/systemReason.js";
import { listeningDescriptor } from "../../sockets/node/listeningSockets.js";
import type { MasterLog } from "../report/masterLog.js";
import type { OwnServerResponse, OwnRequest, OwnServer } from "./ownServer.js";

/** The open socket of a listener of the master, passed from one master to the next. */
export interface OwnSocket {
  readonly fd: number;
  /** The socket's address and port. */
  readonly key: string;
}

/** The address or the Unix socket that a server listens on. */
export type OwnPlace = { readonly address: string; readonly port: number } | { readonly path: string };

/**
 * A listener on which the master itself responds: it knows the state, and its loop is free whatever the workers do. Where a
 * config has none, nothing is loaded for it.
 *
 * A Unix socket is made under another name and renamed when this master responds: so it replaces that of the master
 * before in one step, while a socket with a port is passed on.
 */
export abstract class OwnListener<P extends OwnPlace> {
  private readonly servers = new Map<string, OpenOwnServer<P>>();
  /** The socket of the previous master, which responds on it until this one takes over. */
  private inherited: OwnSocket | undefined;

  /**
   * @param field of the config
   * @param logs get what keeps it from responding where it settles
   */
  constructor(
    private readonly field: string,
    private readonly logs: Pick<MasterLog, "warn">,
  ) {}

  adopt(socket: OwnSocket | undefined): void {
    this.inherited = socket;
  }

  /** Listens where the config says, in addition to where it listens now. */
  async open(at: P | undefined): Promise<readonly Problem[]> {
    if (at === undefined) return [];
    const key = keyIn(at);
    if (this.servers.has(key) || this.inherited?.key === key) return [];
    if ("path" in at) return this.openSocket(at, at.path);
    const ipv6Only = isIpv6(at.address);
    const failed = await this.listen(at, { host: at.address, port: at.port, ipv6Only });
    return failed === undefined ? [] : [listenProblem(failed.code!, this.field, at)];
  }

  /** Responds there and nowhere else, also on what the previous master opened. */
  async settle(at: P | undefined): Promise<void> {
    const key = at === undefined ? undefined : keyIn(at);
    const { inherited } = this;
    this.inherited = undefined;
    if (inherited !== undefined && at !== undefined && inherited.key === key)
      await this.listen(at, { fd: inherited.fd });
    else if (inherited !== undefined) closeSync(inherited.fd);
    for (const [open, one] of this.servers) {
      if (open === key) continue;
      this.close(one);
      this.servers.delete(open);
    }
    // It may have been closed again by a takeover in the middle of a reload.
    for (const p of await this.open(at)) this.logs.warn(p);
    if (at === undefined) return;
    const open = this.servers.get(keyIn(at));
    if (open !== undefined) open.rules.at = at;
    this.place(open);
  }

  /** The socket that the next master gets. */
  get passable(): OwnSocket | undefined {
    for (const [key, { server, socket }] of this.servers) {
      if (socket !== undefined) continue;
      const fd = listeningDescriptor(server.at.address, server.at.port);
      if (fd !== undefined) return { fd, key };
    }
    return undefined;
  }

  /** @param at what the config says of where it is asked */
  protected abstract respond(
    asked: OwnRequest,
    at: P,
  ): OwnServerResponse | undefined | Promise<OwnServerResponse | undefined>;

  /** Whether a client at an address gets a response; it is empty for a Unix socket. */
  protected readonly admits: (address: string, at: P) => boolean = () => true;

  /** @returns the system's error, if there was one */
  private async listen(
    at: P,
    where: Parameters<typeof OwnServer.listen>[0],
    socket?: UnixSocket,
  ): Promise<NodeJS.ErrnoException | undefined> {
    const { OwnServer } = await import("./ownServer.js");
    // From the first connection on, which comes before it settles there.
    const rules = { at };
    const server = await OwnServer.listen(
      where,
      (asked) => this.respond(asked, rules.at),
      (address) => this.admits(address, rules.at),
    );
    if (!(server instanceof OwnServer)) return server;
    this.servers.set(keyIn(at), { server, socket, rules });
    return undefined;
  }

  private async openSocket(at: P, path: string): Promise<readonly Problem[]> {
    const draft = `${path}.${process.pid}`;
    // Node reports that as a lack of permission.
    if (!existsSync(dirname(path)))
      return [problem("listen.failed", this.field, `cannot listen on ${path}: no such directory`)];
    try {
      rmSync(draft, { force: true });
      const failed = await this.listen(at, { path: draft }, { path, draft, inode: undefined });
      if (failed !== undefined) throw failed;
      chmodSync(draft, SOCKET_MODE);
      return [];
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code === "EACCES" ? DENIED : "listen.failed";
      const message = `cannot listen on ${path} ${systemReason(error as Error)}`;
      return [problem(code, this.field, message)];
    }
  }

  /** Puts a socket where clients find it. */
  private place(open: OpenOwnServer<P> | undefined): void {
    const socket = open?.socket;
    if (socket === undefined || socket.inode !== undefined) return;
    renameSync(socket.draft, socket.path);
    socket.inode = statSync(socket.path).ino;
  }

  private close({ server, socket }: OpenOwnServer<P>): void {
    server.close();
    if (socket?.inode === undefined) return;
    // The path may lead to the next master's socket now.
    const now = statSync(socket.path, { throwIfNoEntry: false });
    if (now?.ino === socket.inode) rmSync(socket.path, { force: true });
  }
}

interface OpenOwnServer<P> {
  readonly server: OwnServer;
  /** The server's settings in the config, which a reload may change. */
  readonly rules: { at: P };
  /** The Unix socket that the server listens on; undefined if it listens on a port. */
  readonly socket: UnixSocket | undefined;
}

interface UnixSocket {
  readonly path: string;
  readonly draft: string;
  /** The inode of the socket; undefined until it is in its place. */
  inode: number | undefined;
}

const DENIED = "listen.permission-denied";
const SOCKET_MODE = 0o660;

const keyIn = (at: OwnPlace): string => ("path" in at ? at.path : keyOf(at.address, at.port));
