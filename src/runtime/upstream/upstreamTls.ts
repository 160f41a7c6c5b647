import { connect as connectTcp, isIP, type LookupFunction, type NetConnectOpts, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { checkServerIdentity, connect, type SecureContext, type TLSSocket } from "node:tls";
import type { UpstreamTlsConfig } from "../../model/serving.js";
import { coarseNow } from "../sockets/deadlines.js";
import { keepReadableAfterWriteErrors } from "../sockets/node/peer.js";
import { onRead, readInto, type Receiver } from "../sockets/node/reads.js";
import type { ReceiveBuffer } from "../sockets/receiveBuffer.js";
import { TlsCarrier } from "../tls/tlsCarrier.js";
import { upstreamContext } from "../tls/tlsContexts.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";

/** The state that all TLS connections to one upstream share: trusted roots, and the session to resume. */
export class TlsToUpstream {
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
export interface UpstreamLink {
  /** The socket to write to and read from. */
  readonly socket: Socket;
  /** The connection below TLS; without TLS the socket itself. */
  readonly tcp: Socket;
  /** Whether the address of its name is still looked up. */
  readonly looksUp: boolean;
  /** Whether the upstream ended TLS before TCP; undefined without TLS. */
  readonly endedInOrder?: boolean;
  /** Why it ended, if TLS shows only the end. */
  readonly failure?: Error | undefined;
}

/** The current step until it is established, in nginx's words. */
export const connectingTo = ({ socket, tcp }: UpstreamLink): string =>
  tcp.connecting || socket === tcp ? "connecting to" : "TLS handshaking with";

/**
 * Begins a connection, with a handshake if there is TLS.
 *
 * @param first bytes to send before anything else, including TLS
 */
export function openLink(
  to: LinkOptions,
  tls: TlsToUpstream | undefined,
  buffer: ReceiveBuffer,
  receiver: Receiver,
  first?: Buffer,
): UpstreamLink {
  const options = { ...to, noDelay: true, keepAlive: true, allowHalfOpen: true, ...IN_TURN };
  if (tls !== undefined) return new TlsConnection(tls, options, buffer, receiver, first);
  const tcp = connectTcp({ ...options, onread: onRead(buffer, receiver) });
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

/** TLS over a TCP connection. */
export class TlsConnection implements UpstreamLink {
  readonly socket: TLSSocket;
  readonly tcp: Socket;
  looksUp = false;
  private readonly carrier: TlsCarrier;

  constructor(
    tls: TlsToUpstream,
    options: LinkOptions,
    buffer: ReceiveBuffer,
    receiver: Receiver,
    first?: Buffer,
  ) {
    const carrier = new TlsCarrier(options, false);
    this.carrier = carrier;
    this.tcp = carrier.tcp;
    noteLookup(this, options);
    if (first !== undefined) this.tcp.write(first);
    this.socket = tls.begin(carrier);
    carrier.begin(this.socket);
    const arrived = (chunk: Buffer): void => {
      carrier.took(chunk);
      receiver.arrived(chunk);
    };
    if (!readInto(this.socket, buffer, { arrived }))
      this.socket.on("data", (chunk: Buffer) => receiver.arrived(chunk));
    // Nothing is sent to an upstream before its certificate is verified.
    this.socket.cork();
  }

  get endedInOrder(): boolean {
    return this.carrier.endedInOrder;
  }

  get failure(): Error | undefined {
    return this.carrier.failure;
  }
}
