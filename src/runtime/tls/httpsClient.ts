import type { ClientRequest, IncomingMessage } from "node:http";
import { Agent, type AgentOptions, request } from "node:https";
import type { TcpNetConnectOpts } from "node:net";
import type { ConnectionOptions, TLSSocket } from "node:tls";
import { VERSION } from "../../model/text/version.js";
import { TlsCarrier } from "./tlsCarrier.js";
import { clientContext } from "./tlsContexts.js";

/**
 * The https requests that the proxy sends for itself: to authorities, to acme-dns, to targets of notifications. The
 * server has to be trusted, redirects are not followed, no proxy of the environment is used, and a server cannot take
 * more time or memory than the limits.
 */

export interface HttpsClientOptions {
  /** PEM of the only roots that are trusted; default: those that Node brings along. */
  readonly roots: string | undefined;
  /** For the whole response. */
  readonly deadlineMs: number;
  /** Longest body; 0: the status and the header fields are enough. */
  readonly bodyBytesMax: number;
  /** How long a connection is kept for the next request; by default it is not kept. */
  readonly keepMs?: number;
  /** After this signal no request is sent. */
  readonly signal: AbortSignal;
  /** How long a response is awaited after the signal. */
  readonly stoppingMs: number;
}

export interface HttpsRequest {
  readonly method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE";
  readonly url: URL | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
  /** Whether it may be repeated when it is unknown whether the server received it. */
  readonly makesNothing?: boolean;
}

export interface HttpsResponse {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

/** What a server did wrong, in words for people; other failures are Node's own errors. */
export class BadServer extends Error {}

export class LongBody extends BadServer {}

export class HttpsClient {
  /** Keeps connections open: a handshake is the most expensive part of a request. */
  private agent: OwnAgent | undefined;

  constructor(private readonly options: HttpsClientOptions) {}

  /** Rejects if there is no whole response. */
  async send(asked: HttpsRequest): Promise<HttpsResponse> {
    const { signal } = this.options;
    signal.throwIfAborted();
    for (;;) {
      try {
        return await this.exchange(asked);
      } catch (error) {
        if (!(error instanceof Stale)) throw error;
        if (signal.aborted || asked.makesNothing !== true) throw error.cause;
      }
    }
  }

  private exchange({ method, url, headers: more, body }: HttpsRequest): Promise<HttpsResponse> {
    const { roots, deadlineMs, bodyBytesMax, keepMs, signal, stoppingMs } = this.options;
    this.agent ??= new OwnAgent(roots, keepMs === undefined ? {} : { keepAlive: true, timeout: keepMs });
    const { agent } = this;
    const headers = { "user-agent": `portico/${VERSION}`, ...more };
    return new Promise((resolve, reject) => {
      let responded = false;
      const sent = request(url, { method, headers, agent }, (response) => {
        responded = true;
        // Each byte may come in a piece of its own, which as a list would be hundreds of megabytes.
        const content = Buffer.allocUnsafe(bodyBytesMax);
        let bytes = 0;
        const done = (): void =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: content.toString("utf8", 0, bytes),
          });
        response.on("error", reject);
        if (bodyBytesMax === 0) {
          done();
          return void sent.destroy();
        }
        response.on("data", (chunk: Buffer) => {
          if (bytes + chunk.length > bodyBytesMax) {
            reject(new LongBody(`the response is longer than ${bodyBytesMax} bytes`));
            return void sent.destroy();
          }
          bytes += chunk.copy(content, bytes);
        });
        response.on("end", done);
        // `end` is not emitted for a response that was cut off.
        response.on("close", () => reject(new BadServer("the response is cut off")));
      });
      boundInformational(sent);
      const late = (ms: number): NodeJS.Timeout =>
        setTimeout(() => sent.destroy(new BadServer(`no response within ${ms / 1_000} s`)), ms);
      let timer = late(deadlineMs);
      // The response to a request that created something is worth a short wait.
      const stop = (): void => {
        clearTimeout(timer);
        timer = late(stoppingMs);
      };
      signal.addEventListener("abort", stop);
      sent.on("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        // After 101, which nobody asked for, nothing else is emitted.
        if (!responded) reject(new BadServer("it closed the connection without a response"));
      });
      sent.on("error", (error: NodeJS.ErrnoException) => {
        const stale = sent.reusedSocket && !responded && CLOSED.has(error.code ?? "");
        reject(stale ? new Stale("", { cause: error }) : error);
      });
      sent.end(body);
    });
  }
}

/**
 * The server closed a connection that was kept for this request, perhaps just then (RFC 9112, 9.3.1). If it was heard
 * all the same, its nonce is used up, and the refusal brings a new one (RFC 8555, 6.5).
 */
class Stale extends Error {}

const CLOSED: ReadonlySet<string> = new Set(["ECONNRESET", "EPIPE"]);

/**
 * The server has to be trusted, whatever `NODE_TLS_REJECT_UNAUTHORIZED` says, and what it sends keeps this process from
 * nothing else for longer than one read takes.
 */
class OwnAgent extends Agent {
  constructor(roots: string | undefined, options: AgentOptions) {
    super({ ...options, rejectUnauthorized: true, secureContext: clientContext(roots) } as AgentOptions);
  }

  override createConnection(options: ConnectionOptions & TcpNetConnectOpts): TLSSocket {
    const { host, port } = options;
    const carrier = new TlsCarrier({ host, port, noDelay: true }, true);
    const over = { ...options, socket: carrier };
    const socket = super.createConnection(over) as TLSSocket;
    carrier.begin(socket);
    return socket;
  }
}

/** Gives up a server that would keep this process busy with interim responses for as long as it likes. */
function boundInformational(sent: ClientRequest): void {
  let seen = 0;
  sent.on("information", () => {
    if (++seen === INFORMATIONAL_MAX + 1) sent.destroy(new BadServer("it sent too many interim responses"));
  });
}

const INFORMATIONAL_MAX = 100;
