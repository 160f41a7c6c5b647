import { createHash } from "node:crypto";
import { once } from "node:events";
import http from "node:http";
import http2 from "node:http2";
import https from "node:https";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { pattern } from "../transfer/pattern.js";

/** How a client reaches the front end. */
export type Protocol = "http" | "https" | "http2";

export interface Client {
  readonly ports: { readonly http: number; readonly https: number };
  readonly agents: { readonly http: http.Agent; readonly https: https.Agent };
  /** An open HTTP/2 session; a new one if the last was closed. */
  session(): http2.ClientHttp2Session;
  /** SHA-256 of the pattern of each of {@link SIZES}. */
  readonly digests: ReadonlyMap<number, string>;
  /** What lies under {@link MEDIA}. */
  readonly media: Buffer;
  readonly random: () => number;
}

/** Small enough for one packet, larger than a buffer, larger than all windows. */
export const SIZES = [1_000, 100_000, 3_000_000, 24_000_000];
export const MEDIA = { path: "icons/portrait.png", bytes: 300_000 };
/** What comes of an upload whose client leaves: no body that arrives whole is as long. */
export const HALF_BYTES = SIZES[2]! / 2;

interface Response {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Readable;
}

/** One request and what must come of it; throws if something else did. */
export type Operation = (client: Client, protocol: Protocol) => Promise<void>;

/** What is done, and how often compared with the rest. */
export const OPERATIONS: Readonly<Record<string, { readonly weight: number; readonly run: Operation }>> = {
  "small request": { weight: 60, run: small },
  download: { weight: 12, run: download },
  upload: { weight: 12, run: upload },
  "media file": { weight: 10, run: media },
  "media range": { weight: 6, run: range },
  "WebDAV listing": { weight: 4, run: listing },
  "WebDAV rename": { weight: 4, run: rename },
  "client leaves a download": { weight: 4, run: leaveDownload },
  "client leaves an upload": { weight: 4, run: leaveUpload },
  "upstream cuts a response": { weight: 3, run: cutResponse },
  "upstream resets": { weight: 3, run: resetByUpstream },
  "upstream refuses an upload": { weight: 3, run: refusedUpload },
};

async function small(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "GET", "/sync/small");
  expect(response, 200);
  equal((await read(response.body)).toString(), '{"ok":true}');
}

async function download(client: Client, protocol: Protocol): Promise<void> {
  const bytes = pick(client, SIZES);
  const response = await ask(client, protocol, "GET", `/synchttp/file?bytes=${bytes}`);
  expect(response, 200);
  equal(await digestOf(response.body), client.digests.get(bytes));
}

async function upload(client: Client, protocol: Protocol): Promise<void> {
  const bytes = pick(client, SIZES);
  const chunked = client.random() < 0.3;
  const response = await ask(
    client,
    protocol,
    "PUT",
    "/synchttp/file",
    () => pattern(bytes),
    chunked ? undefined : bytes,
  );
  expect(response, 200);
  const seen = JSON.parse((await read(response.body)).toString());
  equal(seen, { bytes, sha256: client.digests.get(bytes) });
}

async function media(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "GET", `/syncmedia/${MEDIA.path}`);
  expect(response, 200);
  equal(response.headers["content-type"], "image/png");
  demand((await read(response.body)).equals(client.media), "another file");
}

async function range(client: Client, protocol: Protocol): Promise<void> {
  const headers = { range: "bytes=1000-1999" };
  const response = await ask(client, protocol, "GET", `/syncmedia/${MEDIA.path}`, undefined, 0, headers);
  expect(response, 206);
  demand((await read(response.body)).equals(client.media.subarray(1_000, 2_000)), "another range");
}

async function listing(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "PROPFIND", "/syncdav/collection");
  expect(response, 207);
  await read(response.body);
}

async function rename(client: Client, protocol: Protocol): Promise<void> {
  const scheme = protocol === "http" ? "http" : "https";
  const headers = { destination: `${scheme}://127.0.0.1:${client.ports[scheme]}/syncdav/b%20c` };
  const response = await ask(client, protocol, "MOVE", "/syncdav/collection", undefined, 0, headers);
  expect(response, 201);
  equal((await read(response.body)).toString(), "/syncdav/b%20c");
}

async function leaveDownload(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "GET", `/synchttp/file?bytes=${SIZES.at(-1)}`);
  expect(response, 200);
  await new Promise((resolve) => response.body.once("data", resolve));
  response.body.destroy();
}

/** Half a body, then the connection or stream breaks: nobody may take it for whole, not the upstream either. */
async function leaveUpload(client: Client, protocol: Protocol): Promise<void> {
  const declared = client.random() < 0.5 ? HALF_BYTES * 2 : undefined;
  const body = (): Readable => Readable.from(half());
  const outcome = await outcomeOf(ask(client, protocol, "PUT", "/synchttp/file", body, declared));
  if (outcome !== "failed") throw new Error(`the response to half an upload was ${outcome}`);
}

async function* half() {
  for await (const chunk of pattern(HALF_BYTES)) yield chunk as Buffer;
  throw new Error("left on purpose");
}

async function cutResponse(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "GET", `/synchttp/cut?bytes=${pick(client, SIZES)}`);
  const outcome = await outcomeOf(read(response.body).then(() => response));
  // A small response may be cut before its head went out; then it is an error page.
  if (outcome !== "failed" && outcome !== 502)
    throw new Error(`half a response was taken for whole: ${outcome}`);
}

async function resetByUpstream(client: Client, protocol: Protocol): Promise<void> {
  const response = await ask(client, protocol, "GET", "/synchttp/reset");
  expect(response, 502);
  await read(response.body);
}

