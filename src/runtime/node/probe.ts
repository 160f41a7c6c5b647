import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import {
  connect as connectTls,
  createServer as createTlsServer,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import { ReceiveBuffer } from "../exchange/receiveBuffer.js";
import { unsentBytes } from "./peer.js";
import { doWithout, type Piece, unused, uses } from "./pieces.js";
import { adopt, onRead, readDirectly, readInto } from "./reads.js";
import { shakeHands, tcpSocketOf } from "./tcpBelowTls.js";
import { TextWriter } from "./textWriter.js";

/** Versions that the tests run on (`npm run node-versions`): what these do is known. */
export const KNOWN_VERSIONS: readonly string[] = ["v20.20.2", "v22.23.3", "v24.21.0", "v26.10.0"];

/**
 * Pieces that are not used. In a Node that is not known each is tried first, once a process, on connections to itself.
 * Workers load meanwhile. Where nothing can be tried, what is there is used.
 */
export function missingPieces(): Promise<readonly Piece[]> {
  if (!KNOWN_VERSIONS.includes(process.version)) tried ??= tryAll();
  return Promise.resolve(tried).then(unused);
}

let tried: Promise<void> | undefined;

/** Does without the pieces that do not do what they should. */
function tryAll(): Promise<void> {
  return onConnection(tryReads)
    .then(() => onConnection(tryWrites))
    .then(() => onConnection(tryTls))
    .catch(() => undefined);
}

async function tryReads({ near, far, arrived, server }: Connection): Promise<void> {
  await attempt("directReads", async () => {
    const direct = new Arrived(arrived.buffer);
    readDirectly(near, direct.buffer, direct.take);
    far.write(TEXT, "latin1");
    return direct.whole();
  });
  await attempt("movedSockets", async () => {
    const moved = new Arrived();
    const socket = adopt(far, moved.buffer, moved.take)!.on("error", ignore);
    near.write(TEXT, "latin1");
    const whole = await moved.whole();
    socket.destroy();
    // A server waits for connections that it believes to have.
    const closed = once(server.close(), "close").then(() => true);
    return whole && Promise.race([closed, patience()]);
  });
}

async function tryWrites({ far, arrived }: Connection): Promise<void> {
  await attempt("directWrites", async () => {
    const writer = new TextWriter(far, ignore);
    writer.direct();
    writer.write(TEXT);
    const direct = far.bytesWritten === TEXT.length && !writer.pending;
    return direct && arrived.whole();
  });
  await attempt("unsentBytes", () => {
    // Untouched memory is none; most of it waits, since nobody reads in this turn.
    far.write(Buffer.allocUnsafeSlow(LARGE_BYTES));
    return unsentBytes(far as TLSSocket) > 0;
  });
}

async function tryTls({ near, far }: Connection): Promise<void> {
  const server = createTlsServer({ ...TLS, pskCallback: () => KEY });
  const client = connectTls({
    ...TLS,
    socket: near,
    checkServerIdentity: () => undefined,
    pskCallback: () => ({ psk: KEY, identity: "portico" }),
  });
  client.on("error", ignore);
  const ended = once(client, "close").then(() => undefined);
  server.on("secureConnection", tcpSocketOf);
  const secured = once(server, "secureConnection") as Promise<[TLSSocket]>;
  shakeHands(server, far);
  const handshake = await Promise.race([secured, ended, patience()]);
  // Some builds and policies of OpenSSL forbid such keys: then nothing is known.
  if (!handshake) return;
  const [socket] = handshake;
  socket.on("error", ignore);
  await attempt("tcpBelowTls", () => tcpSocketOf(socket) === far);
  await attempt("tlsReadBuffers", async () => {
    const read = new Arrived(new ReceiveBuffer(true));
    const into = readInto(socket, read.buffer, read.take);
    socket.on("data", ignore);
    client.write(TEXT, "latin1");
    return into && read.whole();
  });
  socket.destroy();
}

/** Does without a piece unless the trial shows that it works. */
async function attempt(piece: Piece, works: () => boolean | Promise<boolean>): Promise<void> {
  if (!uses[piece]) return;
  const shown = await Promise.resolve()
    .then(works)
    .catch(() => false);
  if (!shown) doWithout([piece]);
}

interface Connection {
  readonly server: Server;
  /** Reads into `arrived` as Node does where it is asked to by its public option. */
  readonly near: Socket;
  readonly arrived: Arrived;
  /** The side that was accepted; nothing is read from it. */
  readonly far: Socket;
}

async function onConnection(trial: (connection: Connection) => Promise<void>): Promise<void> {
  // Unix sockets are built on the same layer, and need neither an address nor, as `listen` would to find it, a
  // resolver.
  const path = `\0portico ${process.pid} ${++connections}`;
  const server = createServer({ allowHalfOpen: true }).listen(path);
  try {
    await once(server, "listening");
    const arrived = new Arrived();
    const onread = onRead(arrived.buffer, arrived.take);
    const near = connect({ path, onread });
    near.on("error", ignore);
    const [[far]] = (await Promise.all([once(server, "connection"), once(near, "connect")])) as [
      [Socket],
      unknown,
    ];
    far.on("error", ignore);
    await trial({ server, near, arrived, far }).finally(() => {
      near.destroy();
      far.destroy();
    });
  } finally {
    server.close();
  }
}

let connections = 0;

/** What was read, and whether it was in the buffer that all sockets share. */
class Arrived {
  private text = "";
  private shared = true;

  constructor(readonly buffer = new ReceiveBuffer()) {}

  readonly take = (chunk: Buffer): void => {
    this.text += chunk.toString("latin1");
    this.shared &&= chunk.buffer === this.buffer.first.buffer;
  };

  async whole(): Promise<boolean> {
    return (await until(() => this.text.length >= TEXT.length)) && this.text === TEXT && this.shared;
  }
}

async function until(holds: () => boolean): Promise<boolean> {
  const end = performance.now() + PATIENCE_MS;
  while (!holds()) {
    if (performance.now() > end) return false;
    await new Promise(setImmediate);
  }
  return true;
}

function patience(): Promise<false> {
  return new Promise((resolve) => setTimeout(() => resolve(false), PATIENCE_MS).unref());
}

const ignore = (): void => undefined;

/** The kernel takes microseconds; a busy machine may take longer, and is not to be taken for another Node. */
const PATIENCE_MS = 2_000;
const TEXT = "caf\xe9\0\xff";
/** More than the kernel takes for a Unix socket (net.core.wmem_default). */
const LARGE_BYTES = 4_194_304;
/** By a key that both know: there is no certificate to be made, and none of the system's to be read. */
const TLS: SecureContextOptions = { ciphers: "PSK-AES128-GCM-SHA256", maxVersion: "TLSv1.2", ca: [] };
const KEY = Buffer.alloc(16, 1);
