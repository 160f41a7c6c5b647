import { randomBytes } from "node:crypto";
import http from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { ask, connectHttp2 } from "../../testkit/http2Session.js";

/** A request and what became of it. */
export interface Asked {
  readonly target: string;
  readonly repeatable: boolean;
  readonly began: number;
  readonly ms: number;
  /** What was wrong with its response; undefined if nothing was. */
  readonly wrong: string | undefined;
}

interface Responded {
  readonly status: number;
  readonly body: string;
}

const SMALL = randomBytes(200);
const LARGE = randomBytes(1 << 20);
const BODIES: Readonly<Record<string, Buffer | undefined>> = { GET: undefined, POST: SMALL, PUT: LARGE };

/** Clients that ask again and again, each over a connection of its own that it keeps, until they are told to end. */
export class Load {
  readonly asked: Asked[] = [];
  private running = true;
  private readonly clients: Promise<void>[] = [];

  constructor(ports: { readonly plainPort: number; readonly tlsPort: number }) {
    const methods = ["GET", "GET", "GET", "POST", "PUT"];
    for (const method of methods)
      for (const secure of [false, true])
        this.clients.push(
          secure ? this.overHttp2(method, ports.tlsPort) : this.overHttp1(method, ports.plainPort),
        );
  }

  async end(): Promise<readonly Asked[]> {
    this.running = false;
    await Promise.all(this.clients);
    return this.asked;
  }

  private async overHttp1(method: string, port: number): Promise<void> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    await this.repeat(method, (target, body) => askHttp1({ agent, port, method, path: target }, body));
    agent.destroy();
  }

  private async overHttp2(method: string, port: number): Promise<void> {
    let session = connectHttp2(port);
    await this.repeat(method, async (target, body) => {
      const headers = { ":authority": "files.example.org", ":method": method, ":path": target };
      const response = await ask(session, headers, body);
      if (response.status === 200) return response;
      // Node keeps what it did not send of an upload, and takes no response any more when that is too much.
      session.destroy();
      session = connectHttp2(port);
      return response;
    });
    session.destroy();
  }

  private async repeat(
    method: string,
    send: (target: string, body: Buffer | undefined) => Promise<Responded>,
  ): Promise<void> {
    const body = BODIES[method];
    while (this.running) {
      const target = `/sync/${this.asked.length}-${Math.random()}`;
      const began = performance.now();
      const expected = `${method} ${target} ${body?.length ?? 0}`;
      const wrong = await send(target, body).then(
        (response) =>
          response.status === 200 && response.body === expected ? undefined : `${response.status}`,
        (error: Error) => error.message,
      );
      const ms = performance.now() - began;
      this.asked.push({
        target,
        repeatable: method === "GET",
        began,
        ms,
        wrong: wrong && `${method}: ${wrong}`,
      });
      await sleep(Math.random() * 60);
    }
  }
}

function askHttp1(options: http.RequestOptions, body: Buffer | undefined): Promise<Responded> {
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "Content-Length": body.length };
    const headers = { Host: "files.example.org", ...length };
    const request = http.request({ ...options, host: "127.0.0.1", headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
      response.on("error", reject);
      response.on("end", () => resolve({ status: response.statusCode!, body: text }));
    });
    request.on("error", reject);
    request.end(body);
  });
}
