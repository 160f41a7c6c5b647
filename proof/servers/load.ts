import * as http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { pattern, patternHash } from "../transfer/pattern.js";

/** What clients send, and what became of each request. */

export type Kind = "read" | "post" | "upload";

export interface Done {
  readonly id: number;
  readonly kind: Kind;
  /** When it began and ended, by the clock of `performance`. */
  readonly from: number;
  readonly to: number;
  /** What was wrong with its response; undefined if nothing was. */
  readonly wrong: string | undefined;
}

/** How many clients send each kind, one request after the other. */
const CLIENTS: Readonly<Record<Kind, number>> = { read: 8, post: 4, upload: 3 };
const POSTED_BYTES = 100;
/** Between two requests of a client, in milliseconds: neither proxy nor servers are to be the whole load of the machine. */
const PAUSE_MS: Readonly<Record<Kind, number>> = { read: 4, post: 20, upload: 20 };

/** Clients of one proxy, until they are stopped; each ends the request that it is at. */
export class Load {
  readonly done: Done[] = [];
  private readonly agent = new http.Agent({ keepAlive: true });
  private readonly clients: readonly Promise<void>[];
  private stopped = false;
  private static lastId = 0;

  constructor(
    private readonly port: number,
    private readonly uploadBytes: number,
  ) {
    this.clients = (Object.keys(CLIENTS) as Kind[]).flatMap((kind) =>
      Array.from({ length: CLIENTS[kind] }, () => this.client(kind)),
    );
  }

  async stop(): Promise<readonly Done[]> {
    this.stopped = true;
    await Promise.all(this.clients);
    this.agent.destroy();
    return this.done;
  }

  private async client(kind: Kind): Promise<void> {
    const bytes = { read: 0, post: POSTED_BYTES, upload: this.uploadBytes }[kind];
    const expected = await patternHash(bytes);
    while (!this.stopped) {
      const id = ++Load.lastId;
      const from = performance.now();
      const wrong = await this.send(kind, id, bytes, expected);
      this.done.push({ id, kind, from, to: performance.now(), wrong });
      await sleep(PAUSE_MS[kind]);
    }
  }

  private send(kind: Kind, id: number, bytes: number, expected: string): Promise<string | undefined> {
    const method = { read: "GET", post: "POST", upload: "PUT" }[kind];
    return new Promise((resolve) => {
      const request = http.request({
        host: "127.0.0.1",
        port: this.port,
        agent: this.agent,
        method,
        path: `/${kind}/${id}`,
        headers: kind === "read" ? {} : { "Content-Length": bytes },
      });
      request.on("error", ({ message }) => resolve(message));
      request.on("response", (response) => {
        let text = "";
        response.setEncoding("latin1").on("data", (more: string) => (text += more));
        response.on("error", ({ message }) => resolve(message));
        response.on("end", () => {
          const { statusCode } = response;
          const right = statusCode === 200 && text === expected;
          resolve(right ? undefined : statusCode === 200 ? `response ${text}` : `status ${statusCode}`);
          // Of an upload that got a response early, the rest is not sent.
          if (!request.writableFinished) request.destroy();
        });
      });
      if (kind === "read") request.end();
      else pattern(bytes).pipe(request);
    });
  }
}
