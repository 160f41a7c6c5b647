import { once } from "node:events";
import { connect, createServer, type Server, type Socket } from "node:net";
import {
  connect as connectTls,
  createServer as createTlsServer,
  type SecureContextOptions,
  type TLSSocket,
} from "node:tls";
import { ReceiveBuffer } from "../receiveBuffer.js";
import { unsentBytes } from "./peer.js";
import { doWithout, type Piece, unused, uses } from "./pieces.js";
import { onRead, readDirectly, readInto } from "./reads.js";
import { shakeHands, tcpSocketOf } from "./tcpBelowTls.js";
import { TextWriter } from "./textWriter.js";

/** Versions that the tests run on (`npm run node-versions`): how these work is known. */
export const KNOWN_VERSIONS: readonly string[] = ["v20.20.2", "v22.23.3", "v24.21.0", "v26.10.0"];

/**
 * Pieces that are not used. In an unknown version of Node each is tried first, once per process, on connections to
 * itself, while workers load. Pieces that cannot be tried are used if they exist.
 */
export function missingPieces(): Promise<readonly Piece[]> {
  if (!KNOWN_VERSIONS.includes(process.version)) tried ??= tryAll();
  return Promise.resolve(tried).then(unused);
}

let tried: Promise<void> | undefined;

/** Does without the pieces that do not work as expected. */
function tryAll(): Promise<void> {
  return onConnection(tryReads)
    .then(() => onConnection(tryWrites))
    .then(() => onConnection(tryTls))
    .catch(() => undefined);
}

async function tryReads({ near, far, arrived }: Connection): Promise<void> {
  await attempt("directReads", async () => {
    const direct = new Arrived(arrived.buffer);
    const reads = readDirectly(near, direct.buffer, direct);
    far.write(TEXT, "latin1");
    return reads && direct.whole();
  });
  await attempt("readBuffers", async () => {
    const into = new Arrived();
    const reads = readInto(far, into.buffer, into);
    near.write(TEXT, "latin1");
    return reads && into.whole();
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
    // Memory that is never touched costs nothing; most of it waits, because nothing is read in this turn.
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
  // Some builds and policies of OpenSSL forbid such keys: then nothing can be learned.
  if (!handshake) return;
  const [socket] = handshake;
  socket.on("error", ignore);
  await attempt("tcpBelowTls", () => tcpSocketOf(socket) === far);
  await attempt("readBuffers", async () => {
    const read = new Arrived(new ReceiveBuffer(true));
    const into = readInto(socket, read.buffer, read);
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
  /** Reads into `arrived` by Node's public option. */
  readonly near: Socket;
  readonly arrived: Arrived;
  /** The side that was accepted; nothing is read from it. */
  readonly far: Socket;
}

async function onConnection(trial: (connection: Connection) => Promise<void>): Promise<void> {
  // Unix sockets are built on the same layer, and need neither an address nor a resolver, which `listen` would use to
  // find one.
  const path = `\0portico ${process.pid} ${++connections}`;
  const server = createServer({ allowHalfOpen: true }).listen(path);
  try {
    await once(server, "listening");
    const arrived = new Arrived();
    const onread = onRead(arrived.buffer, arrived);
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

/** The bytes that were read, and whether they were in the buffer that all sockets share. */
class Arrived {
  private text = "";
  private shared = true;

  constructor(readonly buffer = new ReceiveBuffer()) {
    // Clears bytes of an earlier trial, which would look like bytes that were read.
    buffer.first.fill(0);
  }

  arrived(chunk: Buffer): void {
    this.text += chunk.toString("latin1");
    this.shared &&= chunk.buffer === this.buffer.first.buffer;
  }

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

/** The kernel takes microseconds; a busy machine may take longer, which must not look like a difference in Node. */
const PATIENCE_MS = 2_000;
const TEXT = "caf\xe9\0\xff";
/** More than the kernel takes for a Unix socket (net.core.wmem_default). */
const LARGE_BYTES = 4_194_304;
/** A pre-shared key: no certificate has to be made, and none of the system's are read. */
const TLS: SecureContextOptions = { ciphers: "PSK-AES128-GCM-SHA256", maxVersion: "TLSv1.2", ca: [] };
const KEY = Buffer.alloc(16, 1);
