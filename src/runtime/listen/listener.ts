import { constants } from "node:crypto";
import { createServer, type Server, type Socket } from "node:net";
import {
  createServer as createTlsServer,
  type Server as TlsServer,
  type TlsOptions,
  type TLSSocket,
} from "node:tls";
import type { CertificateContents, TlsContents, TlsRenewal } from "../tls/tlsContents.js";
import { type ListenerConfig, type Problem, problem } from "../../model/serving.js";
import type { VirtualServerConfig } from "../../model/index.js";
import { AnnouncedClients } from "./announcedClients.js";
import { CertificateServers, type Secured } from "../tls/certificateServers.js";
import type { ClientAuthority } from "../tls/clientAuthority.js";
import type { CertificateRequest, ClientCertificates } from "../tls/clientCertificates.js";
import { type Endpoints, plainAddress } from "./clientInfo.js";
import { type ClientHello, clientHelloOf } from "../tls/clientHello.js";
import { readFirst } from "../sockets/firstBytes.js";
import type { ConnectionGate } from "./gate.js";
import type { Challenge } from "../dispatch/challenge.js";
import type { WorkerContext } from "../dispatch/workerContext.js";
import { serverHeader } from "../dispatch/errorPages.js";
import { httpDate } from "../dispatch/httpDate.js";
import { shakeHands, tcpSocketOf } from "../sockets/node/tcpBelowTls.js";
import { keyOf } from "./sockets.js";
import { systemReason } from "../files/systemReason.js";
import type { WorkerCounts } from "../counting/workerCounts.js";
import { tlsGroup } from "../tls/tlsGroup.js";
import { hostPolicy, secureContextOptions } from "../tls/tlsContexts.js";
import { challengeServers, listenerTicketKeys, sessionContext } from "../tls/listenerTls.js";
import { responseFieldsFor } from "../exchange/responseFields.js";

/** Takes over connections once it is known which protocol they speak. */
export interface Acceptor {
  accept(
    socket: Socket,
    listener: ListenerConfig,
    secured?: Secured,
    announced?: Endpoints,
    read?: Buffer,
  ): void;
}

export interface ListenerOptions {
  readonly listener: ListenerConfig;
  /** TLS material; for https listeners. */
  readonly tls: TlsContents | undefined;
  readonly ticketKeys: string;
  readonly context: WorkerContext;
  /** The certificates that clients are asked for; undefined if no virtual server asks for one. */
  readonly clientCertificates?: ClientCertificates | undefined;
  readonly gate: ConnectionGate;
  readonly http1: Acceptor;
  readonly http2: Acceptor;
}

/**
 * Accepts the connections of one listener and hands each to its protocol.
 *
 *     net.Server ── gate ──http──> http1
 *                     └──https──> tls.Server (handshake) ──ALPN──> http2 | http1
 *
 * A TLS server never listens itself, so that one gate counts and refuses connections before any handshake. With several
 * certificates there is a server for each, and the client's first message chooses it. A PROXY protocol header is read
 * before all of that.
 */
export class ListenerServer {
  private readonly server: Server;
  private tlsServers: CertificateServers | undefined;
  /** The servers for challenges by name, while authorities ask for challenges. */
  private challengeServers: ReadonlyMap<string, TlsServer> = new Map();
  private ticketKeys: string;
  /** Connections in their handshake; with our own deadline if bytes are read before the handshake. */
  private readonly handshaking = new Map<Socket, NodeJS.Timeout | undefined>();
  /** All sockets share this function; otherwise each of thousands of idle connections would keep its own. */
  private readonly forget: (this: Socket) => void;
  /** Undefined where no connection begins with a PROXY protocol header. */
  private readonly announced: AnnouncedClients | undefined;
  /** Whether a virtual server asks clients for certificates. */
  private readonly asks: boolean;
  private acceptFailedAt = -Infinity;

  constructor(private readonly options: ListenerOptions) {
    this.ticketKeys = options.ticketKeys;
    const { config } = options.context;
    const { clientCertificates } = options;
    this.asks =
      clientCertificates !== undefined &&
      config.virtualServers.some(
        (server) =>
          server.listeners.includes(options.listener.name) && clientCertificates.of(server) !== undefined,
      );
    const { handshaking } = this;
    this.forget = function (this: Socket) {
      clearTimeout(handshaking.get(this));
      handshaking.delete(this);
    };
    if (options.tls !== undefined) this.setTls(options.tls);
    // HTTP/1.1 clients may close their side after a request and still read; during a handshake that is not possible.
    const allowHalfOpen = this.tlsServers === undefined;
    const announced = announcedClients(options);
    this.announced = announced;
    const step =
      announced === undefined
        ? (socket: Socket): void => this.accepted(socket)
        : (socket: Socket): void => this.acceptedFrom(socket.remoteAddress, socket, announced);
    this.server = createServer({ noDelay: true, allowHalfOpen }, (socket) =>
      this.contain(socket, () => step(socket)),
    );
  }

