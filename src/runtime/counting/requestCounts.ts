import type { AccessRefusal } from "../../model/serving.js";
import { boundsOf, type Slots } from "./slots.js";

/** The byte counts of an exchange in progress. */
export interface Transferred {
  readonly bodyBytesSent: number;
  readonly bodyBytesReceived: number;
  /** How many of these bytes were counted already. */
  countedSent: number;
  countedReceived: number;
}

/** The counted properties of an exchange that is over. */
export interface CountedExchange extends Transferred {
  readonly request: { readonly method: string; readonly receivedAt: number };
  readonly client: { readonly scheme: "http" | "https" };
  readonly status: number;
  /** Milliseconds until the head of the response; -1 if there was none. */
  readonly headMs: number;
  readonly errorToken: string | undefined;
  /** Undefined for a request that may come in. */
  readonly accessRefusal?: Pick<AccessRefusal, "policy" | "by"> | undefined;
}

/** The server and route that requests are counted for. */
export interface CountedPlace {
  readonly server: string;
  /** Undefined for requests that no route matched. */
  readonly route: { readonly name: string; readonly path: string } | undefined;
}

/** Counts the requests of one route. Every place is looked up once, and made only when it is first needed. */
export class RequestCounts {
  private readonly requestBytes: number;
  private readonly responseBytes: number;
  private readonly firstByte: number;
  /** Places of failures, by their names. */
  private readonly failures = new Map<string, number>();
  /** Places of refusals, by policies and their fields. */
  private readonly refusals = new Map<string, number>();
  /** Places of durations, by scheme, method and status. */
  private readonly durations = new Map<number, number>();

  constructor(
    private readonly slots: Slots,
    private readonly place: CountedPlace,
    private readonly isRegistered: (status: number) => boolean,
  ) {
    const labels = this.labels;
    this.requestBytes = slots.place("requestBytes", labels);
    this.responseBytes = slots.place("responseBytes", labels);
    this.firstByte = slots.place("firstByte", labels);
  }

  /** Server and route. */
  get labels(): readonly [server: string, route: string] {
    return [this.place.server, this.place.route?.name ?? ""];
  }

  /** An exchange is over. @param now by `performance.now()` */
  over(exchange: CountedExchange, now: number): void {
    this.progress(exchange);
    const { request, client, status, headMs, errorToken, accessRefusal } = exchange;
    const ofMethod = methodIndex(request.method) * 2 + (client.scheme === "https" ? 1 : 0);
    const key = ofMethod * 1_000 + status;
    const at = this.durations.get(key) ?? this.durationAt(key, exchange);
    this.slots.observe(at, DURATIONS, now - request.receivedAt);
    if (headMs >= 0) this.slots.observe(this.firstByte, FIRST_BYTES, headMs);
    if (errorToken !== undefined) this.slots.add(this.failures.get(errorToken) ?? this.failureAt(errorToken));
    if (accessRefusal !== undefined) this.slots.add(this.refusalAt(accessRefusal));
  }

  /** Counts bytes transferred since the last call. */
  progress(exchange: Transferred): void {
    const { slots } = this;
    const { bodyBytesSent, bodyBytesReceived } = exchange;
    if (bodyBytesSent !== exchange.countedSent) {
      slots.add(this.responseBytes, bodyBytesSent - exchange.countedSent);
      exchange.countedSent = bodyBytesSent;
    }
    if (bodyBytesReceived !== exchange.countedReceived) {
      slots.add(this.requestBytes, bodyBytesReceived - exchange.countedReceived);
      exchange.countedReceived = bodyBytesReceived;
    }
  }

  private failureAt(token: string): number {
    const at = this.slots.place("failures", [...this.labels, token]);
    this.failures.set(token, at);
    return at;
  }

  private refusalAt({ policy, by }: Pick<AccessRefusal, "policy" | "by">): number {
    const key = `${policy} ${by}`;
    const at = this.refusals.get(key) ?? this.slots.place("accessRefused", [this.place.server, policy, by]);
    this.refusals.set(key, at);
    return at;
  }

  private durationAt(key: number, { request, client, status }: CountedExchange): number {
    const { server, route } = this.place;
    const folded = foldedStatus(status, this.isRegistered);
    // Statuses that are counted as one have one place.
    const foldedKey = key - status + folded;
    const at =
      this.durations.get(foldedKey) ??
      this.slots.place("requests", [
        ...[server, route?.name ?? "", route?.path ?? "", client.scheme],
        ...[methodLabel(methodIndex(request.method)), String(folded)],
      ]);
    this.durations.set(foldedKey, at);
    if (foldedKey !== key) this.durations.set(key, at);
    return at;
  }
}

const DURATIONS = boundsOf("requests");
const FIRST_BYTES = boundsOf("firstByte");

// Folds values that clients and upstreams choose into fixed lists.

/** OpenTelemetry's known methods, and those of WebDAV (RFC 4918) and its extensions (RFC 3253, 3744, 5323). */
const METHODS = [
  ...["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"],
  ...["PROPFIND", "PROPPATCH", "MKCOL", "COPY", "MOVE", "LOCK", "UNLOCK", "REPORT", "SEARCH", "ACL"],
];

/** How OpenTelemetry writes a method that is not known. */
const OTHER_METHOD = "_OTHER";

const INDEX: ReadonlyMap<string, number> = new Map(METHODS.map((method, i) => [method, i]));

export const isKnownMethod = (method: string): boolean => INDEX.has(method);

/** A small number for a method: the same for all that are not known. */
export function methodIndex(method: string): number {
  return method === "GET" ? 0 : (INDEX.get(method) ?? METHODS.length);
}

export const methodLabel = (index: number): string => METHODS[index] ?? OTHER_METHOD;

/** nginx's 499: the client went away before there was a response. */
const CLIENT_GONE = 499;

/**
 * The status that a response is counted as. An unregistered status counts as the x00 of its class (RFC 9110, 15).
 *
 * @param status 0 if there was no response
 */
export function foldedStatus(status: number, registered: (status: number) => boolean): number {
  if (status === 0) return CLIENT_GONE;
  if (registered(status)) return status;
  return status >= 100 && status < 600 ? status - (status % 100) : 500;
}
