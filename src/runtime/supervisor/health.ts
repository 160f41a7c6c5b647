import { closeSync } from "node:fs";
import { type HealthListenerConfig, isIpv6, type Problem } from "../../model/serving.js";
import { keyOf, listenProblem } from "../listen/sockets.js";
import { listeningDescriptor } from "../sockets/node/listeningSockets.js";
import type { MasterLog } from "./masterLog.js";
import type { HealthAnswer, HealthServer } from "./healthServer.js";

/** The open socket of a health listener, passed from one master to the next. */
export interface HealthSocket {
  readonly fd: number;
  /** Its address and port. */
  readonly key: string;
}

/** Why the proxy is not ready. */
export type NotReady = "stopping" | "no worker accepts connections";

/**
 * The health listener, which the master answers itself: it knows the state, and its loop is free whatever the workers
 * do. Without one in the config nothing is loaded for it.
 */
export class Health {
  private readonly servers = new Map<string, HealthServer>();
  /** The socket of the previous master, which answers on it until this one takes over. */
  private inherited: HealthSocket | undefined;
  private nobodySince: number | undefined;

  /**
   * @param notReady why no new requests should come; undefined if they should
   * @param logs get what keeps it from answering where it settles
   */
  constructor(
    private readonly notReady: () => NotReady | undefined,
    private readonly logs: Pick<MasterLog, "warn">,
  ) {}

  adopt(socket: HealthSocket | undefined): void {
    this.inherited = socket;
  }

  /** Listens where the config says, in addition to where it listens now. */
  async open(at: HealthListenerConfig | undefined): Promise<readonly Problem[]> {
    if (at === undefined) return [];
    const key = keyOf(at.address, at.port);
    if (this.servers.has(key) || this.inherited?.key === key) return [];
    const ipv6Only = isIpv6(at.address);
    const failed = await this.listen(key, { host: at.address, port: at.port, ipv6Only });
    return failed === undefined ? [] : [listenProblem(failed, "healthListener", at)];
  }

  /** Answers there and nowhere else, also on what the previous master opened. */
  async settle(at: HealthListenerConfig | undefined): Promise<void> {
    const key = at === undefined ? undefined : keyOf(at.address, at.port);
    const { inherited } = this;
    this.inherited = undefined;
    if (inherited !== undefined && inherited.key === key) await this.listen(key, { fd: inherited.fd });
    else if (inherited !== undefined) closeSync(inherited.fd);
    for (const [open, server] of this.servers) {
      if (open === key) continue;
      server.close();
      this.servers.delete(open);
    }
    // It may have been closed again by a takeover in the middle of a reload.
    for (const p of await this.open(at)) this.logs.warn(p);
  }

  /** For the next master. */
  get passable(): HealthSocket | undefined {
    for (const [key, { at }] of this.servers) {
      const fd = listeningDescriptor(at.address, at.port);
      if (fd !== undefined) return { fd, key };
    }
    return undefined;
  }

  /** @returns the code of the system's error, if there was one */
  private async listen(
    key: string,
    where: Parameters<typeof HealthServer.listen>[0],
  ): Promise<string | undefined> {
    const { HealthServer } = await import("./healthServer.js");
    const server = await HealthServer.listen(where, (path) => this.answer(path));
    if (!(server instanceof HealthServer)) return server.code!;
    this.servers.set(key, server);
    return undefined;
  }

  private answer(path: string): HealthAnswer | undefined {
    const reason = this.notReady();
    this.nobodySince =
      reason === "no worker accepts connections" ? (this.nobodySince ?? performance.now()) : undefined;
    if (path === "/readyz") return reason === undefined ? [200, "ready"] : [503, reason];
    if (path !== "/healthz") return undefined;
    const idleMs = this.nobodySince === undefined ? 0 : performance.now() - this.nobodySince;
    return idleMs > NOBODY_MS ? [503, "no worker accepts connections"] : [200, "ok"];
  }
}

/** Longer than workers get for their start, and than the master waits before it starts one again. */
const NOBODY_MS = 60_000;
