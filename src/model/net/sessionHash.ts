import { afterBlanks, beginsPart, withoutBlanks } from "../text/blanks.js";

/**
 * Which of several servers a session, or a client, belongs to, by rendezvous hashing: every server has a score for every
 * key, and the highest one wins. When a server goes, its keys move and no others; when one comes, it takes its share of
 * the keys of all. Workers, hosts and pods agree without a word, since the scores follow from the texts alone.
 */

/** A text as a number of 32 bits (FNV-1a). */
export function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return mixed(hash);
}

/**
 * The score of a server for a key. In the long run a server with weight 2 wins twice as often as one with 1.
 *
 * @param server the hash of its name
 */
export function scoreOf(key: number, server: number, weight: number): number {
  const drawn = ((mixed(key ^ mixed(server)) >>> 0) + 0.5) / 0x1_0000_0000;
  return -weight / Math.log(drawn);
}

/** Each bit of the result depends on all bits (the finalizer of MurmurHash3). */
function mixed(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}

/** The value of a cookie in a request; undefined if it has none. @param headers names and values in turn */
export function cookieOf(headers: readonly string[], cookie: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (name.length !== 6 || name.toLowerCase() !== "cookie") continue;
    const value = valueOf(headers[i + 1]!, cookie);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Looks only where the name is: a client may fill a head with other cookies. */
function valueOf(pairs: string, cookie: string): string | undefined {
  for (let at = pairs.indexOf(cookie); at !== -1; at = pairs.indexOf(cookie, at)) {
    const equals = beginsPart(pairs, at, SEMICOLON) ? afterBlanks(pairs, at + cookie.length) : -1;
    const semicolon = pairs.indexOf(";", at);
    const end = semicolon === -1 ? pairs.length : semicolon;
    if (equals !== -1 && pairs.charCodeAt(equals) === EQUALS && end > equals + 1)
      return withoutBlanks(pairs, equals + 1, end);
    at = end;
  }
  return undefined;
}

const [SEMICOLON, EQUALS] = [0x3b, 0x3d];