  /**
   * Accepts from a bound socket; resolves with a problem if listening on it fails.
   *
   * @param socket the socket's descriptor, or Node's handle of it
   */
  listen(socket: { readonly fd: number }): Promise<Problem | undefined> {
    const { server } = this;
    const { name, address, port } = this.options.listener;
    return new Promise((resolve) => {
      const failed = (error: NodeJS.ErrnoException): void => {
        const code = error.code === "EADDRINUSE" ? "listen.address-in-use" : "listen.failed";
        resolve(problem(code, name, `cannot listen on ${keyOf(address, port)} ${systemReason(error)}`));
      };
      server.once("error", failed);
      server.listen(socket, BACKLOG, () => {
        server.off("error", failed).on("error", (error) => this.acceptFailed(error));
        resolve(undefined);
      });
    });
  }

  /** Closes the socket in this process; others may still accept. Handshakes in progress get a moment to complete. */
  stopAccepting(): void {
    if (!this.server.listening) return;
    this.server.close();
    setTimeout(() => this.closeAll(), HANDSHAKE_GRACE_MS).unref();
  }

  /** Ends every handshake. */
  closeAll(): void {
    for (const socket of this.handshaking.keys()) socket.destroy();
  }

  setTicketKeys(ticketKeys: string): void {
    this.ticketKeys = ticketKeys;
    for (const { certificate, server } of this.tlsServers?.all ?? []) {
      server.setTicketKeys(
        listenerTicketKeys(ticketKeys, sessionContext(this.options.listener, certificate)),
      );
    }
  }

  /** Uses the renewed material for later handshakes. Handshakes in progress continue with the old material. */
  renew({ certificates = [], dhparams = {} }: TlsRenewal): void {
    if (this.tlsServers === undefined) return;
    this.tlsServers.renew(certificates);
    const dhparam = dhparams[this.options.listener.name];
    if (dhparam === undefined) return;
    this.setTls({ certificates: this.tlsServers.all.map(({ certificate }) => certificate), dhparam });
  }

  private setTls({ certificates, dhparam }: TlsContents): void {
    this.tlsServers = new CertificateServers(certificates, (certificate, secured, request) =>
      this.createTlsServer(certificate, dhparam, secured, request),
    );
  }

  /** Responds to those over TLS, and no others, from now on. */
  setChallenges(challenges: readonly Challenge[]): void {
    if (this.tlsServers === undefined) return;
    this.challengeServers = challengeServers(challenges, (error, socket) =>
      this.contain(socket, () => this.handshakeFailed(error, socket)),
    );
  }

  private createTlsServer(
    certificate: CertificateContents,
    dhparam: string | undefined,
    secured: Secured,
    request: CertificateRequest | undefined,
  ): TlsServer {
    const { listener, context } = this.options;
    const sessionIdContext = sessionContext(listener, certificate);
    const server = createTlsServer({
      ...secureContextOptions(hostPolicy(listener.tls!.policy), certificate, dhparam),
      // Node's default only limits client-initiated renegotiation; it has no use here, and each costs a handshake.
      secureOptions: constants.SSL_OP_NO_RENEGOTIATION,
      ALPNProtocols: listener.http2 ? ["h2", "http/1.1"] : ["http/1.1"],
      handshakeTimeout: context.config.timeouts.tlsHandshakeMs,
      sessionIdContext,
      ticketKeys: listenerTicketKeys(this.ticketKeys, sessionIdContext),
      ...(request === undefined ? {} : askingOptions(request.authority)),
    });
    const authority = request?.authority;
    server.on("secureConnection", (socket) =>
      this.contain(socket, () => {
        if (request === undefined) return this.secured(socket, secured);
        this.secured(socket, { ...secured, presented: request.presented(socket, authority!) });
        // By then it is known how much of what was read with the handshake was no part of it.
        setImmediate(() => this.contain(socket, () => this.endIfLong(socket)));
      }),
    );
    server.on("tlsClientError", (error: TlsError, socket) =>
      this.contain(socket, () => this.handshakeFailed(error, socket)),
    );
    return server;
  }

  private accepted(socket: Socket): void {
    const { gate, http1, listener } = this.options;
    if (!gate.admit(socket)) return;
    if (this.tlsServers === undefined) return http1.accept(socket, listener);
    this.remember(socket);
    this.secure(socket, this.tlsServers);
  }

