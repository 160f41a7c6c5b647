import type { Socket } from "node:net";

/**
 * How much peers may have done for them in one turn of the event loop. A socket is read until it is empty, up to 32
 * times in a turn, and so is the next one: peers that send small pieces, or heads, as fast as they can would keep all
 * others waiting. Bytes do not show that: the same megabyte is one write or hundreds of thousands, and a byte of a
 * compressed head may stand for kilobytes. So work is counted where it is done, in one unit.
 *
 *     a connection reads ──> its slice, or the turn, is full ──> rests ──> next turn: goes on where it stopped
 *
 * In a turn that is full, each read still takes its next step: who asks for little does not wait for those who rest.
 */
const TURN_MAX = 262_144;
/** What one read may do, in heads and frames: then it is another connection's turn. */
const SLICE_MAX = 32_768;
/** The unit is the cost of a byte of framing, some nanoseconds. A piece costs about a microsecond. */
const PIECE_COST = 128;
/** An ordinary request or response, without what its bytes cost. */
const HEAD_COST = 1_024;
/** A connection to an upstream, from its beginning to its end. */
const CONNECT_COST = 8_192;
/** Less than this is added up first, so that a few small requests cost nothing. */
const GRAIN = 8_192;

/** Since the turn began. */
let spent = 0;
let ends = false;
let resting: Resting[] = [];

/** Counts pieces that were passed on, and bytes of framing around them. */
export function countWork(pieces: number, framingBytes: number): void {
  spent += pieces * PIECE_COST + framingBytes;
  if (spent >= GRAIN) endLater();
}

/** Counts a head, with the bytes that it has when it is decoded: what reads its fields costs that much. */
export function countHead(bytes: number): void {
  countWork(0, HEAD_COST + bytes);
}

/** Counts a connection to an upstream. */
export function countConnect(): void {
  countWork(0, CONNECT_COST);
}

/** Whether this turn has had enough: a socket that was read should {@link rest}. */
export function turnIsFull(): boolean {
  return spent > TURN_MAX;
}

/** The beginning of a slice, for {@link sliceIsFull}; valid until the caller returns to the event loop. */
export function beginSlice(): number {
  return spent;
}

/** Whether a connection should leave the rest of its read for the next turn. */
export function sliceIsFull(begin: number): boolean {
  return spent - begin > SLICE_MAX || spent > TURN_MAX;
}

/** A reader that rests. */
export interface Resting {
  /** Called in the next turn, or a later one: reads on, unless it has paused for another reason. */
  goOn(): void;
}

/** Reads the socket no more in this turn. */
export function rest(socket: Socket, reader: Resting): void {
  socket.pause();
  resting.push(reader);
  endLater();
}

function endLater(): void {
  if (ends) return;
  ends = true;
  setImmediate(endTurn);
}

function endTurn(): void {
  ends = false;
  spent = 0;
  const waiting = resting;
  resting = [];
  let next = 0;
  // In the order in which they began to rest: whose turn it is not stays before those who rest again.
  while (next < waiting.length && !turnIsFull()) waiting[next++]!.goOn();
  if (next === waiting.length) return;
  resting = [...waiting.slice(next), ...resting];
  endLater();
}
