import { Agent, request } from "node:http";
import { setImmediate, setTimeout as sleep } from "node:timers/promises";
import type { Carrier, Timeline, ExchangeScript } from "./timeline.js";
import type { Client, Ports } from "./scriptedClient.js";
import { Http1Client } from "./http1Client.js";
import { Http2Client } from "./http2Client.js";
import { http2Turns } from "./http2Input.js";
import { http1Turns } from "./http1Input.js";
import { judge } from "./judge.js";
import { type LanePlace, StrictUpstream } from "./strictUpstream.js";

/**
 * A route with an upstream of its own, where cases are played one after the other. Each begins without connections to the
 * upstream: what a case does depends on none before it.
 */
export class Lane {
  /** To ask the proxy for something small: it has read by then what was sent to it before. */
  private readonly agent = new Agent({ keepAlive: false });

  private constructor(
    private readonly upstream: StrictUpstream,
    private readonly ports: () => Ports,
    readonly number: number,
  ) {}

  static async start(number: number, place: LanePlace, ports: () => Ports): Promise<Lane> {
    return new Lane(await StrictUpstream.start(number, place), ports, number);
  }

  get urls(): Readonly<Record<Carrier, string>> {
    return this.upstream.urls;
  }

  /**
   * @param patienceMs how long a client may take, and connections to the upstream to come to rest once all are gone
   * @returns what it broke; empty if nothing
   */
  async play(played: Timeline, patienceMs: number): Promise<string[]> {
    const { upstream } = this;
    upstream.expect(played);
    const clients: Client[] = [];
    const notAtRest: string[] = [];
    for (const group of groupsOf(played)) {
      await this.playTogether(played, group, clients, patienceMs);
      const busy = await this.rest(played, patienceMs);
      if (busy !== undefined) notAtRest.push(`the upstream's connections do not come to rest: ${busy}`);
    }
    await upstream.endAll(patienceMs);
    const found = [...upstream.violations, ...notAtRest, ...judge(played, clients, upstream.seen)];
    upstream.abandon();
    return found;
  }

  /** Resolves when the first response that is held is under way, or will not be. */
  private async underWay(): Promise<void> {
    await Promise.race([this.upstream.holding.opened, sleep(HELD_MS)]);
  }

  /** Closes its own connection to the proxy; the next question opens another. */
  hangUp(): void {
    this.agent.destroy();
  }

  /** Plays some clients of a case at the same time. What is held goes on when none of them does anything any more. */
  private async playTogether(
    played: Timeline,
    group: readonly number[],
    clients: Client[],
    patienceMs: number,
  ): Promise<void> {
    const { upstream } = this;
    upstream.holdAgain();
    const playing: Promise<void>[] = [];
    for (const c of group) {
      const client = (clients[c] = this.client(played, c));
      playing.push(client.play(patienceMs));
      // The others come when it has what it holds.
      if (c === group[0] && isHeld(played.clients[c]!.exchanges[0]!)) await this.underWay();
    }
    const quiet = Promise.all(group.map((c) => clients[c]!.quiet)).then(() => this.read());
    await Promise.race([quiet, sleep(HELD_MS)]);
    upstream.released.open();
    await Promise.all(playing);
  }

  async stop(): Promise<void> {
    this.agent.destroy();
    await this.upstream.stop();
  }

  private client(played: Timeline, c: number): Client {
    const script = played.clients[c]!;
    const ports = this.ports();
    if (script.protocol === "h2")
      return new Http2Client(script, http2Turns(played.index, c, script, this.number), ports);
    return new Http1Client(script, http1Turns(played.index, c, script, this.number), ports);
  }

  /** Waits until nothing is under way. @returns what still is, if it does not end */
  private async rest(played: Timeline, patienceMs: number): Promise<string | undefined> {
    if (played.clients.some(({ abort, stays }) => abort !== undefined || stays)) {
      await this.read();
      // Node accepts one connection in a turn, and each request may have had its own.
      const requests = played.clients.reduce((sum, { exchanges }) => sum + exchanges.length, 0);
      for (let i = 0; i < requests; i++) await setImmediate();
    }
    const deadline = Date.now() + patienceMs;
    const come = async (): Promise<string | undefined> => {
      while (this.upstream.busy !== undefined && Date.now() < deadline) await sleep(1);
      return this.upstream.busy;
    };
    const busy = await come();
    return busy === undefined && this.upstream.writeLate() ? come() : busy;
  }

  /** Waits until the proxy has read what was sent to it so far. */
  private async read(): Promise<void> {
    // Twice: what a client left behind may lie in the same turn of the proxy as the first.
    for (let i = 0; i < 2; i++) await this.ask();
    for (let i = 0; i < 2; i++) await setImmediate();
  }

  private ask(): Promise<void> {
    return new Promise((resolve) => {
      const { plainPort } = this.ports();
      const asked = request(
        { port: plainPort, host: "127.0.0.1", path: "/here", agent: this.agent },
        (response) => {
          response.resume();
          response.on("close", resolve);
        },
      );
      // The proxy is gone: the case says so.
      asked.on("error", () => resolve());
      asked.end();
    });
  }
}

/** Responses are held for so long at most: a client may wait for one of them before it goes on. */
const HELD_MS = 1_000;

const isHeld = ({ response }: ExchangeScript): boolean => response.held !== "no";

/** Numbers of the clients that play at the same time, in order. */
const groupsOf = ({ clients, together }: Timeline): number[][] =>
  together ? [[...clients.keys()]] : [...clients.keys()].map((c) => [c]);
