import { createCipheriv, createHmac } from "node:crypto";
import { once } from "node:events";
import * as net from "node:net";
import { Duplex } from "node:stream";
import * as tls from "node:tls";

/**
 * A client of TLS 1.3 that sends any record after its handshake, also those that no library sends. Node's own client
 * makes the handshake and tells its secret; it reads what comes back, and must send nothing more.
 */
export class TlsRecordClient {
  private sequence = 0;
  private key: Buffer = NONE;
  private iv: Buffer = NONE;

  private constructor(
    readonly tcp: net.Socket,
    readonly socket: tls.TLSSocket,
    private secret: Buffer,
  ) {
    this.deriveKey();
  }

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
      socket: between,
      rejectUnauthorized: false,
      minVersion: "TLSv1.3",
      ciphers: "TLS_AES_128_GCM_SHA256",
      ALPNProtocols: [protocol],
    });
    for (const one of [tcp, between, socket]) one.on("error", () => undefined);
    let secrets = "";
    socket.on("keylog", (line) => (secrets += line.toString()));
    await once(socket, "secureConnect");
    // The end of the handshake is the first record that looks like data.
    while (!sent.includes("\x17\x03\x03")) await new Promise(setImmediate);
    const [, secret] = /^CLIENT_TRAFFIC_SECRET_0 \S+ (\S+)/m.exec(secrets)!;
    return new TlsRecordClient(tcp, socket, Buffer.from(secret!, "hex"));
  }

  data(text: string): Buffer {
    return this.record(DATA, Buffer.from(text, "latin1"));
  }

  /** A KeyUpdate that asks for one in return (RFC 8446, 4.6.3). */
  keyUpdate(): Buffer {
    const bytes = this.record(HANDSHAKE, Buffer.from([24, 0, 0, 1, 1]));
    this.secret = expanded(this.secret, "traffic upd", 32);
    this.deriveKey();
    return bytes;
  }

  /** RFC 8446, 5.2. */
  private record(type: number, content: Buffer): Buffer {
    const nonce = Buffer.from(this.iv);
    nonce.writeUInt32BE((nonce.readUInt32BE(8) ^ this.sequence++) >>> 0, 8);
    const plain = Buffer.concat([content, Buffer.from([type])]);
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

const NONE = Buffer.alloc(0);
const HANDSHAKE = 22;
const DATA = 23;
const TAG_BYTES = 16;

/** HKDF-Expand-Label, of no more than one hash (RFC 8446, 7.1). */
function expanded(secret: Buffer, label: string, bytes: number): Buffer {
  const name = Buffer.from(`tls13 ${label}`);
  const info = Buffer.concat([Buffer.from([0, bytes, name.length]), name, Buffer.from([0, 1])]);
  return createHmac("sha256", secret).update(info).digest().subarray(0, bytes);
}
