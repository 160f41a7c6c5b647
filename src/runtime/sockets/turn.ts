import type { Socket } from "node:net";

/**
 * How much peers may have done for them in one turn of the event loop. A socket is read until it is empty, up to 32
 * times in a turn, and so is the next one: peers that send small pieces as fast as they can would keep all others
 * waiting. Bytes do not show that, since the same megabyte is one write or hundreds of thousands. So pieces are counted,
 * and the bytes of framing around them; when a turn has had enough of both, no socket is read a second time in it.
 */
const TURN_MAX = 262_144;
/** The unit is the cost of a byte of framing, some nanoseconds. A piece costs about a microsecond. */
const PIECE_COST = 128;
/** Less than this is added up first, so that a few small requests cost nothing. */
const GRAIN = 8_192;

let spent = 0;
let unnoted = 0;
let resting: { readonly socket: Socket; readonly wanted: () => boolean }[] = [];

/** Counts pieces that were passed on, and bytes of framing around them. */
export function countWork(pieces: number, framingBytes: number): void {
  unnoted += pieces * PIECE_COST + framingBytes;
  if (unnoted < GRAIN) return;
  if (spent === 0) setImmediate(endTurn);
  spent += unnoted;
  unnoted = 0;
}

/** Whether this turn has had enough: a socket that was read should {@link rest}. */
export function turnIsFull(): boolean {
  return spent > TURN_MAX;
}

/**
 * Reads the socket no more in this turn.
 *
 * @param wanted whether to read it in the next turn; its owner may have paused it in the meantime
 */
export function rest(socket: Socket, wanted: () => boolean): void {
  if (socket.isPaused()) return;
  socket.pause();
  resting.push({ socket, wanted });
}

function endTurn(): void {
  spent = 0;
  const sockets = resting;
  resting = [];
  for (const { socket, wanted } of sockets) if (wanted()) socket.resume();
}
