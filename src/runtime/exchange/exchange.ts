import type {
  AccessRefusal,
  ClientIdentity,
  ErrorToken,
  HeaderList,
  VerifiedUser,
  RouteConfig,
  RouteGuard,
  VirtualServerConfig,
} from "../../model/index.js";
import type { LoggedRequest, RequestHead } from "../codec/request.js";
import type { ResponseFieldsByScheme } from "./responseFields.js";
import type { RequestCounts, Transferred } from "../counting/requestCounts.js";
import type { LimitRefusal, RouteLimits } from "../rates/routeLimits.js";
import type { Guarded } from "../sockets/guarded.js";
import type { Memory } from "../sockets/memory.js";

/**
 * The interface between servers and actions: one request and its response, over HTTP/1.1 or HTTP/2.
 *
 * A server of a protocol (`server/`) makes an exchange for every request that it accepts, and the dispatcher hands the
 * exchange to the route's action. The action reads the request body by attaching a sink, and responds by `sendHead`,
 * `sendData`, `end` or `abort`. Neither side knows the other.
 */
export interface Exchange extends Guarded, Holdable, UpstreamTrace {
  readonly request: RequestHead;
  readonly client: ClientInfo;
  /** The virtual server that the host selected. */
  readonly server: VirtualServerConfig;
  /** The route that matched; undefined while none has (404, and errors before routing). */
  readonly route: RouteRuntime | undefined;
  /** Status that was sent, 0 before that. */
  readonly status: number;
  /** Bytes of response body handed to the client so far, without framing. */
  readonly bodyBytesSent: number;
  /** True once a final response head went out. */
  readonly headSent: boolean;
  /** Milliseconds from the complete request head to the head of the final response; -1 before that. */
  readonly headMs: number;
  /**
   * How it failed; undefined as long as all goes well. Set where the failure is made: before the error page is sent or the
   * response is cut off. Other ends have none: a missing file, a response of the upstream.
   */
  errorToken: ErrorToken | undefined;

  /**
   * Takes the request body. Data arrives from now on, never before. A sink is attached at most once, and before the
   * head is sent unless that opens a tunnel: a body without a sink by then is dropped, within limits.
   */
  readBody(sink: BodySink): void;
  /** Stops and restarts delivery to the sink; data that was already read may still arrive. */
  pauseBody(): void;
  resumeBody(): void;

  /**
   * Sends `100 Continue` if the client waits for it; called by an action that wants the body, before the first read.
   */
  sendContinue(): void;
  /**
   * Passes on an informational response (RFC 9110, 15.2), but not 100 and 101. Dropped if the client's version of HTTP
   * has none, or the client has not read earlier data: so they take up no memory, however many come.
   */
  sendInformational(status: number, reason: string, headers: HeaderList): void;
  /**
   * Sends the response head. Framing (Content-Length, Transfer-Encoding, Connection), `Server` and `Date` are the
   * protocol's own and must not be in `headers`. The protocol also sets and removes the fields that the config lists
   * (`responseFields.ts`), so that this applies to every response, whatever makes it.
   *
   * Status 101 grants the requested upgrade, in the form that the protocol has for it, and begins a tunnel: from then
   * on `readBody` delivers and `sendData` sends its bytes.
   *
   * @param bodyLength bytes that follow; -1 if that is not known; 0 for none. For HEAD and 304 it is the announced
   * length (-1: none), and no byte follows.
   */
  sendHead(status: number, reason: string, headers: HeaderList, bodyLength: number): void;
  /**
   * The same with fields as lines of an HTTP/1.1 head; only in a protocol that has such lines.
   *
   * @param lines each with its CRLF, checked as strictly as a request's, and the blank line that ends the head
   */
  sendLines?(status: number, reason: string, lines: string, bodyLength: number): void;
  /**
   * How many bytes of body should be sent in one piece: few until the client has shown that it reads, many after that.
   * A piece may be longer; it then takes up memory until the client reads it.
   */
  readonly pieceBytesMax: number;
  /**
   * Sends body bytes.
   *
   * @param memory that the bytes are in. By default nothing overwrites them before the holder's `onDrain`
   * @returns false if the client is slower than the source: send no more until the holder's `onDrain`. What arrives
   * all the same is taken
   */
  sendData(chunk: Uint8Array, memory?: Memory): boolean;
  /** Completes the response. Writes head and data that were held back to be sent together. */
  end(): void;
  /** Writes held-back data; called when nothing more is available for now (decisions 4.1: small responses at once). */
  flush(): void;
  /**
   * Gives up in the middle: closes the client's connection or resets the stream, so that a truncated response is never
   * taken for a complete one (decisions 4.2).
   */
  abort(): void;

