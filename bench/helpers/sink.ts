import { readFileSync } from "node:fs";
import { createServer, Socket } from "node:net";
import { createServer as createTlsServer } from "node:tls";
import { announce } from "./announce.js";

/**
 * An upstream for uploads: reads a request, throws its body away, responds with 200. All bodies land in one buffer, so
 * that it costs less than whatever is measured in front of it. Prints its port.
 */
const RESPONSE = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n";
const buffer = Buffer.allocUnsafeSlow(1 << 20);

const [certificate, key] = process.argv.slice(2);

const plain = createServer({ pauseOnConnect: true, noDelay: true }, (accepted) => {
  // Only sockets that are constructed here can be given a buffer: the handle moves into one.
  const { _handle: handle } = accepted as unknown as { _handle: unknown };
  (accepted as unknown as { _handle: unknown })._handle = null;
  const message = new Message();
  const socket: Socket = new Socket({
    handle,
    onread: {
      buffer,
      callback: (length: number) => {
        if (message.take(buffer.subarray(0, length))) socket.write(RESPONSE);
        return true;
      },
    },
  } as ConstructorParameters<typeof Socket>[0]);
  socket.on("error", () => socket.destroy());
  socket.resume();
});
const secure = (cert: string, key: string) =>
  createTlsServer({ cert: readFileSync(cert), key: readFileSync(key), noDelay: true }, (socket) => {
    const message = new Message();
    socket.on("data", (chunk: Buffer) => message.take(chunk) && socket.write(RESPONSE));
    socket.on("error", () => socket.destroy());
  });
announce(certificate === undefined ? plain : secure(certificate, key!));

/** Tells where a request ends. Its peers are proxies, so it may be simple: no pipelining, no chunk extensions. */
class Message {
  private head = "";
  private left = -1;
  private chunked = false;
  private tail = "";

  /** True when the request is complete. */
  take(bytes: Buffer): boolean {
    if (this.left < 0 && !this.chunked) return this.takeHead(bytes);
    return this.takeBody(bytes);
  }

  private takeHead(bytes: Buffer): boolean {
    const end = bytes.indexOf("\r\n\r\n");
    this.head += bytes.toString("latin1", 0, end === -1 ? bytes.length : end + 4);
    if (end === -1) return false;
    this.chunked = /^transfer-encoding: *chunked/im.test(this.head);
    this.left = this.chunked ? -1 : Number(/^content-length: *(\d+)/im.exec(this.head)?.[1] ?? 0);
    return this.takeBody(bytes.subarray(end + 4));
  }

  private takeBody(bytes: Buffer): boolean {
    if (this.chunked) {
      this.tail = (this.tail + bytes.toString("latin1", Math.max(0, bytes.length - 5))).slice(-5);
      if (!this.tail.endsWith("0\r\n\r\n")) return false;
    } else {
      this.left -= bytes.length;
      if (this.left > 0) return false;
    }
    this.head = this.tail = "";
    this.left = -1;
    this.chunked = false;
    return true;
  }
}
