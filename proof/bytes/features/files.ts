import type { Random } from "../../../testkit/random.js";
import type { Exchange } from "../case.js";
import { POOL_BYTES, type Pool } from "../pool.js";
import { FILE_SIZES } from "./scene.js";

/** Files, each with encoded ones beside it: their bytes are no encoding of it, so that it is seen which one was sent. */

const SUFFIXES = { zstd: ".zst", br: ".br", gzip: ".gz" } as const;
type Coding = keyof typeof SUFFIXES;
const CODINGS = Object.keys(SUFFIXES) as Coding[];

interface Content {
  readonly bytes: number;
  /** Where it begins in the pool. */
  readonly at: number;
}

/** An encoded file is shorter, or the proxy could not tell the reader from its length either. */
function contentOf(size: number, coding: Coding | undefined): Content {
  const place = coding === undefined ? 0 : 1 + CODINGS.indexOf(coding);
  const bytes = size - place * 11;
  return { bytes, at: (size * 5 + place * 1_000_003) % (POOL_BYTES - bytes) };
}

export function contentsOf(pool: Pool): Record<string, Buffer> {
  const entries = FILE_SIZES.flatMap((size) =>
    [undefined, ...CODINGS].map((coding) => {
      const { bytes, at } = contentOf(size, coding);
      return [`file/f${size}${coding === undefined ? "" : SUFFIXES[coding]}`, pool.part(at, bytes)] as const;
    }),
  );
  return Object.fromEntries(entries);
}

/** Values of `Accept-Encoding`, and the coding that a client with it gets (RFC 9110, 12.5.3; decisions 6.8). */
const ACCEPTED: readonly (readonly [string | undefined, Coding | undefined])[] = [
  [undefined, undefined],
  ["identity", undefined],
  ["gzip", "gzip"],
  ["br;q=0.5, gzip;q=0.9", "gzip"],
  ["gzip, deflate, br", "br"],
  ["gzip, deflate, br, zstd", "zstd"],
  ["br;q=0, *;q=0", undefined],
  ["not a list;;", undefined],
];

export interface FileRequest {
  readonly name: string;
  readonly accepted: string | undefined;
  readonly coding: Coding | undefined;
  readonly exchange: Exchange;
}

/** A request for the file of an exchange. @param encoded whether the route has encoded files */
export function fileRequest(chance: Random, exchange: Exchange, encoded: boolean): FileRequest {
  const [accepted, wanted] = chance.of(...ACCEPTED);
  const coding = encoded ? wanted : undefined;
  const { bytes, at } = contentOf(exchange.down, coding);
  return {
    name: `f${exchange.down}`,
    accepted,
    coding,
    exchange: { ...exchange, down: bytes, downAt: at },
  };
}
