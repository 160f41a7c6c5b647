import { connect as connectTcp, isIP, type LookupFunction, type NetConnectOpts, type Socket } from "node:net";
import { Duplex } from "node:stream";
import { checkServerIdentity, connect, type SecureContext, type TLSSocket } from "node:tls";
import type { UpstreamTlsConfig } from "../../model/serving.js";
import { coarseNow } from "../sockets/deadlines.js";
import { keepReadableAfterWriteErrors } from "../sockets/node/peer.js";
import { onRead, readInto } from "../sockets/node/reads.js";
import { TlsOverhead } from "../sockets/node/tcpBelowTls.js";
import type { ReceiveBuffer } from "../sockets/receiveBuffer.js";
import { upstreamContext } from "../tls/tlsContexts.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";

/** The state that all TLS connections to one upstream share: trusted roots, and the session to resume. */
export class UpstreamTls {
  /** The name or address that the certificate has to be for. */
  readonly name: string;
  private readonly verify: boolean;
  private readonly secureContext: SecureContext;
  private session: Buffer | undefined = undefined;
  /** When the certificate behind the session was verified, on the coarse clock. */
  private verifiedAt = -Infinity;

  /** @param host that its URL names */
  constructor(host: string, tls?: UpstreamTlsConfig, contents: UpstreamTlsContents = {}) {
    this.name = tls?.serverName ?? host;
    this.verify = tls?.verify ?? true;
    this.secureContext = upstreamContext(contents, this.verify);
  }

  /** Begins a handshake over a connection that may still be made. */
  begin(carrier: Duplex): TLSSocket {
    const { name } = this;
    // A resumed session skips the certificate, which may have expired since.
    const resumes = coarseNow() - this.verifiedAt < SESSION_MS;
    const socket = connect({
      socket: carrier,
      secureContext: this.secureContext,
      rejectUnauthorized: this.verify,
      checkServerIdentity: (_, certificate) => checkServerIdentity(name, certificate),
      ALPNProtocols: ["http/1.1"],
      // SNI has no addresses (RFC 6066, 3).
      ...(isIP(name) === 0 ? { servername: name } : {}),
      ...(resumes && this.session !== undefined ? { session: this.session } : {}),
    });
    let latest: Buffer | undefined = undefined;
    let secured = false;
    const keep = (): void => {
      if (secured && latest !== undefined) this.session = latest;
    };
    socket.on("session", (session: Buffer) => {
      latest = session;
      keep();
    });
    socket.once("secureConnect", () => {
      secured = true;
      if (!socket.isSessionReused()) this.verifiedAt = coarseNow();
      keep();
    });
    return socket;
  }
}

/** How long a session is resumed without a look at the certificate. */
const SESSION_MS = 3_600_000;

/** A connection to an upstream. */
export interface Link {
  /** The socket to write to and read from. */
  readonly socket: Socket;
  /** The connection below TLS; without TLS the socket itself. */
  readonly tcp: Socket;
  /** Whether the address of its name is still looked up. */
  readonly looksUp: boolean;
  /** Whether the upstream ended TLS before TCP; undefined without TLS. */
  readonly endedInOrder?: boolean;
}

/** The current step until it is established, in nginx's words. */
export const connectingTo = ({ socket, tcp }: Link): string =>
  tcp.connecting || socket === tcp ? "connecting to" : "TLS handshaking with";

/**
 * Begins a connection, with a handshake if there is TLS.
 *
 * @param first bytes to send before anything else, including TLS
 */
export function openLink(
  to: LinkOptions,
  tls: UpstreamTls | undefined,
  buffer: ReceiveBuffer,
  receive: (chunk: Buffer) => void,
  first?: Buffer,
): Link {
  const options = { ...to, noDelay: true, keepAlive: true, allowHalfOpen: true, ...IN_TURN };
  if (tls !== undefined) return new TlsConnection(tls, options, buffer, receive, first);
  const tcp = connectTcp({ ...options, onread: onRead(buffer, receive) });
  keepReadableAfterWriteErrors(tcp);
  if (first !== undefined) tcp.write(first);
  const link = { socket: tcp, tcp, looksUp: false };
  noteLookup(link, to);
  return link;
}

