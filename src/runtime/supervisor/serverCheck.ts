import { type ServerConfig, upstreamAddress, upstreamScheme, urlAuthority } from "../../model/serving.js";
import { HeadError } from "../codec/http1/fields.js";
import { HeadReader } from "../codec/http1/headReader.js";
import { parseResponseHead } from "../codec/http1/responseHead.js";
import { proxyHeaderFor } from "../listen/proxyHeader.js";
import { whenLate } from "../sockets/deadlines.js";
import { ReceiveBuffer } from "../sockets/receiveBuffer.js";
import type { UpstreamTlsContents } from "../tls/tlsContents.js";
import { tlsFailure } from "../upstream/tlsFailures.js";
import { openLink, UpstreamTls } from "../upstream/upstreamTls.js";

export type HealthConfig = NonNullable<ServerConfig["health"]>;

/** Asks one server whether it is up, with the TLS that its requests have. */
export class ServerCheck {
  private readonly to: ReturnType<typeof upstreamAddress>;
  private readonly tls: UpstreamTls | undefined;
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
    this.tls = secure ? new UpstreamTls(address.host, config.tls, tlsContents) : undefined;
    const named = upstreamAddress(config.namedBy ?? url);
    // As a client has it that asks this port (RFC 9110, 7.2).
    const host =
      "host" in named
        ? urlAuthority(secure ? "https" : "http", named.host, health.port ?? named.port)
        : "localhost";
    // A port of its own is for checks alone, as haproxy takes it.
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
      const reader = new HeadReader(config.headBytesMax, config.headBytesMax);
      let informational = 0;
      const receive = (chunk: Buffer): void => {
        if (health.tcp) return;
        try {
          for (let at = 0; at < chunk.length && reader.read(chunk, at); at = reader.next) {
            const { status } = parseResponseHead(reader, "GET", FIELDS_MAX, false);
            if (status >= 200 || status === 101 || ++informational > INFORMATIONAL_MAX)
              return done(health.expect.includes(status) ? undefined : `status ${status}`);
          }
        } catch (error) {
          if (!(error instanceof HeadError)) throw error;
          done(`a response that is none: ${error.message}`);
        }
      };
      const { socket, tcp } = openLink(this.to, tls, buffer, receive, this.header);
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
        done((tls && tlsFailure(error, tls.name)) ?? error.code ?? "the connection failed");
      socket.on("error", errored);
      if (tls) tcp.on("error", errored);
      socket.on("close", () => done("it closed the connection without a response"));
      socket.on("end", () => done("it closed the connection without a response"));
      socket.once(tls ? "secureConnect" : "connect", () => {
        if (health.tcp) return done();
        if (tls) socket.uncork();
        socket.write(this.request);
      });
    });
  }
}

const FIELDS_MAX = 500;
/** Nobody has that much to say before a word on its health. */
const INFORMATIONAL_MAX = 10;
