import { isIP } from "node:net";
import { canonicalAddress, plainRange } from "./address.js";

/** Nobody has more proxies in a row, and a hostile list of this length costs no time. */
const HOPS_MAX = 64;
/** The longest address with brackets, port and blanks around it. */
const ELEMENT_LENGTH_MAX = 64;

/**
 * The client that a trusted proxy speaks for (decisions 2.3): the last address that is not a trusted proxy's, in a list
 * that every proxy appends to; if all are trusted, the first. The entries before that address come from the client and
 * are not trusted.
 *
 * @param headers names and values in turn; several fields are one list (RFC 9110, 5.3)
 * @param field lower-case name of the field
 * @param trusted whether an address is in `trustedProxies`
 * @returns undefined if the list names no client, has anything but an address before a client is found, or has too many
 * proxies: the peer is then the client
 */
export function forwardedClient(
  headers: readonly string[],
  field: string,
  trusted: (address: string) => boolean,
): string | undefined {
  let first: string | undefined;
  let hops = 0;
  for (let i = headers.length - 2; i >= 0; i -= 2) {
    if (headers[i]!.length !== field.length || headers[i]!.toLowerCase() !== field) continue;
    const value = headers[i + 1]!;
    for (let end = value.length; end >= 0;) {
      const comma = end === 0 ? -1 : value.lastIndexOf(",", end - 1);
      if (++hops > HOPS_MAX || end - comma > ELEMENT_LENGTH_MAX) return undefined;
      const element = value.slice(comma + 1, end).trim();
      end = comma;
      // Empty elements are no part of a list (RFC 9110, 5.6.1.2).
      if (element === "") continue;
      const address = addressOf(element);
      if (address === undefined) return undefined;
      if (!trusted(address)) return address;
      first = address;
    }
  }
  return first;
}

/**
 * The address of an element in the one form that it is compared and logged by; undefined if the element is something
 * else. It may have a port, and an IPv6 address then is in brackets.
 */
function addressOf(element: string): string | undefined {
  const [, bracketed, v4] = /^(?:\[([^\]]{2,45})\]|([\d.]{7,15}))(?::\d{1,5})?$/.exec(element) ?? [];
  const address = bracketed ?? v4 ?? element;
  // A zone means something to its own host only (RFC 4007, 6).
  if (isIP(address) !== (v4 === undefined ? 6 : 4) || address.includes("%")) return undefined;
  return canonicalAddress(plainRange(address).split("/")[0]!);
}
