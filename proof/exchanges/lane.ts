import { Agent, request } from "node:http";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Case } from "./case.js";
import type { Client, Ports } from "./client.js";
import { Http1Client } from "./http1Client.js";
import { Http2Client } from "./http2Client.js";
import { http2Turns } from "./http2Input.js";
import { http1Turns } from "./input.js";
import { judge } from "./judge.js";
import { Upstream } from "./upstream.js";

/**
 * A route with an upstream of its own, where cases are played one after the other. Each begins without connections to the
 * upstream: what a case does depends on none before it.
 */
export class Lane {
  /** To ask the proxy for something small: it has read by then what was sent to it before. */
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 1 });

  private constructor(
    private readonly upstream: Upstream,
    private readonly ports: () => Ports,
    readonly number: number,
  ) {}

  static async start(number: number, ports: () => Ports): Promise<Lane> {
    return new Lane(await Upstream.start(number), ports, number);
  }

  get upstreamPort(): number {
    return this.upstream.port;
  }

  /**
   * @param patienceMs how long a client may take, and connections to the upstream to come to rest once all are gone
   * @returns what it broke; empty if nothing
   */
  async play(played: Case, patienceMs: number): Promise<string[]> {
    const { upstream } = this;
    upstream.expect(played);
    const clients: Client[] = [];
    const start = async (c: number): Promise<void> => {
      const client = this.client(played, c);
      clients[c] = client;
      await client.play(patienceMs);
    };
    const notAtRest: string[] = [];
    const rest = async (): Promise<void> => {
      const busy = await this.rest(played, patienceMs);
      if (busy !== undefined) notAtRest.push(`the upstream's connections do not come to rest: ${busy}`);
    };
    if (played.together) await Promise.all(played.clients.map((_, c) => start(c)));
    for (let c = 0; c < played.clients.length && !played.together; c++) {
      await start(c);
      if (c < played.clients.length - 1) await rest();
    }
    await rest();
    await Promise.race([upstream.endAll(), sleep(patienceMs)]);
    const found = [...upstream.violations, ...notAtRest, ...judge(played, clients, upstream.seen)];
    upstream.abandon();
    return found;
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await this.upstream.stop();
  }

  private client(played: Case, c: number): Client {
    const script = played.clients[c]!;
    const ports = this.ports();
    if (script.protocol === "h2")
      return new Http2Client(script, http2Turns(played.index, c, script, this.number), ports);
    return new Http1Client(script, http1Turns(played.index, c, script, this.number), ports);
  }

  /** Waits until nothing is under way. @returns what still is, if it does not end */
  private async rest({ clients }: Case, patienceMs: number): Promise<string | undefined> {
    if (clients.some(({ abort }) => abort !== undefined)) {
      // Twice: what a client left behind may lie in the same turn of the proxy as the first.
      for (let i = 0; i < 2; i++) await this.ask();
      for (let i = 0; i < 2; i++) await setImmediate();
    }
    const deadline = Date.now() + patienceMs;
    while (this.upstream.busy !== undefined && Date.now() < deadline) await sleep(1);
    return this.upstream.busy;
  }

  private ask(): Promise<void> {
    return new Promise((resolve) => {
      const { plainPort } = this.ports();
      const asked = request(
        { port: plainPort, host: "127.0.0.1", path: "/here", agent: this.agent },
        (answer) => {
          answer.resume();
          answer.on("close", resolve);
        },
      );
      // The proxy is gone: the case says so.
      asked.on("error", () => resolve());
      asked.end();
    });
  }
}
