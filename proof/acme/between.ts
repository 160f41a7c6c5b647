import { once } from "node:events";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import type { TestCa } from "./ca.js";

/** A request on its way to the authority. */
export interface Step {
  /** From 1. */
  readonly number: number;
  readonly method: string;
  readonly path: string;
  /** What was signed, if anything. */
  readonly payload: unknown;
  /** URL of the account that signed, if there was one. */
  readonly account: string | undefined;
}

export interface Response {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** What stands between a client and the authority: sees every request, and does what a test wants with it. */
export class Between {
  readonly steps: Step[] = [];
  /** Orders that the authority made. */
  orders = 0;
  /**
   * Called before the authority sees the request; a response goes back in place of the authority's, `cut` closes
   * the connection.
   */
  before: (step: Step) => Promise<Response | "cut" | void> = () => Promise.resolve();
  /** Called after the authority responded, before the response goes back, or another one in its place. */
  after: (step: Step, response: Response) => Promise<Response | "cut" | void> = () => Promise.resolve();

  /** Connections to the authority are kept: what is new with each request is the client's own. */
  private readonly agent: Agent;

  private constructor(
    private readonly server: Server,
    private readonly ca: TestCa,
  ) {
    this.agent = new Agent({ keepAlive: true, ca: ca.certificate });
    server.on("request", (incoming, response) => {
      this.pass(incoming, response).catch(() => incoming.socket.destroy());
    });
  }

  static async start(ca: TestCa): Promise<Between> {
    const server = createServer({ key: ca.key, cert: ca.certificate });
    const between = new Between(server, ca);
    await once(server.listen(0, "127.0.0.1"), "listening");
    return between;
  }

  get directory(): string {
    return `https://127.0.0.1:${(this.server.address() as AddressInfo).port}/dir`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.agent.destroy();
    await new Promise((done) => this.server.close(done));
  }

  private async pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const { method = "", url: path = "" } = incoming;
    const sent = Buffer.concat(chunks);
    const step = { number: this.steps.length + 1, method, path, ...signedIn(sent) };
    this.steps.push(step);
    const instead = await this.before(step);
    if (instead === "cut") return void incoming.socket.destroy();
    const response = instead ?? (await this.forward(incoming, sent));
    if (response.status === 201 && path === "/order-plz") this.orders += 1;
    const changed = (await this.after(step, response)) ?? response;
    if (changed === "cut") return void incoming.socket.destroy();
    // Without its length Node closes the connection after a response to HEAD.
    const length = { "content-length": String(Buffer.byteLength(changed.body)) };
    outgoing.writeHead(changed.status, { ...length, ...changed.headers }).end(changed.body);
  }

  private forward(incoming: IncomingMessage, body: Buffer): Promise<Response> {
    const { method, url } = incoming;
    const { connection: _, ...headers } = incoming.headers;
    return new Promise((resolve, reject) => {
      const options = { host: "127.0.0.1", port: this.ca.port, path: url, method, headers };
      const sent = request({ ...options, agent: this.agent }, async (response) => {
        let text = "";
        for await (const chunk of response.setEncoding("utf8")) text += chunk;
        const kept = ["content-type", "replay-nonce", "location", "retry-after", "link", "date"];
        const passed = Object.entries(response.headers).filter(([name]) => kept.includes(name));
        const headers = Object.fromEntries(passed.map(([name, value]) => [name, [value].flat().join(", ")]));
        resolve({ status: response.statusCode!, headers, body: text });
      });
      sent.on("error", reject).end(body);
    });
  }
}

function signedIn(body: Buffer): Pick<Step, "payload" | "account"> {
  if (body.length === 0) return { payload: undefined, account: undefined };
  const { payload, protected: header } = JSON.parse(body.toString()) as Record<string, string>;
  const { kid } = decoded(header!) as { kid?: string };
  return { payload: payload === "" ? undefined : decoded(payload!), account: kid };
}

const decoded = (text: string): unknown => JSON.parse(Buffer.from(text, "base64url").toString());
