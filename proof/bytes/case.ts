/**
 * The matrix: every way in which bytes pass the proxy. A cell is one way; a case is one client that uses several ways. Both
 * are plain data, so that a case can be made from a seed, shrunk and printed.
 */

export const CLIENTS = ["http", "https", "h2"] as const;
export type Client = (typeof CLIENTS)[number];

/** Who sends a response: a server over TCP, over TLS or at a Unix socket, or the proxy from a file. */
export const UPSTREAMS = ["http", "https", "unix"] as const;
export type Carrier = (typeof UPSTREAMS)[number];
export type Responder = Carrier | "file";

/** How a body ends. `range`: a part of a file. A tunnel has no framing. */
export type Framing = "length" | "chunked" | "close" | "range" | "none";

/** `both`: the response begins before the request body ends, and ends after that. */
export type Transfer = "download" | "upload" | "both" | "tunnel";

/**
 * How bytes are read, of a download by the client, of an upload by the upstream, of the others by both. `leaving`: the
 * connection is closed in the midst.
 */
export const READERS = ["fast", "slow", "pausing", "leaving"] as const;
export type Reader = (typeof READERS)[number];

export interface Cell {
  readonly client: Client;
  readonly responder: Responder;
  readonly transfer: Transfer;
  readonly framing: Framing;
  readonly reader: Reader;
}

/** Framings that a transfer may have. The request body of `both` is chunked where the response has no length. */
const FRAMINGS: Readonly<Record<Transfer, readonly Framing[]>> = {
  download: ["length", "chunked", "close"],
  upload: ["length", "chunked"],
  both: ["length", "chunked", "close"],
  tunnel: ["none"],
};

const TRANSFERS: readonly Pick<Cell, "responder" | "transfer" | "framing">[] = [
  ...UPSTREAMS.flatMap((responder) =>
    (Object.keys(FRAMINGS) as Transfer[]).flatMap((transfer) =>
      FRAMINGS[transfer].map((framing) => ({ responder, transfer, framing })),
    ),
  ),
  ...(["length", "range"] as const).map(
    (framing) => ({ responder: "file", transfer: "download", framing }) as const,
  ),
];

/** The cells of one kind of client. */
export const cellsOf = (client: Client): Cell[] =>
  TRANSFERS.flatMap((transfer) => READERS.map((reader) => ({ client, ...transfer, reader })));

export const CELLS: readonly Cell[] = CLIENTS.flatMap(cellsOf);

export const nameOf = ({ client, responder, transfer, framing, reader }: Cell): string =>
  `${client} client, ${responder}, ${transfer}, ${framing}, ${reader}`;

/** How bytes are written. */
export interface Pieces {
  /** In one write, in many writes of one turn, each after the one before, or sizes and turns at random. */
  readonly kind: "whole" | "turn" | "apart" | "mixed";
  readonly bytes: number;
}

export interface Exchange extends Cell {
  /** Of the request body, or the client's side of a tunnel. */
  readonly up: number;
  /** Of the response body, or the upstream's side of a tunnel. */
  readonly down: number;
  /** Where its bytes begin in the pool (`pool.ts`). */
  readonly upAt: number;
  readonly downAt: number;
  /** The reader that leaves does so after this part of the bytes. */
  readonly leavesAt: number;
  readonly pieces: Pieces;
}

export interface Case {
  readonly client: Client;
  /** All exchanges at once (over HTTP/1.1 on a connection each), or one after the other on one connection. */
  readonly together: boolean;
  /** Largest TLS record that the client and its upstreams send. */
  readonly recordBytes: number;
  /** Initial window of streams over HTTP/2. */
  readonly windowBytes: number;
  readonly exchanges: readonly Exchange[];
}

/** So many times the same case is played at the same time, so that buffers are shared. */
export interface Played {
  readonly copies: number;
  readonly one: Case;
}

/** Cases that are a bit smaller than one that fails, the smallest first. */
export function* smaller({ copies, one }: Played): Generator<Played> {
  for (const fewer of [1, copies >> 1]) if (fewer > 0 && fewer < copies) yield { copies: fewer, one };
  const { exchanges } = one;
  if (exchanges.length > 1)
    for (const e of exchanges.keys())
      yield { copies, one: { ...one, exchanges: exchanges.filter((_, at) => at !== e) } };
  if (one.together) yield { copies, one: { ...one, together: false } };
  for (const [e, exchange] of exchanges.entries())
    for (const less of smallerExchanges(exchange))
      yield { copies, one: { ...one, exchanges: exchanges.map((kept, at) => (at === e ? less : kept)) } };
}

function* smallerExchanges(exchange: Exchange): Generator<Exchange> {
  const { pieces, up, down } = exchange;
  if (pieces.kind !== "whole") yield { ...exchange, pieces: { kind: "whole", bytes: 1 } };
  if (exchange.responder === "file") return;
  for (const part of [0.5, 0.9]) {
    if (up > 1_000) yield { ...exchange, up: Math.floor(up * part) };
    if (down > 1_000) yield { ...exchange, down: Math.floor(down * part) };
  }
}
