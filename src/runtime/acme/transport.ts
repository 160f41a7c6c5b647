import type { IncomingMessage } from "node:http";
import { Agent, request } from "node:https";
import { createSecureContext } from "node:tls";
import { VERSION } from "../../model/version.js";
import { AcmeError } from "./acmeError.js";

/** HTTPS as an authority gets it: no redirects, a limit on the time and size of every answer. */

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

export interface TransportOptions {
  /** PEM of the roots that are trusted; default: those that Node brings along. */
  readonly roots?: string | undefined;
  /** Ends it: nothing is sent after it, and what was sent is waited for only a moment. */
  readonly signal: AbortSignal;
}

/** A chain takes some 10 KiB; what is larger is not from an authority. */
const BODY_BYTES_MAX = 1024 * 1024;
const ANSWER_MS = 30_000;
const STOPPING_MS = 5_000;
/** How long a connection is kept for the next request: servers close idle ones after 5 seconds or more. */
const IDLE_MS = 2_000;

export class Transport {
  /** A handshake costs more than all else of a request, and an order is a dozen of them in a row. */
  private agent: Agent | undefined;

  constructor(private readonly options: TransportOptions) {}

  /** @throws AcmeError `unreachable` if there is no whole answer */
  async send(method: "GET" | "HEAD" | "POST", url: string, body?: string): Promise<Answer> {
    this.options.signal.throwIfAborted();
    if (!URL.canParse(url) || new URL(url).protocol !== "https:") {
      throw new AcmeError("badAnswer", `the authority refers to ${url}, which is not an https URL`);
    }
    try {
      return await this.exchange(method, url, body);
    } catch (error) {
      if (error instanceof AcmeError || this.options.signal.aborted) throw error;
      throw AcmeError.ofNetwork(new URL(url).host, error as NodeJS.ErrnoException);
    }
  }

  private exchange(method: string, url: string, body: string | undefined): Promise<Answer> {
    const { roots, signal } = this.options;
    const headers = {
      "user-agent": `portico/${VERSION}`,
      "accept-language": "en",
      ...(body === undefined ? {} : { "content-type": "application/jose+json" }),
    };
    this.agent ??= new Agent({
      keepAlive: true,
      timeout: IDLE_MS,
      secureContext: createSecureContext(roots === undefined ? {} : { ca: roots }),
    });
    const { agent } = this;
    return new Promise((resolve, reject) => {
      const sent = request(url, { method, headers, agent }, (response) => {
        const chunks: Buffer[] = [];
        let bytes = 0;
        response.on("error", reject);
        response.on("data", (chunk: Buffer) => {
          bytes += chunk.length;
          chunks.push(chunk);
          if (bytes <= BODY_BYTES_MAX) return;
          reject(new AcmeError("badAnswer", `the authority's answer from ${url} is longer than a megabyte`));
          sent.destroy();
        });
        response.on("end", () =>
          resolve({
            status: response.statusCode!,
            headers: response.headers,
            body: Buffer.concat(chunks).toString("utf8"),
          }),
        );
        // `end` is not emitted for an answer that was cut off.
        response.on("close", () => reject(new Error("the answer is cut off")));
      });
      const late = (): void => void sent.destroy(new Error("it did not answer in time"));
      let timer = setTimeout(late, ANSWER_MS);
      // The answer to a request that made something is worth a moment.
      const stop = (): void => {
        clearTimeout(timer);
        timer = setTimeout(late, STOPPING_MS);
      };
      signal.addEventListener("abort", stop);
      sent.on("close", () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", stop);
      });
      sent.on("error", reject);
      sent.end(body);
    });
  }
}
