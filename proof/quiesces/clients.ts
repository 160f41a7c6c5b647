import { createHash, randomBytes } from "node:crypto";
import { once } from "node:events";
import * as http from "node:http";
import { type ClientHttp2Session } from "node:http2";
import { setTimeout as sleep } from "node:timers/promises";
import { connectHttp2 } from "../../testkit/http2Session.js";
import type { Random } from "../../testkit/random.js";

/** Clients that upload one file after the other, and try again until each is stored, as sync clients do. */

export interface Uploaded {
  readonly target: string;
  readonly digest: string;
}

/** What one attempt came to: a status, or 0 for one that was cut off. */
interface Attempt {
  readonly status: number;
  readonly retryAfter: string | undefined;
  /** Why there is no response. */
  readonly why?: string;
}

/** Sends a body in pieces, so that it is under way for some tenths of a second. */
type Send = (target: string, body: Buffer, declared: boolean) => Promise<Attempt>;

export interface Client {
  readonly send: Send;
  close(): void;
}

const PIECE_BYTES = 65_536;
const PIECE_EVERY_MS = 8;

async function inPieces(
  to: NodeJS.WritableStream & { destroyed: boolean },
  body: Buffer,
  bytes = PIECE_BYTES,
  everyMs = PIECE_EVERY_MS,
): Promise<void> {
  for (let at = 0; at < body.length && !to.destroyed; at += bytes) {
    to.write(body.subarray(at, at + bytes));
    await sleep(everyMs);
  }
  if (!to.destroyed) to.end();
}

/** @param pieces of a slow client: how large they are, and how long after one another */
export function overHttp1(port: number, ...pieces: [bytes: number, everyMs: number] | []): Client {
  const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
  const send: Send = (target, body, declared) =>
    new Promise((resolve) => {
      const headers = declared ? { "Content-Length": body.length } : { "Transfer-Encoding": "chunked" };
      const request = http.request({ port, host: "127.0.0.1", method: "PUT", path: target, headers, agent });
      request.on("response", (response) => {
        response.resume();
        const attempt = { status: response.statusCode!, retryAfter: response.headers["retry-after"] };
        response.on("close", () => {
          resolve(attempt);
          if (!request.writableEnded) request.destroy();
        });
      });
      request.on("error", ({ message }) => {
        resolve({ ...CUT, why: request.reusedSocket ? `${message}, on a used connection` : message });
      });
      void inPieces(request, body, ...pieces);
    });
  return { send, close: () => agent.destroy() };
}

export function overHttp2(port: number): Client {
  let session: ClientHttp2Session | undefined;
  const send: Send = async (target, body, declared) => {
    if (session === undefined || session.closed || session.destroyed) session = connectHttp2(port);
    const length = declared ? { "content-length": body.length } : {};
    const stream = session.request({ ":method": "PUT", ":path": target, ":authority": "a", ...length });
    let attempt = CUT;
    stream.on("error", ({ message }) => {
      if (attempt === CUT) attempt = { ...CUT, why: message };
    });
    stream.on("response", (headers) => {
      attempt = { status: headers[":status"]!, retryAfter: headers["retry-after"] as string | undefined };
    });
    const closed = once(stream, "close").catch(() => undefined);
    stream.resume();
    void inPieces(stream, body);
    await closed;
    return attempt;
  };
  return { send, close: () => session?.destroy() };
}

const CUT: Attempt = { status: 0, retryAfter: undefined };

/** What became of the uploads of a round. */
export interface Tally {
  /** Those that got a response of success. */
  readonly stored: Uploaded[];
  /** When uploads were refused, in milliseconds since 1970. */
  readonly refused: number[];
  /** Those that were cut off: which, and why. */
  readonly cut: string[];
  /** Responses that no rule allows. */
  readonly odd: string[];
}

export const hashOf = (bytes: Buffer): string => createHash("sha256").update(bytes).digest("hex");

export const nothingYet = (): Tally => ({ stored: [], refused: [], cut: [], odd: [] });

/** Uploads until it is told to stop, and then until the last file is stored. */
export async function uploads(
  client: Client,
  name: string,
  random: Random,
  tally: Tally,
  going: () => boolean,
): Promise<void> {
  for (let file = 0; going(); file++) {
    const body = randomBytes(100_000 + random.pick(2_000_000));
    const digest = hashOf(body);
    const declared = random.pick(2) === 0;
    for (let attempt = 0; ; attempt++) {
      const target = `/${name}/${file}/${attempt}`;
      const { status, retryAfter, why } = await client.send(target, body, declared);
      if (status === 201) tally.stored.push({ target, digest });
      else if (status === 503 && retryAfter !== undefined) tally.refused.push(Date.now());
      else if (status === 0) tally.cut.push(`${target} (${why})`);
      else tally.odd.push(`${target}: ${status}, Retry-After ${retryAfter}`);
      if (status === 201) break;
      await sleep(50 + random.pick(100));
    }
  }
  client.close();
}
