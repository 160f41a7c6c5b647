import {
  type KnownServer,
  serverConfig,
  type ServerConfig,
  upstreamAddress,
  type UpstreamConfig,
  upstreamScheme,
  urlAuthority,
} from "../../../model/serving.js";
import type { LoadedConfig } from "../../load/loadConfig.js";
import { HeadError } from "../../codec/http1/fields.js";
import { responseHeadReader } from "../../codec/http1/lineFeedReader.js";
import { parseResponseHead } from "../../codec/http1/responseHead.js";
import { proxyHeaderFor } from "../../listen/proxyHeader.js";
import { whenLate } from "../../sockets/deadlines.js";
import { ReceiveBuffer } from "../../sockets/receiveBuffer.js";
import type { UpstreamTlsContents } from "../../tls/tlsContents.js";
import { tlsFailure } from "../../upstream/failures.js";
import { openLink, TlsToUpstream } from "../../upstream/upstreamTls.js";

/** The result of a check, and of those before. */
export interface ServerCheckState {
  /** Whether the server got a request, and its response is as expected. */
  readonly passing: boolean;
  /** Whether enough checks in a row failed. */
  readonly down: boolean;
  /** The reason, for people. */
  readonly why: string;
}

/** Receives the results of checks. */
export interface CheckedServers {
  isDown(name: string, url: string): boolean;
  checked(name: string, url: string, checked: ServerCheckState): void;
}

/** The checks of the servers of one config, until they are stopped. */
export class ServerChecks {
  /** Ends the checks of each server, by upstream and URL. */
  private readonly running = new Map<string, Map<string, AbortController>>();

  constructor(
    private readonly loaded: Pick<LoadedConfig, "upstreamTls">,
    private readonly servers: CheckedServers,
  ) {}

  /** Replaces the servers of an upstream; checks of servers that stay continue. */
  use(upstream: UpstreamConfig, servers: readonly KnownServer[]): void {
    const { name, health } = upstream;
    if (health === undefined) return;
    const before = this.running.get(name) ?? new Map<string, AbortController>();
    const now = new Map<string, AbortController>();
    this.running.set(name, now);
    for (const server of servers) {
      const { url } = server;
      now.set(url, before.get(url) ?? new AbortController());
      if (before.delete(url)) continue;
      const config = serverConfig(upstream, server);
      const check = new ServerCheck(config, health, this.loaded.upstreamTls?.[name]);
      this.begin(name, url, check, health);
    }
    for (const gone of before.values()) gone.abort();
  }

  stop(): void {
    for (const all of this.running.values()) for (const one of all.values()) one.abort();
  }

  /** All begin at different times, and stay apart by their jitter. */
  private begin(name: string, url: string, check: ServerCheck, health: HealthConfig): void {
    const { signal } = this.running.get(name)!.get(url)!;
    const { intervalMs, fall, rise, tcp } = health;
    /** Checks in a row that contradict the state. */
    let others = 0;
    const look = async (): Promise<void> => {
      const began = performance.now();
      const why = await check.run(Math.min(intervalMs, CHECK_MS), signal);
      if (signal.aborted) return;
      const wasDown = this.servers.isDown(name, url);
      others = (why !== undefined) === wasDown ? 0 : others + 1;
      const turns = others >= (wasDown ? rise : fall);
      if (turns) others = 0;
      // A TCP check says nothing about the responses of the server.
      const passing = why === undefined && !tcp;
      this.servers.checked(name, url, { passing, down: wasDown !== turns, why: why ?? "it responded" });
      later(intervalMs * (1 + (Math.random() - 0.5) * JITTER) - (performance.now() - began));
    };
    let timer: NodeJS.Timeout;
    const later = (ms: number): void => void (timer = setTimeout(() => void look(), Math.max(ms, 0)));
    signal.addEventListener("abort", () => clearTimeout(timer));
    later(Math.random() * Math.min(intervalMs, SPREAD_MS));
  }
}

