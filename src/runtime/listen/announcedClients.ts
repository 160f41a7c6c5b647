import type { Socket } from "node:net";
import { type ListenerConfig, withinRanges } from "../../model/serving.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { type Endpoints, endpointsOf, plainAddress } from "./clientInfo.js";
import { readFirst } from "../sockets/firstBytes.js";
import { proxyHeaderOf } from "./proxyHeader.js";

/**
 * The clients of a listener whose connections come through a proxy of TCP, which names them in a header before anything
 * else (`proxyProtocol`). Only named addresses may do so, and they must: a header is never looked for elsewhere.
 */
export class AnnouncedClients {
  private readonly isNamed: (address: string) => boolean;
  private readonly known = new WeakMap<Socket, Endpoints>();

  constructor(
    private readonly listener: ListenerConfig,
    from: readonly string[],
    private readonly context: WorkerContext,
  ) {
    this.isNamed = withinRanges(from);
  }

  /** Whether a connection from there has to begin with a header. */
  expectedFrom(remoteAddress: string): boolean {
    return this.isNamed(plainAddress(remoteAddress));
  }

  /** Whose connection it is, if it began with a header. */
  of(socket: Socket): Endpoints | undefined {
    return this.known.get(socket);
  }

  /** Reads the header. The connection is closed without a valid one, else `done` gets the bytes that followed it. */
  read(socket: Socket, done: (client: Endpoints, rest: Buffer) => void): void {
    const { requestHeadMs, tlsHandshakeMs } = this.context.config.timeouts;
    const timeoutMs = this.listener.protocol === "https" ? tlsHandshakeMs : requestHeadMs;
    readFirst(socket, {
      parse: proxyHeaderOf,
      timeoutMs,
      found: (header, bytes) => {
        if ("malformed" in header) return this.refuse(socket, `it ${header.malformed}`);
        const client = header.endpoints ?? { ...endpointsOf(socket), unnamed: true };
        this.known.set(socket, client);
        done(client, bytes.subarray(header.length));
      },
      failed: (why, bytes) => {
        if (why === "late") this.refuse(socket, `it did not come within ${timeoutMs} ms`);
        // Balancers check that a port is open by a connection without a byte.
        else if (bytes.length > 0) this.refuse(socket, "the connection ended before the header was complete");
      },
    });
  }

  private refuse(socket: Socket, why: string): void {
    const from = `client: ${plainAddress(socket.remoteAddress ?? "unknown")}, listener: ${this.listener.name}`;
    this.context.mainError.write("warn", `no valid PROXY protocol header: ${why}, ${from}`);
    socket.destroy();
  }
}
