import { createHash } from "node:crypto";
import { once } from "node:events";
import * as http from "node:http";
import * as http2 from "node:http2";
import * as https from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { Readable } from "node:stream";
import { patternChunk, patternHash } from "./pattern.js";
import { secureContext } from "../tlsClient.js";

/**
 * What a busy day looks like: small requests without pause and long transfers in both directions, over HTTP/1.1, over
 * TLS and over HTTP/2, every response checked. Clients are polite and naive: they mind what a server announces
 * (`Connection: close`, GOAWAY) and try nothing again, so that one lost request is one failure.
 */
export interface LoadOptions {
  /** Address to connect to. */
  readonly address: string;
  readonly httpPort: number;
  readonly httpsPort: number;
  /** Host to ask for. */
  readonly host: string;
  /** Path that an upstream (`loadUpstream.ts`) serves. */
  readonly path: string;
  /** How long each long transfer takes. */
  readonly transferMs: number;
  readonly transferBytes: number;
  /** Small requests of each kind that run at a time. */
  readonly clients: number;
  /** Rest between two small requests of a client at first, in milliseconds. Default 2. */
  readonly pauseMs?: number;
}

export interface Transfer {
  readonly kind: string;
  /** Milliseconds of Date.now(). */
  readonly from: number;
  readonly to: number;
  readonly failure?: string;
}

export interface LoadReport {
  /** Small responses by kind. */
  readonly responses: Readonly<Record<string, number>>;
  /** What went wrong with small requests. */
  readonly failures: readonly { readonly kind: string; readonly at: number; readonly failure: string }[];
  readonly transfers: readonly Transfer[];
  /** The longest that a small request waited, in milliseconds. */
  readonly slowestMs: number;
}

type Ask = (method: string, path: string, body?: () => Readable) => Promise<Response>;

interface Response {
  readonly status: number;
  readonly body: AsyncIterable<Buffer>;
}

export class SteadyLoad {
  /** Rest between two small requests of a client, in milliseconds. */
  pauseMs: number;
  private readonly responses: Record<string, number> = {};
  private readonly failures: { kind: string; at: number; failure: string }[] = [];
  private readonly transfers: Transfer[] = [];
  private slowestMs = 0;
  private running = true;
  private readonly loops: Promise<void>[] = [];

  constructor(private readonly options: LoadOptions) {
    this.pauseMs = options.pauseMs ?? 2;
    for (const [kind, connect] of Object.entries(CLIENTS)) {
      for (let i = 0; i < options.clients; i++) this.loops.push(this.smallRequests(kind, connect(options)));
      if (kind.includes("each")) continue;
      for (const direction of ["download", "upload"] as const) {
        this.loops.push(this.longTransfers(`${kind} ${direction}`, connect(options), direction));
      }
    }
  }

  report(): LoadReport {
    const { responses, failures, transfers, slowestMs } = this;
    return { responses, failures, transfers, slowestMs };
  }

  /** Resolves when everything under way is done. */
  async stop(): Promise<LoadReport> {
    this.running = false;
    await Promise.all(this.loops);
    return this.report();
  }

  private async smallRequests(kind: string, client: Client): Promise<void> {
    this.responses[kind] ??= 0;
    while (this.running) {
      const from = Date.now();
      const failure = await failureOf(async () => {
        const { status, body } = await client.ask("GET", `${this.options.path}/small`);
        const text = await textOf(body);
        if (status !== 200 || text !== "small\n")
          throw new Error(`${status} ${JSON.stringify(text.slice(0, 80))}`);
      });
      this.slowestMs = Math.max(this.slowestMs, Date.now() - from);
      if (failure === undefined) this.responses[kind]! += 1;
      else this.failures.push({ kind, at: from, failure });
      await sleep(failure === undefined ? this.pauseMs : 50);
    }
    client.close();
  }

  private async longTransfers(kind: string, client: Client, way: "download" | "upload"): Promise<void> {
    const { path, transferBytes: bytes, transferMs: ms } = this.options;
    while (this.running) {
      const from = Date.now();
      const failure = await failureOf(async () => {
        const hash =
          way === "download"
            ? await hashOf(await client.ask("GET", `${path}/long?bytes=${bytes}&ms=${ms}`))
            : await textOf((await client.ask("PUT", `${path}/long`, () => paced(bytes, ms))).body);
        if (hash !== patternHash(bytes)) throw new Error(`not what was sent: ${hash.slice(0, 80)}`);
      });
      this.transfers.push({ kind, from, to: Date.now(), failure });
      if (failure !== undefined) await sleep(50);
    }
    client.close();
  }
}