const CHECK_MS = 10_000;
/** A tenth, up or down. */
const JITTER = 0.2;
const SPREAD_MS = 1_000;

type HealthConfig = NonNullable<ServerConfig["health"]>;

/** Asks one server whether it is up, with the TLS that its requests have. */
export class ServerCheck {
  private readonly to: ReturnType<typeof upstreamAddress>;
  private readonly tls: TlsToUpstream | undefined;
  private readonly request: string;
  private readonly header: Buffer | undefined;

  constructor(
    private readonly config: ServerConfig,
    private readonly health: HealthConfig,
    tlsContents: UpstreamTlsContents | undefined,
  ) {
    const { url } = config;
    const address = upstreamAddress(url);
    const inNet = "host" in address;
    this.to = inNet && health.port !== undefined ? { ...address, port: health.port } : address;
    const secure = inNet && upstreamScheme(url) === "https";
    this.tls = secure ? new TlsToUpstream(address.host, config.tls, tlsContents) : undefined;
    const named = upstreamAddress(config.namedBy ?? url);
    // The `Host` that a client of this port would send (RFC 9110, 7.2).
    const host =
      "host" in named
        ? urlAuthority(secure ? "https" : "http", named.host, health.port ?? named.port)
        : "localhost";
    // A separate port is for checks only and gets no PROXY header, as in haproxy.
    const { proxyProtocol } = health.port === undefined ? config : {};
    this.header = proxyProtocol && proxyHeaderFor(proxyProtocol, undefined);
    const fields = `Host: ${host}\r\nUser-Agent: portico\r\nAccept: */*\r\nConnection: close`;
    this.request = `GET ${health.path} HTTP/1.1\r\n${fields}\r\n\r\n`;
  }

  /**
   * @param signal ends it
   * @returns why it is not up; undefined if it is
   */
  run(timeoutMs: number, signal: AbortSignal): Promise<string | undefined> {
    const { config, health, tls } = this;
    return new Promise((resolve) => {
      const buffer = new ReceiveBuffer(tls !== undefined);
      const reader = responseHeadReader(config);
      let informational = 0;
      const arrived = (chunk: Buffer): void => {
        if (health.tcp) return;
        try {
          for (let at = 0; at < chunk.length && reader.read(chunk, at); at = reader.next) {
            const { status } = parseResponseHead(reader, "GET", FIELDS_MAX, false);
            if (status >= 200 || status === 101 || ++informational > INFORMATIONAL_MAX)
              return done(health.expect.includes(status) ? undefined : `status ${status}`);
          }
        } catch (error) {
          if (!(error instanceof HeadError)) throw error;
          done(`an invalid response: ${error.message}`);
        }
      };
      const { socket, tcp } = openLink(this.to, tls, buffer, { arrived }, this.header);
      const done = (why?: string): void => {
        stop();
        signal.removeEventListener("abort", aborted);
        socket.destroy();
        tcp.destroy();
        resolve(why);
      };
      const aborted = (): void => done("it was ended");
      const stop = whenLate(timeoutMs, () => done(`no response within ${timeoutMs} ms`));
      signal.addEventListener("abort", aborted);
      const errored = (error: NodeJS.ErrnoException): void =>
        done((tls && tlsFailure(error, tls.name, opening)) ?? error.code ?? "the connection failed");
      socket.on("error", errored);
      if (tls) tcp.on("error", errored);
      socket.on("close", () => done("it closed the connection without a response"));
      socket.on("end", () => done("it closed the connection without a response"));
      let opening = true;
      socket.once(tls ? "secureConnect" : "connect", () => {
        opening = false;
        if (health.tcp) return done();
        if (tls) socket.uncork();
        socket.write(this.request);
      });
    });
  }
}

const FIELDS_MAX = 500;
/** No real server sends more before its final response. */
const INFORMATIONAL_MAX = 10;
