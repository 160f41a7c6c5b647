import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import type { AddressInfo } from "node:net";

/** A provider of OpenID Connect, as far as a portal needs one (OpenID Connect Core 1.0), with a form for one user. */
export class Provider {
  private readonly server = createServer((request, response) => void this.respond(request, response));
  private readonly keys = generateKeyPairSync("rsa", { modulusLength: 2_048 });
  /** Nonces, by the codes that were given out for them. */
  private readonly codes = new Map<string, string>();
  /** How often a portal has renewed a session. */
  renewals = 0;

  static async start(): Promise<Provider> {
    const provider = new Provider();
    provider.server.listen(0, "127.0.0.1");
    await once(provider.server, "listening");
    return provider;
  }

  get issuer(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { issuer } = this;
    const url = new URL(request.url!, issuer);
    const sent = new URLSearchParams(await text(request));
    const json = (value: object): void =>
      void response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return json({
          issuer,
          authorization_endpoint: `${issuer}/authorize`,
          token_endpoint: `${issuer}/token`,
          jwks_uri: `${issuer}/keys`,
          id_token_signing_alg_values_supported: ["RS256"],
        });
      case "/keys":
        return json({
          keys: [{ ...this.keys.publicKey.export({ format: "jwk" }), kid: "1", alg: "RS256", use: "sig" }],
        });
      case "/token":
        if (sent.get("grant_type") === "refresh_token") this.renewals += 1;
        return json(this.tokens(this.codes.get(sent.get("code") ?? "")));
      default:
        return this.authorize(url, sent, response);
    }
  }

  private authorize(url: URL, sent: URLSearchParams, response: ServerResponse): void {
    if (sent.get("password") !== PASSWORD)
      return void response
        .writeHead(200, { "Content-Type": "text/html" })
        .end(`<form method="post"><input name="password" id="password"><button id="go">Go</button></form>`);
    const code = randomUUID();
    this.codes.set(code, url.searchParams.get("nonce") ?? "");
    const back = new URL(url.searchParams.get("redirect_uri")!);
    back.searchParams.set("code", code);
    back.searchParams.set("state", url.searchParams.get("state")!);
    response.writeHead(303, { Location: back.href }).end();
  }

  private tokens(nonce?: string): object {
    const encoded = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
    const now = Math.floor(Date.now() / 1_000);
    const times = { iat: now, exp: now + 3_600 };
    const claims = {
      iss: this.issuer,
      aud: "portal",
      sub: USER,
      ...times,
      email: EMAIL,
      email_verified: true,
    };
    const head = `${encoded({ alg: "RS256", kid: "1" })}.${encoded({ ...claims, nonce })}`;
    const signature = sign("sha256", Buffer.from(head), this.keys.privateKey).toString("base64url");
    return {
      ...{ access_token: randomUUID(), refresh_token: randomUUID(), token_type: "Bearer", expires_in: 3_600 },
      id_token: `${head}.${signature}`,
    };
  }
}

export const USER = "ada";
export const EMAIL = "ada@example.org";
export const PASSWORD = "password of the provider";