  /**
   * Refuses the request, and asks the client to send the request over HTTP/1.1 (RFC 9113, 7: HTTP_1_1_REQUIRED). Only
   * HTTP/2 has it.
   */
  requireHttp1?(): void;

  /**
   * The action threw: logs that as an internal fault and ends the exchange with a 500, or cuts it if the head was sent.
   */
  onFault(error: unknown): void;

  /**
   * Set when a request leaves the stream of requests untrustworthy: an HTTP/1.1 connection then ends after the response.
   * The status does not show this: an upstream's own 400 closes nothing.
   */
  closes?: boolean;

  /** The id by which its log lines are found (`requestId.ts`); undefined unless an error page or a line has one. */
  requestId?: string | undefined;

  /** Why the client may not come in, if so. */
  accessRefusal?: AccessRefusal | undefined;

  /** The client that it was counted for, by the limits of its route. */
  countedAs?: string | undefined;
  /** The limit of its route that refused it. */
  exceeds?: LimitRefusal["limit"] | undefined;
  /** Which guard against guessing refused a log-in, if so. */
  guardRefusal?: { readonly guard: string; readonly reason: "slowed" | "closed" } | undefined;
  /** Who asks, if access policies or `clientCertificate` ask for that. */
  user?: VerifiedUser | undefined;
  /** Fields of a portal that admitted the request, which the response has besides its own, whatever makes it. */
  portalFields?: HeaderList | undefined;
}

/**
 * Data about an exchange's request to an upstream; set by its action. Times are differences: small numbers, which
 * allocate nothing.
 */
export interface UpstreamTrace {
  /** URL of the server that got the last attempt; undefined before the first attempt. */
  upstreamServer: string | undefined;
  /** Milliseconds from the complete request head until a connection to that server was available; -1 before that. */
  upstreamBegunMs: number;
  /** Milliseconds that it took to establish; -1 if it was used before, or was never established. */
  upstreamConnectMs: number;
}

/** The owner of resources, which are given back when it ends, whichever side ends it. */
export interface Holdable {
  /** Nothing may be acquired for it any more: it is over, or something other than its action responds. */
  readonly released: boolean;
  /**
   * Registers `holder`, which is called at the end. Code that hands out a resource calls this first.
   *
   * @returns false if it is released: then nothing may be acquired
   * @throws if another holds for it: an exchange has one holder at a time
   */
  hold(holder: ExchangeHolder): boolean;
  /** The holder has given back everything and is not called any more. */
  letGo(holder: ExchangeHolder): void;
}

/** Works on an exchange for its action, and holds what it needs for that: a file, a connection, a place in a queue. */
export interface ExchangeHolder {
  /** `sendData`, which had returned false, may continue. */
  onDrain(): void;
  /** The tunnel should be closed in an orderly way. */
  onTunnelClosing?(): void;
  /** The exchange is over, or another will respond: gives back everything, at once. Called once. */
  onReleased(): void;
}

export type { HeaderList };

/** An exchange as its protocol made it, for routing and logging. */
export interface LoggedExchange extends Exchange, Transferred {
  readonly request: LoggedRequest;
}

/** An exchange whose response is not complete. */
export interface RunningExchange extends LoggedExchange {
  /** Bytes of its body, or of the tunnel, that the client has sent so far. */
  readonly bodyBytesReceived: number;
  /** Bytes of body that the response's head announced; -1 if it announced none, or was not sent. */
  readonly responseBytes: number;
  /** Whether the client has to send more of the body, and neither the proxy nor the upstream holds the client back. */
  readonly awaitsBody: boolean;
  /** Closes its tunnel, if it has one, in an orderly way. */
  closeTunnel(): void;
}

