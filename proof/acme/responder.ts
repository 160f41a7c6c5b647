import { once } from "node:events";
import { createServer, type Server } from "node:http";
import * as tls from "node:tls";
import type { AcmeHost } from "../../src/runtime/acme/acmeHost.js";
import type { CertificateContents } from "../../src/runtime/tls/tlsContents.js";
import type { Challenge } from "../../src/runtime/dispatch/challenge.js";
import type { TestCa } from "./ca.js";

/** What the master and its workers do for the engine: responds to challenges, and takes what was issued. */
export class Responder implements AcmeHost {
  readonly installed = new Map<string, CertificateContents>();
  readonly lines: string[] = [];
  /** Every change of the challenges that are open. */
  readonly history: (readonly Challenge[])[] = [];
  private challenges: readonly Challenge[] = [];

  private constructor(
    private readonly http: Server,
    private readonly tls: tls.Server,
  ) {}

  static async start(ca: TestCa): Promise<Responder> {
    const http = createServer((request, response) => {
      const token = /^\/\.well-known\/acme-challenge\/([\w-]+)$/.exec(request.url!)?.[1];
      const found = responder.challenges.find((one) => one.type === "http-01" && one.token === token);
      response.writeHead(found === undefined ? 404 : 200);
      response.end(found?.type === "http-01" ? found.keyAuthorization : "nothing here");
    });
    const alpn = tls.createServer({
      ALPNProtocols: ["acme-tls/1"],
      SNICallback: (name, done) => {
        const found = responder.challenges.find((one) => one.type === "tls-alpn-01" && one.name === name);
        if (found?.type === "tls-alpn-01") done(null, tls.createSecureContext(found));
        else done(new Error(`no challenge for ${name}`));
      },
    });
    alpn
      .on("tlsClientError", () => undefined)
      .on("secureConnection", (socket) => socket.on("error", () => undefined));
    const responder = new Responder(http, alpn);
    await once(http.listen(ca.httpPort, "127.0.0.1"), "listening");
    await once(alpn.listen(ca.tlsPort, "127.0.0.1"), "listening");
    return responder;
  }

  /** Challenges that get a response now. */
  get open(): readonly Challenge[] {
    return this.challenges;
  }

  respondToChallenges(challenges: readonly Challenge[]): Promise<void> {
    this.challenges = challenges;
    this.history.push(challenges);
    return Promise.resolve();
  }

  unfit(): Promise<string | undefined> {
    return Promise.resolve(undefined);
  }

  install(issued: CertificateContents): void {
    this.installed.set(issued.id, issued);
  }

  log(level: string, message: string): void {
    this.lines.push(`${level} ${message}`);
  }

  async stop(): Promise<void> {
    this.http.closeAllConnections();
    await Promise.all([this.http, this.tls].map((server) => new Promise((done) => server.close(done))));
  }
}
