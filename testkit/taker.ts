import type { Exchange, ExchangeHolder } from "../src/runtime/exchange/exchange.js";
import type { UpstreamConnection } from "../src/runtime/upstream/upstreamConnection.js";
import type { ConnectionTaker } from "../src/runtime/upstream/connectionTaker.js";
import type { UpstreamPool } from "../src/runtime/upstream/pool.js";

/** Asks a pool for a connection, and keeps what it is told. */
export class Taker implements ConnectionTaker {
  readonly method = "GET";
  readonly exchange: ConnectionTaker["exchange"];
  heldSince: number | undefined = undefined;
  connection: UpstreamConnection | undefined;
  readonly refusals: string[] = [];
  readonly faults: unknown[] = [];
  /** Who holds for its exchange. */
  holder: ExchangeHolder | undefined;

  constructor(address = "192.0.2.7") {
    this.exchange = {
      client: { address } as Exchange["client"],
      released: false,
      hold: (holder) => {
        this.holder = holder;
        return true;
      },
    };
  }

  onConnection(connection: UpstreamConnection): void {
    this.connection = connection;
  }

  onBusy(reason: string): void {
    this.refusals.push(reason);
  }

  onRefused(reason: string): void {
    this.refusals.push(reason);
  }

  onDrain(): void {}
  onReleased(): void {}

  onFault(error: unknown): void {
    this.faults.push(error);
  }
}

/** A connection that a pool has at once. */
export function taken(pool: UpstreamPool, address?: string): UpstreamConnection | undefined {
  const taker = new Taker(address);
  pool.request(taker);
  if (taker.connection === undefined) pool.leave(taker);
  return taker.connection;
}
