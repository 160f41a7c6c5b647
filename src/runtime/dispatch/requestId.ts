import { randomFillSync } from "node:crypto";
import type { ProxyConfig } from "../../model/index.js";
import { type ClientInfo, type Exchange, headerValue } from "../exchange/exchange.js";
import type { RequestHead } from "../codec/request.js";

/**
 * The id by which a person who saw an error page finds the request in the logs. Made when an error page or a log line
 * first needs it: most requests have none, unless the config gives one to each.
 */
export function requestIdOf(exchange: Exchange): string {
  return (exchange.requestId ??= madeId(8));
}

/** Gives each request an id: that of a trusted proxy before this one, if that is valid, or a new one. */
export class RequestIds {
  private readonly field: string;

  constructor({ field }: NonNullable<ProxyConfig["requestId"]>) {
    this.field = field.toLowerCase();
  }

  /** @param client the peer of the connection */
  of(client: ClientInfo, request: RequestHead): string {
    // An untrusted client could use the id of another request, and hide among its log lines.
    const given = client.trusted ? headerValue(request.headers, this.field) : undefined;
    return given !== undefined && SANE_ID.test(given) ? given : madeId(16);
  }
}

/** Nothing that a log, a page, a terminal or a shell would read as anything but text. */
export const SANE_ID = /^[0-9A-Za-z][0-9A-Za-z._:+/=-]{0,127}$/;

/** Hexadecimal digits at random, two for each byte; bytes are fetched for many ids at once. */
function madeId(bytes: number): string {
  if (at + bytes > random.length) {
    randomFillSync(random);
    at = 0;
  }
  at += bytes;
  return random.toString("hex", at - bytes, at);
}

const random = Buffer.alloc(4_096);
let at = random.length;
