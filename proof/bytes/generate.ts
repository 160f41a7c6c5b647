import { Random, seedOf } from "../../testkit/random.js";
import { rangedBytes } from "./files.js";
import {
  type Case,
  type Cell,
  CELLS,
  CLIENTS,
  cellsOf,
  type Client,
  type Exchange,
  type Pieces,
} from "./case.js";
import { POOL_BYTES } from "./pool.js";
import { SIZES } from "./sizes.js";

/** A client's cells are dealt to its cases, this many to each. */
export const EXCHANGES_PER_CASE = 4;
const CASES_PER_CLIENT = CELLS.length / CLIENTS.length / EXCHANGES_PER_CASE;

/** In so many cases each cell occurs once; its size is another one in each round, until it has had all sizes. */
export const ROUND = CASES_PER_CLIENT * CLIENTS.length;

/** The case of a number: the same from the same seed, whatever was made before. */
export function caseAt(seed: number, index: number): Case {
  const chance = new Random(seedOf(seed, index));
  const round = Math.floor(index / ROUND);
  const client = CLIENTS[index % CLIENTS.length]!;
  const dealt = Math.floor((index % ROUND) / CLIENTS.length) * EXCHANGES_PER_CASE;
  const cells = shuffled(client, seed, round).slice(dealt, dealt + EXCHANGES_PER_CASE);
  return {
    client,
    together: chance.is(0.5),
    recordBytes: chance.of(512, 1_400, 4_096, 16_384, 16_384, 16_384),
    windowBytes: chance.of(65_535, 65_535, 16_384, 1_048_576),
    exchanges: cells.map(({ cell, place }) => exchangeOf(chance, cell, sizeOf(seed, place, round))),
  };
}

interface Placed {
  readonly cell: Cell;
  /** Its place in the matrix. */
  readonly place: number;
}

/** The cells of a client, in another order in each round: a cell has other neighbours then. */
function shuffled(client: Client, seed: number, round: number): Placed[] {
  const chance = new Random(seedOf(seed, ~(round * CLIENTS.length + CLIENTS.indexOf(client))));
  return chance.shuffled(cellsOf(client).map((cell, place) => ({ cell, place })));
}

const sizeOf = (seed: number, place: number, round: number): number =>
  SIZES[((seed % SIZES.length) + place * PLACES_APART + round * ROUNDS_APART) % SIZES.length]!;

/** Neither has a divisor in common with the number of sizes: neighbours and rounds differ much, and no size is left out. */
const PLACES_APART = 5;
const ROUNDS_APART = 11;

function exchangeOf(chance: Random, cell: Cell, bytes: number): Exchange {
  const { transfer, framing, responder } = cell;
  const other = chance.of(bytes, chance.of(...SIZES), chance.upTo(100_000));
  const [up, down] = {
    download: [0, framing === "range" ? Math.max(1, bytes) : bytes],
    upload: [bytes, 0],
    both: chance.is(0.5) ? [bytes, other] : [other, bytes],
    tunnel: chance.is(0.5) ? [bytes, other] : [other, bytes],
  }[transfer] as [number, number];
  const at = (length: number): number => chance.pick(POOL_BYTES - length);
  const downAt = {
    file: framing === "range" ? chance.upTo(rangedBytes(down) - down) : down,
    upstream: at(down),
  }[responder === "file" ? "file" : "upstream"];
  return {
    ...cell,
    ...{ up, down, upAt: at(up), downAt },
    leavesAt: chance.of(0, chance.part(), chance.part()),
    pieces: piecesOf(chance, Math.max(up, down)),
  };
}

/** How many writes a body may take at most, by kind: each costs time. */
const WRITES_MAX = { whole: 1, turn: 2_000, apart: 300, mixed: 600 };

function piecesOf(chance: Random, bytes: number): Pieces {
  const kind = chance.of("whole", "turn", "apart", "mixed");
  const drawn = chance.of(1, 100, 1_000, 2_048, 16_384, 16_385, 65_536, 1 + chance.upTo(50_000));
  return { kind, bytes: Math.max(drawn, Math.ceil(bytes / WRITES_MAX[kind])) };
}
