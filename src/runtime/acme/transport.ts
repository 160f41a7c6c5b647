import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { boundInformational, OwnAgent } from "../tls/ownRequests.js";
import { VERSION } from "../../model/version.js";
import { AcmeError } from "./acmeError.js";

/** HTTPS as an authority gets it: no redirects, a limit on the time and size of every response. */

export interface Response {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TransportOptions {
  /** PEM of the roots that are trusted; default: those that Node brings along. */
  readonly roots?: string | undefined;
  /** Further header fields of every request. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Name of the server in messages. */
  readonly peer?: string;
  /** After this signal no request is sent, and the response to one in progress is awaited only briefly. */
  readonly signal: AbortSignal;
}

/** A chain takes about 10 KiB; a much larger body is not from an authority. */
const BODY_BYTES_MAX = 1024 * 1024;
const RESPONSE_MS = 30_000;
const STOPPING_MS = 5_000;
/** How long a connection is kept for the next request: servers close idle ones after 5 seconds or more. */
const IDLE_MS = 2_000;

export class Transport {
  /**
   * Keeps connections open: a handshake is the most expensive part of a request, and an order takes a dozen requests.
   */
  private agent: OwnAgent | undefined;

  constructor(private readonly options: TransportOptions) {}

  /**
   * @param makesNothing whether the request may be repeated when it is unknown whether the server received it
   * @throws AcmeError `unreachable` if there is no whole response
   */
  async send(
    method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE",
    url: string,
    body?: string,
    makesNothing = body === undefined,
  ): Promise<Response> {
    this.options.signal.throwIfAborted();
    if (!URL.canParse(url) || new URL(url).protocol !== "https:") {
      throw new AcmeError("badResponse", `the authority refers to ${url}, which is not an https URL`);
    }
    for (;;) {
      try {
        return await this.exchange(method, url, body);
      } catch (error) {
        if (error instanceof AcmeError || this.options.signal.aborted) throw error;
        if (error instanceof Stale && makesNothing) continue;
        const cause = error instanceof Stale ? error.cause : error;
        throw AcmeError.ofNetwork(new URL(url).host, cause as NodeJS.ErrnoException);
      }
    }
  }

  private exchange(method: string, url: string, body: string | undefined): Promise<Response> {
    const { roots, signal, headers: more, peer = "the authority" } = this.options;
    const headers = {
      "user-agent": `portico/${VERSION}`,
      "accept-language": "en",
      ...(body === undefined ? {} : { "content-type": "application/jose+json" }),
      ...more,
    };
    this.agent ??= new OwnAgent(roots, { keepAlive: true, timeout: IDLE_MS });
    const { agent } = this;
    return new Promise((resolve, reject) => {
      let responded = false;
      const sent = request(url, { method, headers, agent }, (response) => {
        responded = true;
        // Each byte may come in a piece of its own, which as a list would be hundreds of megabytes.
        const content = Buffer.allocUnsafe(BODY_BYTES_MAX);
        let bytes = 0;
        response.on("error", reject);
        response.on("data", (chunk: Buffer) => {
          if (bytes + chunk.length > BODY_BYTES_MAX) {
            reject(
              new AcmeError("badResponse", `the response of ${peer} from ${url} is longer than a megabyte`),
            );
            return void sent.destroy();
          }
          bytes += chunk.copy(content, bytes);
        });
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: content.toString("utf8", 0, bytes),
          }),
        );
        // `end` is not emitted for a response that was cut off.
        response.on("close", () => reject(new Error("the response is cut off")));
      });
      boundInformational(sent, (why) => void sent.destroy(new Error(why)));
      const late = (): void => void sent.destroy(new Error("it did not respond in time"));
      let timer = setTimeout(late, RESPONSE_MS);
      // The response to a request that created something is worth a short wait.
      const stop = (): void => {
        clearTimeout(timer);
        timer = setTimeout(late, STOPPING_MS);
      };
      signal.addEventListener("abort", stop);
      sent.on("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
        // After 101, which nobody asked for, nothing else is emitted.
        if (!responded) reject(new Error("it closed the connection without a response"));
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