  /** Accepts a connection that may begin with a PROXY header, which names the client. */
  private acceptedFrom(address: string | undefined, socket: Socket, announced: AnnouncedClients): void {
    // The peer is already gone: whether it should have sent a header is no longer known.
    if (address === undefined) return void socket.destroy();
    if (!announced.expectedFrom(address)) return this.accepted(socket);
    const { gate, http1, listener } = this.options;
    if (!gate.admitUnidentified(socket)) return;
    this.remember(socket);
    const since = performance.now();
    announced.read(socket, (client, rest) =>
      this.contain(socket, () => {
        if (!gate.identify(socket, client.address)) return;
        if (this.tlsServers === undefined) {
          this.release(socket);
          return http1.accept(socket, listener, undefined, client, rest);
        }
        socket.unshift(rest);
        this.secure(socket, this.tlsServers, since);
      }),
    );
  }

  /** @param since when the connection began, if something of it was read already */
  private secure(socket: Socket, servers: CertificateServers, since?: number): void {
    if (servers.all.length > 1 || this.challengeServers.size > 0 || this.asks)
      return this.chooseServer(socket, since ?? performance.now());
    if (since !== undefined) this.limit(socket, since);
    shakeHands(servers.default, socket);
  }

  private remember(socket: Socket): void {
    this.handshaking.set(socket, undefined);
    socket.on("close", this.forget);
  }

  private release(socket: Socket): void {
    this.forget.call(socket);
    socket.off("close", this.forget);
  }

  /** An exception while a connection is being accepted closes only that connection. */
  private contain(socket: Socket, step: () => void): void {
    try {
      step();
    } catch (error) {
      this.options.context.faults.report(error);
      socket.destroy();
    }
  }

  /** Chooses by the ClientHello. */
  private chooseServer(socket: Socket, since: number): void {
    readFirst(socket, {
      parse: clientHelloOf,
      timeoutMs: this.handshakeTimeLeft(since),
      found: (hello, bytes) => {
        this.limit(socket, since);
        socket.unshift(bytes);
        this.contain(socket, () => shakeHands(this.tlsServerFor(hello), socket));
      },
      failed: (why) => {
        if (why === "late") this.reportLate(socket);
      },
    });
  }

  /**
   * Node limits the time of a handshake only from when a TLS server has the socket; where something was read before,
   * this is the limit of all of it.
   */
  private limit(socket: Socket, since: number): void {
    const late = (): void => {
      this.reportLate(socket);
      socket.destroy();
    };
    this.handshaking.set(socket, setTimeout(late, this.handshakeTimeLeft(since)));
  }

  private handshakeTimeLeft(since: number): number {
    return Math.max(1, since + this.options.context.config.timeouts.tlsHandshakeMs - performance.now());
  }

  private reportLate(socket: Socket): void {
    const message = `TLS handshake failed (TLS handshake timeout), ${this.about(socket)}`;
    this.options.context.mainError.write("info", message);
  }

  private tlsServerFor({ serverName, wantsChallenge }: ClientHello): TlsServer {
    const challenge = wantsChallenge ? this.challengeServers.get(serverName) : undefined;
    if (challenge !== undefined) return challenge;
    const { clientCertificates, context, listener } = this.options;
    const server = this.asks ? context.dispatcher.serverFor(listener.name, serverName) : undefined;
    return this.tlsServers!.for(serverName, server && clientCertificates!.of(server));
  }

  private secured(socket: TLSSocket, secured: Secured): void {
    const { listener, http1, http2 } = this.options;
    const raw = tcpSocketOf(socket);
    if (raw) this.release(raw);
    const announced = raw && this.announced?.of(raw);
    countHandshake(this.options.context.counts, listener.name, socket);
    if (socket.alpnProtocol === "h2") return http2.accept(socket, listener, secured, announced);
    socket.allowHalfOpen = true;
    http1.accept(socket, listener, secured, announced);
  }

  /** OpenSSL keeps a client's certificates as long as the connection, in ten times their size, and takes 100 KiB of them. */
  private endIfLong(socket: TLSSocket): void {
    const raw = tcpSocketOf(socket);
    if (socket.destroyed || raw === undefined) return;
    if (raw.bytesRead - socket.bytesRead <= HANDSHAKE_BYTES_MAX) return;
    const message = `TLS handshake failed (the client's certificates are too long), ${this.about(raw)}`;
    this.options.context.mainError.write("info", message);
    this.options.context.counts.handshakeFailed(this.options.listener.name);
    socket.destroy();
  }

