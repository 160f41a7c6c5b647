import { randomBytes } from "node:crypto";

/**
 * A time for each of many clients, in bounded memory: the time until which what a client did counts. A client whose time
 * has passed has no place.
 *
 * A client may be in one of eight places, by a hash with a secret seed. If other clients have all of them, the one with the
 * earliest time, who did least, is forgotten, and the client begins with the time of that one. So a flood from more
 * addresses than there are places gets no more than so many clients would get; that others are judged by a time which is
 * not their own is the price, and is only paid when eight clients with the same places have one.
 */
export class ClientTable {
  private keys: (string | undefined)[];
  private times: Float64Array;
  private readonly seed = randomBytes(4).readInt32LE();

  /** @param placesMax a power of two */
  constructor(private readonly placesMax = PLACES_MAX) {
    const places = Math.min(PLACES_MIN, placesMax);
    this.keys = new Array<undefined>(places).fill(undefined);
    this.times = new Float64Array(places);
  }

  /** How many places there are at the moment; the table grows up to its limit, and does not shrink. */
  get places(): number {
    return this.keys.length;
  }

  /** The time of a client, or the one that a client without a place begins with; at least `now`. */
  timeOf(key: string, now: number): number {
    const place = this.placeOf(key, now);
    if (this.keys[place] !== key && this.places < this.placesMax) return now;
    return Math.max(now, this.times[place]!);
  }

  set(key: string, time: number, now: number): void {
    let place = this.placeOf(key, now);
    while (this.keys[place] !== key && this.times[place]! > now && this.places < this.placesMax) {
      this.grow(now);
      place = this.placeOf(key, now);
    }
    this.keys[place] = key;
    this.times[place] = time;
  }

  /** All clients whose time has not passed. */
  *entries(now: number): Generator<readonly [key: string, time: number]> {
    for (const [place, key] of this.keys.entries()) {
      const time = this.times[place]!;
      if (key !== undefined && time > now) yield [key, time];
    }
  }

  /** The place of a client, or the one to take: a place whose time has passed, or has the earliest. */
  private placeOf(key: string, now: number): number {
    const first = (this.hash(key) & (this.places / WAYS - 1)) * WAYS;
    let earliest = first;
    for (let place = first; place < first + WAYS; place++) {
      if (this.keys[place] === key && this.times[place]! > now) return place;
      if (this.times[place]! < this.times[earliest]!) earliest = place;
    }
    return earliest;
  }

  private grow(now: number): void {
    const kept = [...this.entries(now)];
    this.keys = new Array<undefined>(this.places * 2).fill(undefined);
    this.times = new Float64Array(this.places);
    // Eight of one place are eight of two.
    for (const [key, time] of kept) {
      const place = this.placeOf(key, now);
      this.keys[place] = key;
      this.times[place] = time;
    }
  }

  private hash(key: string): number {
    let hash = this.seed;
    for (let i = 0; i < key.length; i++) hash = imul(hash ^ key.charCodeAt(i), 0x0100_0193);
    hash = imul(hash ^ (hash >>> 15), 0x2c1b_3c6d);
    hash = imul(hash ^ (hash >>> 12), 0x297a_2d39);
    return hash ^ (hash >>> 15);
  }
}

const { imul } = Math;

const WAYS = 8;
/** Enough for a few clients. */
const PLACES_MIN = 256;
const PLACES_MAX = 65_536;
