import { Agent, type ClientRequest, type IncomingHttpHeaders, request } from "node:http";

export interface Response {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Statuses of the informational responses before it. */
  readonly informational: readonly number[];
  /** The body as it came. */
  readonly pieces: readonly Buffer[];
}

export interface Asking {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string | number>>;
  /** A body; without a length it goes in chunks. With `Expect` it waits to be asked for. */
  readonly body?: AsyncIterable<Buffer> | Iterable<Buffer>;
  readonly agent?: Agent;
  /** Called with each piece of the response's body. */
  readonly onPiece?: () => void;
  /** How long nothing of the response's body is read. Default 0. */
  readonly restMs?: number;
}

/** One client that keeps its connection; it leaves when what it does is over. */
export async function asOneClient<T>(does: (agent: Agent) => Promise<T>): Promise<T> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  try {
    return await does(agent);
  } finally {
    agent.destroy();
  }
}

/** Asks a port of this machine; rejects unless the response is complete. */
export function ask(port: number, path: string, asking: Asking = {}): Promise<Response> {
  const { method = "GET", headers, body, agent = new Agent() } = asking;
  const asked = request({ host: "127.0.0.1", port, path, method, headers: { ...headers }, agent });
  const closed = new Promise<void>((done) => asked.once("close", done));
  const response = responseOf(asked, asking);
  if (body === undefined) asked.end();
  else if (headers?.["Expect"] === undefined) void send(asked, body, closed);
  else asked.once("continue", () => void send(asked, body, closed)).flushHeaders();
  // Only then does the agent know whether the connection is to be used again.
  return response.then((came) => closed.then(() => came));
}

function responseOf(asked: ClientRequest, { restMs = 0, onPiece }: Asking): Promise<Response> {
  return new Promise((resolve, reject) => {
    const informational: number[] = [];
    asked.on("information", ({ statusCode }) => informational.push(statusCode));
    // A server may respond and close before it has read the whole body: a response that has begun counts.
    asked.on("error", reject);
    asked.on("response", (response) => {
      asked.off("error", reject).on("error", () => {});
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => {
        pieces.push(piece);
        onPiece?.();
      });
      if (restMs > 0) {
        response.pause();
        setTimeout(() => response.resume(), restMs);
      }
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode!,
          headers: response.headers,
          body: Buffer.concat(pieces),
          informational,
          pieces,
        }),
      );
    });
  });
}

async function send(
  asked: ClientRequest,
  body: NonNullable<Asking["body"]>,
  closed: Promise<void>,
): Promise<void> {
  for await (const piece of body) {
    if (asked.destroyed) return;
    if (!asked.write(piece)) await Promise.race([new Promise((done) => asked.once("drain", done)), closed]);
  }
  asked.end();
}

/** What many requests came to that each ask for a response of their own. */
export class Tally {
  own = 0;
  /** Responses that say that there is none, and connections that were cut. */
  readonly errors: string[] = [];
  /** Anything else: what was meant for others, or for nobody. */
  readonly foreign: string[] = [];

  constructor(
    private readonly port: number,
    private readonly server: string,
  ) {}

  /** A request whose response names it. */
  ask(ms: number, asking: Asking = {}): Promise<void> {
    const id = `request-${++ids}`;
    return this.take(
      ask(this.port, `/${this.server}/answer?id=${id}&ms=${ms}`, asking),
      ({ status, body }) => status === 200 && body.toString("latin1") === `response of ${id}`,
    );
  }

  /** Judges a response when it is there. */
  async take(response: Promise<Response>, isOwn: (response: Response) => boolean): Promise<void> {
    const failed = (error: Error): void => void this.errors.push(error.message);
    await response.then((came) => {
      if (isOwn(came)) this.own++;
      else if (came.status >= 500) this.errors.push(String(came.status));
      else this.foreign.push(`${came.status} ${came.body.toString("latin1", 0, 80)}`);
    }, failed);
  }

  /** Clients that ask again and again, each on its own connection, until it is over. */
  async hammer(clients: number, isOver: () => boolean): Promise<void> {
    const one = (): Promise<void> =>
      asOneClient(async (agent) => {
        while (!isOver()) await this.ask(0, { agent });
      });
    await Promise.all(Array.from({ length: clients }, one));
  }
}

let ids = 0;
