import { once } from "node:events";
import { createConnection } from "node:net";
import { connect, createServer, type Server, type TLSSocket } from "node:tls";
import * as z from "zod";
import { Untrusted } from "../../model/untrusted.js";
import { SHARED_KEY_CONTEXT } from "../tls/tlsContexts.js";
import type { Copies, Outcome } from "./copies.js";
import { SECOND_MS } from "./clock.js";

/** Which host, which other one, and the key that both have. */
export interface Link {
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
const EXCHANGE_MS = 30_000;
/** A line of the maximum length that contains only empty lists would need a gigabyte as values. */
const VALUES_MAX = 10_000;

/**
 * Listens for the other host.
 *
 * @param take receives each message of the other host, not validated
 * @param keysDiffer called when the other host connected with another key
 */
export function listenForCopies(
  { own, peer, port, key }: Link,
  take: (message: unknown) => Promise<Outcome>,
  keysDiffer: () => void,
): Promise<Server> {
  const server = createServer({
    ...SHARED_KEY_CONTEXT,
    handshakeTimeout: EXCHANGE_MS,
    pskCallback: (_socket, identity) => (identity === IDENTITY ? key : null),
  });
  server.maxConnections = CONNECTIONS_MAX;
  server.on("connection", (socket) => {
    if (socket.remoteAddress !== peer) socket.destroy();
  });
  server.on("tlsClientError", (error) => {
    if (isOtherKey(error)) keysDiffer();
  });
  server.on("secureConnection", (socket) => {
    void respond(socket, take).catch(() => socket.destroy());
  });
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, own, () => resolve(server));
  });
}

const CONNECTIONS_MAX = 4;

async function respond(socket: TLSSocket, take: (message: unknown) => Promise<Outcome>): Promise<void> {
  const message = await readLine(socket);
  socket.end(lineOf(await take(message)));
}

/** Sends copies to the other host. @throws if it does not respond, or not as it should */
export async function sendCopies({ own, peer, port, key }: Link, copies: Copies): Promise<Outcome> {
  const connection = createConnection({ host: peer, port, localAddress: own });
  const timer = setTimeout(() => connection.destroy(new Error("no response")), CONNECT_MS);
  await once(connection, "connect").finally(() => clearTimeout(timer));
  const socket = connect({
    ...SHARED_KEY_CONTEXT,
    socket: connection,
    pskCallback: () => ({ psk: key, identity: IDENTITY }),
    // The server has no certificate: the shared key authenticates it.
    checkServerIdentity: () => undefined,
  });
  try {
    const response = readLine(socket);
    socket.write(lineOf(copies));
    const { taken, refused } = (await response) as Partial<Outcome>;
    return { taken: textsIn(taken), refused: textsIn(refused) };
  } finally {
    socket.destroy();
  }
}

/** Whether an error means different keys: one host receives a TLS alert, the other fails to decrypt. */
export const isOtherKey = ({ code = "" }: NodeJS.ErrnoException): boolean =>
  code === "EPROTO" || code.startsWith("ERR_SSL_");

const lineOf = (value: object): string => `${JSON.stringify(value)}\n`;

const textsIn = (value: unknown): string[] =>
  Array.isArray(value)
    ? value.flatMap((one) => (typeof one === "string" ? [one.slice(0, 500)] : [])).slice(0, 500)
    : [];

/** Reads JSON on one line and refuses data after it. The newline shows that the message is complete. */
function readLine(socket: TLSSocket): Promise<unknown> {
  // One buffer and not a list of chunks: a peer may send each byte in a separate record, and each chunk has overhead.
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
