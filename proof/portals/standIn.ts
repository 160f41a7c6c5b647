import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { AddressInfo } from "node:net";
import { USER } from "./provider.js";

/** The conventions by which proxies ask: Traefik's and Caddy's fields, or those of pages about nginx's `auth_request`. */
export type Convention = "traefik" | "nginx";

/**
 * A portal with a page of its own, as Authelia has one: `/verify` responds to a proxy, `/` to browsers. It refuses what a
 * convention does not have.
 */
export class StandIn {
  private readonly server = createServer((request, response) => void this.respond(request, response));
  private readonly sessions = new Set<string>();
  /** Questions that were not as the convention has them. */
  readonly odd: string[] = [];

  private constructor(
    private readonly convention: Convention,
    private readonly domain: string,
  ) {}

  static async start(convention: Convention, domain: string): Promise<StandIn> {
    const portal = new StandIn(convention, domain);
    portal.server.listen(0, "127.0.0.1");
    await once(portal.server, "listening");
    return portal;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = new URLSearchParams(await text(request));
    const url = new URL(request.url!, this.url);
    if (url.pathname === "/verify") return this.verify(request, response);
    if (sent.get("password") !== "right")
      return void response
        .writeHead(200, { "Content-Type": "text/html" })
        .end(`<form method="post"><input name="password" id="password"><button id="go">Go</button></form>`);
    const session = randomUUID();
    this.sessions.add(session);
    response.writeHead(303, { Location: url.searchParams.get("rd")!, "Set-Cookie": this.cookie(session) });
    response.end();
  }

  private verify({ method, headers }: IncomingMessage, response: ServerResponse): void {
    const asked = this.convention === "nginx" ? originalUrl(headers) : forwardedUrl(headers);
    const hasBody = headers["content-length"] !== undefined || headers["transfer-encoding"] !== undefined;
    if (method !== "GET" || hasBody || asked === undefined || headers["x-forwarded-for"] !== "127.0.0.1") {
      this.odd.push(`${method} ${JSON.stringify(headers)}`);
      return void response.writeHead(400).end();
    }
    const session = /\bportal=([\w-]+)/.exec(headers.cookie ?? "")?.[1] ?? "";
    if (this.sessions.has(session))
      return void response.writeHead(200, { "Remote-User": USER, "Set-Cookie": this.cookie(session) }).end();
    const { host, port } = asked;
    const page = `https://auth.${this.domain}:${port}/?rd=${encodeURIComponent(asked.href)}`;
    const isBrowser = headers.accept?.includes("text/html") === true;
    if (host === "" || !isBrowser) return void response.writeHead(401).end();
    response.writeHead(302, { Location: page }).end("Sign on.");
  }

  private cookie(session: string): string {
    return `portal=${session}; Domain=${this.domain}; Path=/; Secure; HttpOnly; SameSite=Lax`;
  }
}

type Fields = IncomingMessage["headers"];

/** `X-Forwarded-Method`, `-Proto`, `-Host` and `-Uri` (Traefik, ForwardAuth; Caddy, forward_auth). */
function forwardedUrl(fields: Fields): URL | undefined {
  const [scheme, host, uri, method] = ["proto", "host", "uri", "method"].map(
    (one) => fields[`x-forwarded-${one}`],
  );
  return method === undefined || uri === undefined
    ? undefined
    : urlOf(`${String(scheme)}://${String(host)}${String(uri)}`);
}

/** `X-Original-URL` and `X-Original-Method` (Authelia's and authentik's pages for nginx). */
const originalUrl = (fields: Fields): URL | undefined =>
  fields["x-original-method"] === undefined ? undefined : urlOf(String(fields["x-original-url"]));

const urlOf = (url: string): URL | undefined => (URL.canParse(url) ? new URL(url) : undefined);