function noteLookup(link: { tcp: Socket; looksUp: boolean }, { lookup }: LinkOptions): void {
  if (lookup === undefined) return;
  link.looksUp = true;
  link.tcp.once("lookup", () => (link.looksUp = false));
}

/** The target, and the lookup function if it is a name. */
type LinkOptions = NetConnectOpts & { readonly lookup?: LookupFunction | undefined };

/**
 * The addresses of a name are alternatives: the next one is tried after a failure, or when one takes long (RFC 8305, 5).
 */
const IN_TURN = { autoSelectFamily: true, autoSelectFamilyAttemptTimeout: 250 };

/**
 * TLS over a TCP connection. Its bytes pass through here, and not directly between Node's handles, because Node reports
 * the end of TLS and the end of TCP alike: only their order shows whether the upstream ended its response
 * (`close_notify`; RFC 8446, 6.1), or the response was cut off.
 */
export class TlsConnection implements Link {
  readonly socket: TLSSocket;
  readonly tcp: Socket;
  endedInOrder = false;
  looksUp = false;
  /** The end of TCP is the next thing that TLS is told. */
  private tcpEnded = false;

  constructor(
    tls: UpstreamTls,
    options: LinkOptions,
    buffer: ReceiveBuffer,
    receive: (chunk: Buffer) => void,
    first?: Buffer,
  ) {
    const carrier = new Duplex({
      read: () => void tcp.resume(),
      write: (chunk: Buffer, _, done) => void tcp.write(chunk, done),
      writev: (chunks, done) => {
        tcp.cork();
        chunks.forEach(({ chunk }, i) => tcp.write(chunk, i === chunks.length - 1 ? done : undefined));
        tcp.uncork();
      },
      final: (done) => void tcp.end(done),
      destroy: (error, done) => {
        tcp.destroy();
        done(error);
      },
    });
    const received = (bytes: number): boolean => {
      const chunk = wire.subarray(0, bytes);
      // A flowing stream decrypts the bytes at once; a paused stream keeps them, so they are copied out of the shared
      // buffer.
      const flows = carrier.readableFlowing === true && carrier.readableLength === 0;
      if (!carrier.push(flows ? chunk : Buffer.from(chunk))) tcp.pause();
      else if (flows && overhead?.isFlood() === true) this.socket.destroy(new TlsFlood());
      return true;
    };
    const tcp = connectTcp({ ...options, onread: { buffer: wire, callback: received } });
    this.tcp = tcp;
    noteLookup(this, options);
    keepReadableAfterWriteErrors(tcp);
    if (first !== undefined) tcp.write(first);
    tcp.on("end", () => void carrier.push(null));
    // Before TLS learns of this end: what came before it has then passed TLS, however long that took.
    carrier.on("end", () => (this.tcpEnded = true));
    this.socket = tls.begin(carrier);
    let overhead: TlsOverhead | undefined = undefined;
    this.socket.once("secureConnect", () => (overhead = new TlsOverhead(tcp)));
    tcp.on("close", () => this.socket.destroy());
    this.noteEnd();
    const take = (chunk: Buffer): void => {
      overhead?.took(chunk.length);
      receive(chunk);
    };
    if (!readInto(this.socket, buffer, take)) this.socket.on("data", take);
    // Nothing is sent to an upstream before its certificate is verified.
    this.socket.cork();
  }

  /**
   * The order is judged where both ends enter TLS: behind it, and while its reader pauses, either may be late. Only a
   * flowing stream shows its end to a reader, so the end is seen where it is pushed.
   */
  private noteEnd(): void {
    const { socket } = this;
    const push = socket.push.bind(socket);
    socket.push = (chunk, encoding) => {
      if (chunk === null) this.endedInOrder = !this.tcpEnded;
      return push(chunk, encoding);
    };
  }
}

/** An upstream could otherwise keep a worker busy with a response that never goes on. */
class TlsFlood extends Error {
  readonly code = "ERR_TLS_FLOOD";
}

/** Encrypted bytes of the current read, shared by all connections. */
const wire = Buffer.allocUnsafeSlow(65_536);
