import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { DnsApiConfig } from "../../src/model/serving.js";

/** A request, as the published API of a provider documents it. */
export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly query: ReadonlyMap<string, string>;
  readonly authorization: string | undefined;
  /** JSON; undefined without a body. */
  readonly body: unknown;
}

export interface Answer {
  readonly status: number;
  /** A text is sent as it is. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Values of text records by name, and who is told of a change. */
export class Records {
  readonly values = new Map<string, readonly string[]>();

  constructor(private readonly publish: (name: string, values: readonly string[]) => Promise<void>) {}

  of(name: string): readonly string[] {
    return this.values.get(name) ?? [];
  }

  async set(name: string, values: readonly string[]): Promise<void> {
    this.values.set(name, values);
    await this.publish(name, values);
  }
}

export interface Provider {
  readonly type: DnsApiConfig["type"];
  /** Below the server's root. */
  readonly base: string;
  readonly token: string;
  answer(asked: Asked): Promise<Answer>;
}

/** Stands in for the API of a provider, over TLS. Refuses everything that the documentation does not allow. */
export class DnsApiServer {
  readonly requests: string[] = [];
  /** Responds in the provider's place, until it has no answer. */
  fault: ((asked: Asked) => Answer | "silence" | "close" | undefined) | undefined;

  private constructor(
    private readonly server: Server,
    readonly provider: Provider,
  ) {}

  static async start(
    identity: { readonly key: string; readonly certificate: string },
    provider: Provider,
  ): Promise<DnsApiServer> {
    const server = createServer({ key: identity.key, cert: identity.certificate });
    const started = new DnsApiServer(server, provider);
    server.on("request", (request, response) => {
      void started.answer(request).then((answer) => {
        if (answer === "silence") return;
        if (answer === "close") return void request.socket.destroy();
        const { status, body = "", headers } = answer;
        const type = typeof body === "string" ? "text/plain" : "application/json";
        const content = typeof body === "string" ? body : JSON.stringify(body);
        response
          .writeHead(status, { "content-type": type, ...headers })
          .end(status === 204 ? undefined : content);
      });
    });
    await once(server.listen(0, "127.0.0.1"), "listening");
    return started;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}${this.provider.base}`;
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async answer(request: IncomingMessage): Promise<Answer | "silence" | "close"> {
    const { method = "", url = "/", headers } = request;
    const { pathname, searchParams } = new URL(url, "https://api.example");
    const content = await text(request);
    this.requests.push(`${method} ${url}`);
    const { base } = this.provider;
    if (!pathname.startsWith(`${base}/`)) return { status: 404, body: "no such path" };
    if (content !== "" && headers["content-type"] !== "application/json") return { status: 415, body: {} };
    const query = new Map(searchParams);
    if (query.size !== [...searchParams.keys()].length) return { status: 400, body: "a parameter twice" };
    const asked: Asked = {
      method,
      path: pathname.slice(base.length),
      query,
      authorization: headers.authorization,
      body: content === "" ? undefined : (JSON.parse(content) as unknown),
    };
    return this.fault?.(asked) ?? this.provider.answer(asked);
  }
}

/** Whether a value is an object with these fields, and perhaps the further ones. */
export function isObject(value: unknown, needed: readonly string[], more: readonly string[] = []): boolean {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  const names = Object.keys(value);
  return (
    needed.every((name) => names.includes(name)) &&
    names.every((name) => needed.includes(name) || more.includes(name))
  );
}

export const onlyQuery = (query: Asked["query"], ...names: readonly string[]): boolean =>
  query.size === names.length && names.every((name) => query.has(name));

/** The content of a quoted text; undefined if it is none. */
export const unquoted = (value: unknown): string | undefined =>
  typeof value === "string" ? /^"([\x20-\x21\x23-\x7e]{0,255})"$/.exec(value)?.[1] : undefined;