export interface ClientInfo {
  readonly address: string;
  /** 0 if a trusted proxy named the client: its connection is not ours. */
  readonly port: number;
  /** Address of the trusted proxy that named the client; undefined if the client itself is connected. */
  readonly forwardedBy?: string;
  readonly scheme: "http" | "https";
  /**
   * Group of the key exchange, by its OpenSSL name; undefined if there was none, without TLS, and where no access log
   * shows it.
   */
  readonly tlsGroup: string | undefined;
  /** The scheme whose rules apply to response fields: only over `https` is HSTS sent. */
  readonly responseRules: "http" | "https";
  /** Name of the listener it came through. */
  readonly listener: string;
  /** Address that the client connected to. */
  readonly localAddress: string;
  readonly localPort: number;
  /** Serial number of the connection in this worker, for the error log. */
  readonly connectionId: number;
  /** Whether the peer is in `trustedProxies`. */
  readonly trusted: boolean;
  /**
   * Tells whether the connection's certificate does not cover a host name that another certificate of the listener covers;
   * undefined if that is true of no name.
   */
  readonly misdirected: ((serverName: string) => boolean) | undefined;
  /** The certificate that the handshake asked the client for; undefined if it did not ask. */
  readonly presented: PresentedCertificate | undefined;
}

/** The certificate of a connection's client: what the handshake found, by what the files of its authorities have now. */
export interface PresentedCertificate {
  /** Who asked for it: servers that name the same files ask as one. */
  readonly request: object;
  /** Names of a valid certificate, the common name first. */
  readonly names: readonly string[];
  /** The certificate, for the error log; empty for none. */
  readonly shown: string;
  /** Why it is not valid now; undefined if it is. @param now in milliseconds since 1970 */
  faultAt(now: number): CertificateFault | undefined;
  /** A valid certificate, as upstreams get it. */
  identity(user: string | undefined): ClientIdentity;
}

/** Why a client's certificate is not valid: labels of a metric. */
export type CertificateFault =
  | "none"
  | "unknown-authority"
  | "expired"
  | "not-yet-valid"
  | "revoked"
  | "crl-expired"
  | "invalid";

/** The receiver of a request body. */
export interface BodySink {
  /**
   * A piece of the body.
   *
   * @param memory that the bytes are in
   * @returns false to pause delivery until `resumeBody`
   */
  onData(chunk: Buffer, memory: Memory): boolean;
  /** The body is complete. Without this it was cut off: then the exchange is released. */
  onEnd(): void;
}

/** What responds to the requests of one route. */
export interface RouteAction {
  handle(exchange: Exchange): void;
}

/** A route made ready to serve: its action compiled and its logs opened. */
export interface RouteRuntime {
  readonly config: RouteConfig;
  readonly server: VirtualServerConfig;
  readonly action: RouteAction;
  /** Judges the clients; undefined if everyone may come in. */
  readonly guard: RouteGuard | undefined;
  /** Limits of what one client may ask of it; undefined if there are none. */
  readonly limits: RouteLimits | undefined;
  /** Rules of the config for fields of its responses; undefined if there are none. */
  readonly responseFields: ResponseFieldsByScheme | undefined;
  readonly accessLog: AccessLog;
  readonly errorLog: ErrorLog;
  readonly counts: RequestCounts;
}

export interface AccessLog {
  /** Writes a line for a request; called once, when the exchange is over. */
  write(exchange: LoggedExchange): void;
}

export interface ErrorLog {
  /**
   * Writes a single line, whatever the message contains.
   *
   * @param exchange whose client, server, request and host the line names
   * @param upstream URL that was asked of the upstream
   */
  write(level: ErrorLevel, message: string, exchange?: Exchange, upstream?: string): void;
}

/** The severities of nginx's error log that Portico uses. */
export type ErrorLevel = "error" | "warn" | "info" | "crit";

/** First value of a field, compared without case; undefined if it is absent. */
export function headerValue(headers: HeaderList, lowerCaseName: string): string | undefined {
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i]!;
    if (name.length === lowerCaseName.length && name.toLowerCase() === lowerCaseName) return headers[i + 1];
  }
  return undefined;
}
