import { HttpsClient, type HttpsResponse, LongBody } from "../tls/httpsClient.js";
import { AcmeError } from "./acmeError.js";

/** HTTPS as an authority gets it. */

export type AcmeResponse = HttpsResponse;

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

const LIMITS = {
  /** A chain takes about 10 KiB; a much larger body is not from an authority. */
  bodyBytesMax: 1024 * 1024,
  deadlineMs: 30_000,
  stoppingMs: 5_000,
  /** An order takes a dozen requests; servers close idle connections after 5 seconds or more. */
  keepMs: 2_000,
};

export class Transport {
  private readonly client: HttpsClient;

  constructor(private readonly options: TransportOptions) {
    const { roots, signal } = options;
    this.client = new HttpsClient({ roots, signal, ...LIMITS });
  }

  /**
   * @param makesNothing whether the request may be repeated when it is unknown whether the server received it
   * @throws AcmeError `unreachable` if there is no whole response
   */
  async send(
    method: "GET" | "HEAD" | "POST" | "PUT" | "DELETE",
    url: string,
    body?: string,
    makesNothing = body === undefined,
  ): Promise<AcmeResponse> {
    const { signal, headers: more, peer = "the authority" } = this.options;
    signal.throwIfAborted();
    if (!URL.canParse(url) || new URL(url).protocol !== "https:") {
      throw new AcmeError("badResponse", `the authority refers to ${url}, which is not an https URL`);
    }
    const headers = {
      "accept-language": "en",
      ...(body === undefined ? {} : { "content-type": "application/jose+json" }),
      ...more,
    };
    try {
      return await this.client.send({ method, url, headers, body, makesNothing });
    } catch (error) {
      if (error instanceof LongBody)
        throw new AcmeError("badResponse", `the response of ${peer} from ${url} is longer than a megabyte`);
      if (signal.aborted) throw error;
      throw AcmeError.ofNetwork(new URL(url).host, error as NodeJS.ErrnoException);
    }
  }
}
