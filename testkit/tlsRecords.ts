import { createCipheriv, createHmac, randomBytes } from "node:crypto";
import { once } from "node:events";
import * as net from "node:net";
import { Duplex } from "node:stream";
import * as tls from "node:tls";

/** Records of TLS 1.3 in one direction, also those that no library sends. */
export class TlsRecords {
  private key: Buffer = NONE;
  private iv: Buffer = NONE;
  private sequence = 0;

  /** @param sent how many records were sent with the secret */
  constructor(
    private secret: Buffer,
    sent: number,
  ) {
    this.deriveKey();
    this.sequence = sent;
  }

  /** @param name of the secret @param secrets as Node tells them (`keylog`) */
  static of(name: string, secrets: string, sent = 0): TlsRecords {
    const [, secret] = new RegExp(`^${name} \\S+ (\\S+)`, "m").exec(secrets)!;
    return new TlsRecords(Buffer.from(secret!, "hex"), sent);
  }

  data(text: string): Buffer {
    return this.record(DATA, Buffer.from(text, "latin1"));
  }

  /**
   * A KeyUpdate that asks for one in return (RFC 8446, 4.6.3).
   *
   * @param padding bytes of it (5.4): each KeyUpdate costs who sends it more than who receives it
   */
  keyUpdate(padding = 0): Buffer {
    const bytes = this.record(HANDSHAKE, Buffer.from([24, 0, 0, 1, 1]), padding);
    this.secret = expanded(this.secret, "traffic upd", 32);
    this.deriveKey();
    return bytes;
  }

  keyUpdates(count: number, padding = 0): Buffer {
    return Buffer.concat(Array.from({ length: count }, () => this.keyUpdate(padding)));
  }

  /** A session ticket, which nobody asked for (RFC 8446, 4.6.1): another one each time. */
  ticket(): Buffer {
    const ticket = randomBytes(32);
    const content = [Buffer.from([0, 0, 28, 32]), randomBytes(4), EMPTY_NONCE, TICKET_BYTES, ticket, NO_MORE];
    const message = Buffer.concat(content);
    return this.record(HANDSHAKE, Buffer.concat([Buffer.from([4, 0, 0, message.length]), message]));
  }

  tickets(count: number): Buffer {
    return Buffer.concat(Array.from({ length: count }, () => this.ticket()));
  }

  /** RFC 8446, 5.2. */
  private record(type: number, content: Buffer, padding = 0): Buffer {
    const nonce = Buffer.from(this.iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.sequence++) >>> 0, 8);
    const plain = Buffer.concat([content, Buffer.from([type]), Buffer.alloc(padding)]);
    const length = plain.length + TAG_BYTES;
    const head = Buffer.from([DATA, 3, 3, length >> 8, length & 255]);
    const cipher = createCipheriv("aes-128-gcm", this.key, nonce).setAAD(head);
    return Buffer.concat([head, cipher.update(plain), cipher.final(), cipher.getAuthTag()]);
  }

  private deriveKey(): void {
    this.key = expanded(this.secret, "key", 16);
    this.iv = expanded(this.secret, "iv", 12);
    this.sequence = 0;
  }
}

const OPTIONS = { minVersion: "TLSv1.3", ciphers: "TLS_AES_128_GCM_SHA256" } as const;

/**
 * A client of TLS 1.3 that sends any record after its handshake. Node's own client makes the handshake and tells its
 * secret; it reads what comes back, and must send nothing more.
 */
export class TlsRecordClient {
  private constructor(
    readonly tcp: net.Socket,
    readonly socket: tls.TLSSocket,
    readonly records: TlsRecords,
  ) {}

  static async open(port: number, protocol: string): Promise<TlsRecordClient> {
    const tcp = net.connect(port, "127.0.0.1");
    let sent = "";
    const between = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _, done) => {
        sent += chunk.toString("latin1");
        tcp.write(chunk, () => done());
      },
    });
    tcp.on("data", (chunk) => between.push(chunk)).on("close", () => between.destroy());
    const socket = tls.connect({
      ...OPTIONS,
      socket: between,
      rejectUnauthorized: false,
      ALPNProtocols: [protocol],
    });
    for (const one of [tcp, between, socket]) one.on("error", () => undefined);
    let secrets = "";
    socket.on("keylog", (line) => (secrets += line.toString()));
    await once(socket, "secureConnect");
    // The end of the handshake is the first record that looks like data.
    while (!sent.includes("\x17\x03\x03")) await new Promise(setImmediate);
    return new TlsRecordClient(tcp, socket, TlsRecords.of("CLIENT_TRAFFIC_SECRET_0", secrets));
  }
}

/**
 * A server of TLS 1.3 that sends any record after its handshake, once it gets data; it listens nowhere yet.
 *
 * @param play sends what it likes
 */
export function tlsRecordServer(
  identity: { readonly key: string; readonly cert: string },
  play: (tcp: net.Socket, records: TlsRecords) => void,
): net.Server {
  return net.createServer((tcp) => {
    // Of its own: a server does not tell whose secrets it tells.
    const handshakes = tls.createServer({ ...OPTIONS, ...identity });
    let [secrets, received, silent] = ["", 0, false];
    // Tickets, after the client's end of the handshake.
    let sent = 0;
    const between = new Duplex({
      read: () => undefined,
      write: (chunk: Buffer, _, done) => {
        if (!silent) tcp.write(chunk);
        for (let i = 0; received > 1 && i < chunk.length; i += 5 + chunk.readUInt16BE(i + 3)) sent++;
        done();
      },
    });
    tcp
      .on("data", (chunk) => (received++, between.push(chunk)))
      .on("close", () => between.destroy())
      .on("error", () => undefined);
    handshakes.on("keylog", (line: Buffer) => void (secrets += line.toString()));
    handshakes.once("secureConnection", (socket: tls.TLSSocket) => {
      socket
        .on("error", () => undefined)
        .once("data", () => {
          silent = true;
          play(tcp, TlsRecords.of("SERVER_TRAFFIC_SECRET_0", secrets, sent));
        });
    });
    handshakes.emit("connection", between);
  });
}

/** Sends portions without end, each made when the last one has left, until the peer ends the connection. */
export function sendWithoutEnd(tcp: net.Socket, portion: () => Buffer): void {
  const next = (): void => {
    if (!tcp.destroyed) tcp.write(portion(), () => setImmediate(next));
  };
  next();
}

const NONE = Buffer.alloc(0);
const EMPTY_NONCE = Buffer.from([0]);
const TICKET_BYTES = Buffer.from([0, 32]);
/** No extensions. */
const NO_MORE = Buffer.from([0, 0]);
const HANDSHAKE = 22;
const DATA = 23;
const TAG_BYTES = 16;

/** HKDF-Expand-Label, of no more than one hash (RFC 8446, 7.1). */
function expanded(secret: Buffer, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, bytes, name.length]), name, Buffer.from([0, 1])]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, bytes);
}
