import { SECOND_MS } from "../../model/text/duration.js";
import { once } from "node:events";
import { createConnection } from "node:net";
import { connect, createServer, type TLSSocket } from "node:tls";
import * as z from "zod";
import { Untrusted } from "../../model/text/untrusted.js";
import { SocketPlaces } from "../sockets/places.js";
import { SHARED_KEY_CONTEXT } from "../tls/tlsContexts.js";
import type { Copies, CopiesResult } from "./copies.js";

/** Which host, which other one, and the key that both have. */
export interface CopyLink {
  /** This host's own address. */
  readonly own: string;
  /** The other host's. */
  readonly peer: string;
  readonly port: number;
  readonly key: Buffer;
}

const IDENTITY = "portico";

/** Two hundred certificates with the longest keys and chains that are usual are a quarter of it. */
const LINE_MAX = 16 * 1024 * 1024;
const CONNECT_MS = 5_000;
const HANDSHAKE_MS = 10_000;
const EXCHANGE_MS = 30_000;
/** A line of the maximum length that contains only empty lists would need a gigabyte as values. */
const VALUES_MAX = 10_000;

/**
 * Listens for the other host. Any user of that host can connect, and only its `portico-copies.service` has the key: a
 * connection that has not shown the key has little time, and takes no place of one that has.
 *
 * @param take receives each message of the other host, not validated
 * @param keysDiffer called when the other host connected with another key
 * @returns ends listening, and all connections
 */
export function listenForCopies(
  { own, peer, port, key }: CopyLink,
  take: (message: unknown) => Promise<CopiesResult>,
  keysDiffer: () => void,
): Promise<() => Promise<void>> {
  const [unknown, known] = [new SocketPlaces(UNKNOWN_MAX), new SocketPlaces(KNOWN_MAX)];
  const server = createServer({
    ...SHARED_KEY_CONTEXT,
    handshakeTimeout: HANDSHAKE_MS,
    pskCallback: (_socket, identity) => (identity === IDENTITY ? key : null),
  });
  server.on("connection", (socket) => {
    if (socket.remoteAddress === peer) unknown.take(socket);
    else socket.destroy();
  });
  server.on("tlsClientError", (error, socket) => {
    // Node leaves a connection open whose handshake took too long.
    socket.destroy();
    if (isOtherKey(error)) keysDiffer();
  });
  server.on("secureConnection", (socket) => {
    unknown.release(socket.remotePort);
    known.take(socket);
    void respond(socket, take).catch(() => socket.destroy());
  });
  const close = (): Promise<void> => {
    for (const places of [unknown, known]) places.clear();
    return new Promise((resolve) => server.close(() => resolve()));
  };
  return new Promise((resolve, reject) => {
    // This listener also ignores later errors of accept(), for instance without descriptors.
    server.on("error", reject);
    server.listen(port, own, () => resolve(close));
  });
}

/** This many connections fit into the time of a handshake, if somebody opens connections in a loop. */
const UNKNOWN_MAX = 64;
/** The other host opens one at a time. */
const KNOWN_MAX = 4;

async function respond(socket: TLSSocket, take: (message: unknown) => Promise<CopiesResult>): Promise<void> {
  const message = await readLine(socket);
  socket.end(lineOf(await take(message)));
}

/** Sends copies to the other host. @throws if it does not respond, or not as it should; after the signal at once */
export async function sendCopies(
  { own, peer, port, key }: CopyLink,
  copies: Copies,
  signal?: AbortSignal,
): Promise<CopiesResult> {
  const connection = createConnection({ host: peer, port, localAddress: own });
  const stop = (): void => void connection.destroy(new Error("portico stops"));
  signal?.addEventListener("abort", stop);
  const timer = setTimeout(() => connection.destroy(new Error("no response")), CONNECT_MS);
  try {
    await once(connection, "connect").finally(() => clearTimeout(timer));
    // TLS reports the end of the connection below it, but not why.
    connection.on("error", () => undefined);
    const socket = connect({
      ...SHARED_KEY_CONTEXT,
      socket: connection,
      pskCallback: () => ({ psk: key, identity: IDENTITY }),
      // The server has no certificate: the shared key authenticates it.
      checkServerIdentity: () => undefined,
    });
    const response = readLine(socket);
    socket.write(lineOf(copies));
    const { taken, refused } = (await response) as Partial<CopiesResult>;
    return { taken: textsIn(taken), refused: textsIn(refused) };
  } finally {
    signal?.removeEventListener("abort", stop);
    connection.destroy();
  }
}

/**
 * Whether an error means different keys: the host that connected receives this TLS alert, the other one fails to decrypt.
 * Any other TLS error is of a program that is not `portico-copies.service`.
 */
export const isOtherKey = (error: NodeJS.ErrnoException): boolean =>
  isOtherProgram(error) && OTHER_KEY.test(error.message);

/** OpenSSL's words, on both hosts. */
const OTHER_KEY = /bad record mac/;

/** Whether something listens there that does not speak TLS with a shared key. */
export const isOtherProgram = ({ code = "" }: NodeJS.ErrnoException): boolean =>
  code === "EPROTO" || code.startsWith("ERR_SSL_");

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

const textsIn = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.flatMap((one) => (typeof one === "string" ? [one.slice(0, 500)] : [])).slice(0, 500)
    : [];

/** Reads JSON on one line and refuses data after it. The newline shows that the message is complete. */
function readLine(socket: TLSSocket): Promise<unknown> {
  // A single buffer, no list of chunks: a peer may send each byte in a separate record, and each chunk has overhead.
  const line = Buffer.allocUnsafe(LINE_MAX);
  let length = 0;
  let isWhole = false;
  return new Promise((resolve, reject) => {
    const fail = (why: string): void => void socket.destroy(new Error(why));
    const timer = setTimeout(
      () => fail(`no complete message arrived within ${EXCHANGE_MS / SECOND_MS} s`),
      EXCHANGE_MS,
    );
    socket.on("data", (chunk: Buffer) => {
      if (isWhole) return fail("more than one line arrived");
      if (length + chunk.length > LINE_MAX) return fail("the message is too long");
      length += chunk.copy(line, length);
      if (chunk.at(-1) !== NEWLINE) return;
      isWhole = true;
      const message = new Untrusted(line.subarray(0, length)).opened(z.unknown(), VALUES_MAX);
      if (message === undefined) fail("the message is not JSON, or has too many values");
      else resolve(message);
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(timer);
      reject(new Error("the connection was closed before the response"));
    });
  });
}

const NEWLINE = 0x0a;
