import type { ClientInfo } from "../exchange/exchange.js";
import type { Bodiless } from "../codec/http1/responseHead.js";
import { clientConnection } from "./keptConnections.js";

/** What can be used again after a response without a body. */
interface Silent {
  /** Kind of the last such response on it; HEAD, if there was one. */
  readonly bodiless: Bodiless | undefined;
  /** The client of the last request on it. */
  readonly client: ClientInfo | undefined;
  destroy(): void;
}

/**
 * Idle connections to one server, whose last response had no body because of its method or status. Some servers send a
 * body all the same, at any later time: gunicorn before 27 with threads or gevent after HEAD. It would be read as the
 * response to the next request, and some clients choose what it is. So a connection goes on under three conditions:
 *
 * - The server has proved, for that kind of response, that it sends nothing: {@link PROOFS} connections were put aside, and
 *   each was silent for {@link PROOF_MS}. One byte refutes it for good.
 * - Only the client connection whose request it was goes on: what may still come can harm no stranger.
 * - After HEAD only HEAD goes on: the response that would be read has no body, so no page is forged.
 */
export class SilentConnections<C extends Silent> {
  private readonly byUse = new Map<string, C[]>();
  private readonly trials = new Map<C, number>();
  private proofs: Record<Bodiless, number> = { HEAD: 0, "204": 0, "304": 0 };
  private number = 0;

  /** @param max how many there are at most, besides those on trial */
  constructor(private readonly max: number) {}

  get size(): number {
    return this.number + this.trials.size;
  }

  /** The connection is idle. @returns false if it is not used again */
  keep(connection: C, now: number): boolean {
    const { bodiless, client } = connection;
    const proofs = this.proofs[bodiless!];
    if (this.max === 0 || client === undefined || proofs === REFUTED) return false;
    if (proofs < PROOFS) {
      if (this.trials.size >= TRIALS_MAX) return false;
      this.trials.set(connection, now + PROOF_MS);
      return true;
    }
    if (this.number >= this.max) this.dropOldest();
    const use = useOf(client, bodiless === "HEAD");
    const others = this.byUse.get(use) ?? [];
    others.push(connection);
    // The use of the latest is the last to be dropped.
    this.byUse.delete(use);
    this.byUse.set(use, others);
    this.number += 1;
    return true;
  }

  take(client: ClientInfo, method: string): C | undefined {
    if (this.number === 0) return undefined;
    const head = method === "HEAD" ? this.removed(useOf(client, true), -1) : undefined;
    return head ?? this.removed(useOf(client, false), -1);
  }

  sweep(now: number): void {
    for (const [connection, until] of this.trials) {
      if (now < until) continue;
      this.proofs[connection.bodiless!] += 1;
      this.trials.delete(connection);
      connection.destroy();
    }
  }

  /** The server sent something after a response without a body. */
  refute(): void {
    this.proofs = { HEAD: REFUTED, "204": REFUTED, "304": REFUTED };
    this.closeAll();
  }

  /** Closes one, so that there is room for another request. */
  dropOldest(): void {
    const [use] = this.byUse.keys();
    if (use !== undefined) return this.removed(use, 0)?.destroy();
    const [trial] = this.trials.keys();
    if (trial === undefined) return;
    this.trials.delete(trial);
    trial.destroy();
  }

  /** A connection is closed. */
  forget(connection: C): void {
    const { client, bodiless } = connection;
    if (this.trials.delete(connection) || client === undefined || bodiless === undefined) return;
    const use = useOf(client, bodiless === "HEAD");
    const at = this.byUse.get(use)?.indexOf(connection) ?? -1;
    if (at !== -1) this.removed(use, at);
  }

  closeAll(): void {
    while (this.size > 0) this.dropOldest();
  }

  private removed(use: string, at: number): C | undefined {
    const connections = this.byUse.get(use);
    if (connections === undefined) return undefined;
    const [connection] = connections.splice(at, 1);
    if (connections.length === 0) this.byUse.delete(use);
    this.number -= 1;
    return connection;
  }
}

const REFUTED = -Infinity;
/** Enough for one of them to be of a page that sends a body, where some do. */
const PROOFS = 8;
const PROOF_MS = 1_000;
/** Some servers have a thread or a place for each connection, and these serve nobody. */
const TRIALS_MAX = 4;

/** The requests that a connection may serve. */
const useOf = (client: ClientInfo, afterHead: boolean): string =>
  `${clientConnection(client)}${afterHead ? " HEAD" : ""}`;
