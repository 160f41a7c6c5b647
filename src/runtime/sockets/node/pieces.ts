/**
 * The parts of Node without a public name that portico uses. For each there is a fallback with public names that does
 * the same and costs more. A piece is used unless this Node lacks it, the probe found that it works differently
 * (`probe.ts`), or `PORTICO_NODE_WITHOUT` names it.
 */
export const PIECES = {
  boundSockets: "sockets that are bound and not accepted from; without it a sleeping thread holds each",
  singleThreadedGc: "single-threaded garbage collection in workers; without it they start helper threads",
  readBuffers: "reads of clients, and of TLS, into reused buffers; without it each read allocates",
  directReads: "reads that bypass Node's streams; without it reads use the streams",
  directWrites: "small writes that bypass Node's streams; without it they use the streams",
  tcpBelowTls: "the TCP socket below a TLS socket; without it an async context leads to it",
  unsentBytes: "how much of a write is left; without it HTTP/2 is written in small pieces",
} as const;

export type Piece = keyof typeof PIECES;

const ALL = Object.keys(PIECES) as Piece[];

/** Pieces, by whether they are used. Asked once for each connection, not for each read or write. */
export const uses: Readonly<Record<Piece, boolean>> = Object.fromEntries(
  ALL.map((piece) => [piece, true]),
) as Record<Piece, boolean>;

/** Does without these pieces from now on; open connections stay as they are. */
export function doWithout(pieces: readonly Piece[]): void {
  for (const piece of pieces) (uses as Record<Piece, boolean>)[piece] = false;
}

/** Pieces that are not used. */
export function unused(): Piece[] {
  return ALL.filter((piece) => !uses[piece]);
}

/** The variable that names pieces to do without, separated by commas; `all` for all. */
export const WITHOUT = "PORTICO_NODE_WITHOUT";

/** The pieces that {@link WITHOUT} switches off, and its names that are not pieces. */
export function switchedOff(env: NodeJS.ProcessEnv = process.env): {
  readonly pieces: readonly Piece[];
  readonly unknown: readonly string[];
} {
  const names = (env[WITHOUT] ?? "").split(",").map((name) => name.trim());
  const named = names.filter((name) => name !== "");
  if (named.includes("all")) return { pieces: ALL, unknown: [] };
  return {
    pieces: ALL.filter((piece) => named.includes(piece)),
    unknown: named.filter((name) => !(name in PIECES)),
  };
}

doWithout(switchedOff().pieces);

/** A line for the administrator about pieces that are not used; undefined if all are used. */
export function piecesText(): string | undefined {
  const { pieces, unknown } = switchedOff();
  const lacking = unused().filter((piece) => !pieces.includes(piece));
  const parts = [
    ...(lacking.length === 0 ? [] : [`Node ${process.version} lacks ${lacking.join(", ")}`]),
    ...(pieces.length === 0 ? [] : [`${WITHOUT} switches off ${pieces.join(", ")}`]),
    ...(unknown.length === 0
      ? []
      : [`${WITHOUT} names ${unknown.join(", ")}: known are all, ${ALL.join(", ")}`]),
  ];
  if (parts.length === 0) return undefined;
  return `${parts.join("; ")} (everything works, at a higher cost)`;
}