/** The refusal reaches the client though it is still sending. */
async function refusedUpload(client: Client, protocol: Protocol): Promise<void> {
  const bytes = SIZES[2]!;
  const response = await ask(client, protocol, "PUT", "/synchttp/refuse", () => pattern(bytes), bytes);
  expect(response, 413);
  try {
    await read(response.body);
  } catch (error) {
    // Said by a server whose response is complete (RFC 9113, 8.1); Node then drops what it has not handed out yet.
    if ((response.body as HttpBody).rstCode !== http2.constants.NGHTTP2_NO_ERROR) throw error;
  }
}

/** Makes the body anew for each attempt; undefined for a request without one. */
type Body = (() => Readable) | undefined;

function ask(
  client: Client,
  protocol: Protocol,
  method: string,
  path: string,
  body?: Body,
  bytes?: number,
  headers: Record<string, string> = {},
): Promise<Response> {
  const declared = body !== undefined && bytes !== undefined;
  const all = declared ? { ...headers, "content-length": String(bytes) } : headers;
  return protocol === "http2"
    ? askHttp2(client, method, path, all, body)
    : askHttp1(client, protocol, method, path, all, body);
}

function askHttp1(
  { ports, agents }: Client,
  protocol: "http" | "https",
  method: string,
  path: string,
  headers: Record<string, string>,
  body: Body,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    const request = (protocol === "http" ? http : https).request({
      host: "127.0.0.1",
      port: ports[protocol],
      agent: agents[protocol],
      rejectUnauthorized: false,
      method,
      path,
      headers,
    });
    request.on("error", reject);
    request.on("response", (message) => {
      message.on("error", () => undefined);
      resolve({ status: message.statusCode!, headers: message.headers, body: message });
    });
    // Errors show on the response; a body that breaks off breaks the request.
    if (body === undefined) request.end();
    else pipeline(body(), request).catch(() => undefined);
  });
}

/** A stream that the server refused was not looked at, and is asked for again (RFC 9113, 8.7): browsers do so. */
async function askHttp2(
  client: Client,
  method: string,
  path: string,
  headers: Record<string, string>,
  body: Body,
): Promise<Response> {
  for (let attempt = 1; ; attempt++) {
    const stream = client
      .session()
      .request({ ":method": method, ":path": path, ...headers }, { endStream: false });
    try {
      return await responseOn(stream, body);
    } catch (error) {
      if (stream.rstCode !== http2.constants.NGHTTP2_REFUSED_STREAM || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

/** A reload may come between two attempts; twice in a row it does not. */
const ATTEMPTS_MAX = 3;

function responseOn(stream: http2.ClientHttp2Stream, body: Body): Promise<Response> {
  return new Promise((resolve, reject) => {
    stream.on("error", reject);
    stream.on("close", () => reject(new Error("closed without a response")));
    stream.on("response", (fields) =>
      resolve({ status: fields[":status"]!, headers: fields as never, body: stream }),
    );
    if (body === undefined) stream.end();
    else void sendOn(stream, body());
  });
}

/**
 * Sends until the body ends or the server has heard enough (RFC 9113, 8.1): its response is still to be read.
 * `pipeline` would destroy the stream, and with it the response.
 */
async function sendOn(stream: http2.ClientHttp2Stream, body: Readable): Promise<void> {
  const unwanted = (): boolean => stream.aborted || stream.destroyed || stream.writableEnded;
  try {
    for await (const chunk of body) {
      if (unwanted()) return;
      if (!stream.write(chunk)) await writable(stream);
    }
    if (!unwanted()) stream.end();
  } catch (error) {
    stream.destroy(error as Error);
  }
}

async function writable(stream: http2.ClientHttp2Stream): Promise<void> {
  const rest = new AbortController();
  const { signal } = rest;
  await Promise.race(["drain", "aborted", "close"].map((event) => once(stream, event, { signal })));
  rest.abort();
}

async function outcomeOf(asked: Promise<Response>): Promise<number | "failed"> {
  try {
    const response = await asked;
    await read(response.body);
    return response.status;
  } catch {
    return "failed";
  }
}

async function read(body: Readable): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of body) chunks.push(chunk as Buffer);
  if (brokeOff(body as HttpBody)) throw new Error("aborted");
  return Buffer.concat(chunks);
}

/** Of HTTP/1.1 with `aborted`, of HTTP/2 with `rstCode` too. */
type HttpBody = Readable & { readonly aborted?: boolean; readonly rstCode?: number };

/** An HTTP/2 stream is `aborted` as well where the server, with a complete response, wants no more of the request. */
function brokeOff(body: HttpBody): boolean {
  return body.rstCode === undefined
    ? body.aborted === true
    : body.rstCode !== http2.constants.NGHTTP2_NO_ERROR;
}

async function digestOf(body: Readable): Promise<string> {
  const hash = createHash("sha256");
  for await (const chunk of body) hash.update(chunk as Buffer);
  return hash.digest("hex");
}

const pick = <T>({ random }: Client, from: readonly T[]): T => from[Math.floor(random() * from.length)]!;

function expect({ status, body }: Response, wanted: number): void {
  if (status === wanted) return;
  body.resume();
  throw new Error(`status ${status} instead of ${wanted}`);
}

function demand(holds: boolean, otherwise: string): void {
  if (!holds) throw new Error(otherwise);
}

function equal(seen: unknown, wanted: unknown): void {
  if (JSON.stringify(seen) !== JSON.stringify(wanted))
    throw new Error(`${JSON.stringify(seen)} instead of ${JSON.stringify(wanted)}`);
}