/** Bytes of the pattern, spread evenly over a time. */
export function paced(bytes: number, ms: number): Readable {
  const step = Math.max(1, Math.ceil((bytes * STEP_MS) / ms));
  return Readable.from(
    (async function* () {
      const start = performance.now();
      for (let at = 0; at < bytes; at += step) {
        yield patternChunk(at, Math.min(step, bytes - at));
        const due = start + (ms * (at + step)) / bytes;
        await sleep(Math.max(0, due - performance.now()));
      }
    })(),
    { objectMode: false },
  );
}

const STEP_MS = 50;

interface Client {
  readonly ask: Ask;
  close(): void;
}

const CLIENTS: Readonly<Record<string, (options: LoadOptions) => Client>> = {
  "http/1.1": (options) => http1Client(options, "http", true),
  "http/1.1, a connection each": (options) => http1Client(options, "http", false),
  "http/1.1 tls": (options) => http1Client(options, "https", true),
  "http/1.1 tls, a connection each": (options) => http1Client(options, "https", false),
  "http/2": http2Client,
};

function http1Client(options: LoadOptions, scheme: "http" | "https", keepAlive: boolean): Client {
  const module = scheme === "http" ? http : https;
  // One connection, as one client has; sessions are resumed over TLS as a browser does.
  const agent = new module.Agent({ keepAlive, maxSockets: 1 });
  const common = {
    agent,
    host: options.address,
    port: scheme === "http" ? options.httpPort : options.httpsPort,
    secureContext,
    rejectUnauthorized: false,
    servername: options.host,
  };
  return {
    ask: (method, path, body) =>
      new Promise((resolve, reject) => {
        const request = module.request({ ...common, method, path, headers: { host: options.host } });
        request.on("error", reject).on("response", (response) => {
          resolve({ status: response.statusCode!, body: response });
        });
        if (body === undefined) request.end();
        else body().pipe(request);
      }),
    close: () => agent.destroy(),
  };
}

function http2Client(options: LoadOptions): Client {
  let session: http2.ClientHttp2Session | undefined;
  /** What the session's GOAWAY frames named as the last stream that is served. */
  let lastServed: number[] = [];
  const usable = (): http2.ClientHttp2Session => {
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    session = http2.connect(`https://${options.host}`, {
      secureContext,
      rejectUnauthorized: false,
      host: options.address,
      port: options.httpsPort,
    });
    // Each of its streams tells.
    session.on("error", () => undefined);
    const served: number[] = (lastServed = []);
    session.on("goaway", (_, last) => served.push(last));
    return session;
  };
  const ask: Ask = (method, path, body) =>
    new Promise((resolve, reject) => {
      const stream = usable().request(
        { ":method": method, ":path": path, ":authority": options.host },
        { endStream: body === undefined },
      );
      const served = lastServed;
      stream.on("error", (error) => {
        // Node kept a request to itself that it had not sent when the first GOAWAY came, which refuses none yet.
        const unsent =
          stream.rstCode === http2.constants.NGHTTP2_REFUSED_STREAM && String(served) === ANY_STREAM;
        if (unsent) resolve(ask(method, path, body));
        else reject(error);
      });
      stream.on("response", (headers) => {
        resolve({ status: Number(headers[":status"]), body: whole(stream) });
      });
      // Nothing, if there was a response or an error before.
      stream.on("close", () => reject(new Error(`closed without a response, code ${stream.rstCode}`)));
      body?.().pipe(stream);
    });
  return { ask, close: () => session?.close() };
}

/** GOAWAY with this number only announces the end. */
const ANY_STREAM = String(2 ** 31 - 1);

/** A stream that was reset ends for Node as if it were complete. */
async function* whole(stream: http2.ClientHttp2Stream): AsyncGenerator<Buffer> {
  yield* stream as AsyncIterable<Buffer>;
  if (!stream.closed) await once(stream, "close");
  if (stream.rstCode !== 0) throw new Error(`reset with code ${stream.rstCode}`);
}

async function hashOf({ status, body }: Response): Promise<string> {
  if (status !== 200) return `status ${status}: ${await textOf(body)}`;
  const hash = createHash("sha256");
  for await (const chunk of body) hash.update(chunk);
  return hash.digest("hex");
}

async function textOf(body: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function failureOf(work: () => Promise<void>): Promise<string | undefined> {
  try {
    await work();
    return undefined;
  } catch (error) {
    const { message, code } = error as NodeJS.ErrnoException;
    return code === undefined ? message : `${message} (${code})`;
  }
}