  private handshakeFailed(error: TlsError, socket: TLSSocket): void {
    // A peer that just goes away is a port scan or a health check.
    if (error.code === "ECONNRESET") return;
    const { listener, context } = this.options;
    context.counts.handshakeFailed(listener.name);
    const raw = tcpSocketOf(socket);
    const late = error.code === "ERR_TLS_HANDSHAKE_TIMEOUT";
    // Both deadlines pass in one turn: ours, which began before Node's, reports it and ends the connection.
    if (late && raw && this.handshaking.get(raw)) return;
    const client = this.about(raw);
    if (error.code === "ERR_SSL_HTTP_REQUEST") {
      context.mainError.write("info", `client sent plain HTTP request to HTTPS port, ${client}`);
      raw?.on("error", () => raw.destroy());
      raw?.end(plainHttpResponse(context.dispatcher.defaultServer(listener.name)), "latin1");
      return;
    }
    context.mainError.write("info", `TLS handshake failed (${error.reason ?? error.message}), ${client}`);
    // Node reports its timeout, and leaves the connection open.
    if (late) socket.destroy();
  }

  /** Whose connection it is, for the error log. */
  private about(socket: Socket | undefined): string {
    const announced = socket && this.announced?.of(socket);
    const client = announced?.address ?? plainAddress(socket?.remoteAddress ?? "unknown");
    return `client: ${client}, listener: ${this.options.listener.name}`;
  }

  /** A cause is a lack of descriptors: libuv drops the waiting connections, so this does not become a busy loop. */
  private acceptFailed(error: Error): void {
    const now = performance.now();
    if (now - this.acceptFailedAt < COMPLAIN_MS) return;
    this.acceptFailedAt = now;
    const { address, port } = this.options.listener;
    const where = `accept() on ${keyOf(address, port)} failed`;
    this.options.context.mainError.write("crit", `${where} ${systemReason(error)}`);
  }
}

/**
 * A TLS server that asks for a certificate, and completes the handshake without one: the request gets a response that
 * says so. It issues no tickets and keeps no sessions, because a session that is resumed has no certificate that could be
 * judged by new files (RFC 8446, 2.2).
 */
function askingOptions(authority: ClientAuthority): TlsOptions {
  return {
    ...authority.options,
    requestCert: true,
    rejectUnauthorized: false,
    secureOptions: constants.SSL_OP_NO_RENEGOTIATION | constants.SSL_OP_NO_TICKET,
  };
}

function countHandshake(counts: WorkerCounts, listener: string, socket: TLSSocket): void {
  counts.secured(listener, socket.getProtocol() ?? "", tlsGroup(socket) ?? "", socket.isSessionReused());
}

function announcedClients({ listener, context }: ListenerOptions): AnnouncedClients | undefined {
  const { proxyProtocol } = listener;
  return proxyProtocol && new AnnouncedClients(listener, proxyProtocol.from, context);
}

type TlsError = Error & { readonly code?: string; readonly reason?: string };

/** The most that the kernel allows (net.core.somaxconn): while a worker is replaced, connections wait here. */
const BACKLOG = 4096;
const HANDSHAKE_GRACE_MS = 5_000;
/** A hello and a record that is not complete have up to 16 KiB each; 16 KiB are left for certificates, which have a tenth. */
const HANDSHAKE_BYTES_MAX = 49_152;
const COMPLAIN_MS = 60_000;

/**
 * nginx's complete response to HTTP without TLS on a TLS port (decisions 1.7), as the listener's default server gives it.
 * The TLS layer has consumed the request, so there is no exchange to respond to.
 */
function plainHttpResponse(server: VirtualServerConfig): string {
  const by = serverHeader(server);
  const fields = responseFieldsFor({ server, route: undefined, client: { responseRules: "http" } });
  const page = [
    "<html>",
    `<head><title>400 ${REASON}</title></head>`,
    "<body>",
    "<center><h1>400 Bad Request</h1></center>",
    `<center>${REASON}</center>`,
    `<hr><center>${by}</center>`,
    "</body>",
    "</html>",
    "",
  ].join("\r\n");
  const type = "Content-Type: text/html\r\n\r\n";
  return [
    "HTTP/1.1 400 Bad Request",
    ...(fields?.hidesServer === true ? [] : [`Server: ${by}`]),
    `Date: ${httpDate()}`,
    `Content-Length: ${page.length}`,
    "Connection: close",
    (fields === undefined ? type : fields.inLines(type)) + page,
  ].join("\r\n");
}

const REASON = "The plain HTTP request was sent to HTTPS port";
