import { connect as connectTcp, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { type Field, type Message, parseMessage } from "./messages.js";
import { connectTls } from "./tlsClient.js";

/** What a client does: writes bytes (chars of latin1), waits, or closes. */
export type Step =
  | string
  /** Goes on once the client was told to continue, has an answer's head, or upstreams have so many bytes. */
  | { readonly until: "continue" | "answer" | { readonly upstreamBytes: number } }
  | { readonly pauseMs: number }
  /** Closes the sending direction, or the whole connection at once. */
  | { readonly close: "half" | "all" };

export interface Http1Options {
  readonly port: number;
  readonly tls: boolean;
  readonly serverName: string;
  readonly steps: readonly Step[];
  /** Bytes that the upstreams received so far. */
  readonly upstreamBytes: () => number;
  /** How long an answer may take, before the connection counts as silent. */
  readonly patienceMs?: number;
}

/** What came back. */
export interface ClientResult {
  /** Statuses of informational answers before the final one. */
  readonly informational: readonly number[];
  readonly startLine: string;
  readonly fields: readonly Field[];
  readonly body: Buffer;
  readonly framing: string;
  readonly complete: boolean;
  /** What became of the connection after the answer: whether it took another request. */
  readonly connection: "open" | "closed" | "silent" | "";
  /** Every byte, for reports. */
  readonly raw: string;
}

const PATIENCE_MS = 4_000;

/** Runs a client on a raw connection. */
export async function talkHttp1(options: Http1Options): Promise<ClientResult> {
  const { port, serverName } = options;
  const peer = new Peer(
    options.tls ? connectTls(port, serverName, "http/1.1") : connectTcp(port, "127.0.0.1"),
  );
  try {
    await peer.opened;
    const method = methodOf(options.steps);
    for (const step of options.steps) {
      await perform(peer, step, method, options.upstreamBytes);
      if (peer.closedByUs) return { ...result(peer, peer.answer(method)), connection: "" };
    }
    const answered = (): boolean => peer.answer(method)?.complete === true || peer.ended;
    const silent = !(await peer.until(answered, options.patienceMs));
    const answer = result(peer, peer.answer(method));
    if (silent) return { ...answer, connection: "silent" };
    return { ...answer, connection: peer.halfClosed ? "" : await probe(peer) };
  } finally {
    peer.socket.destroy();
  }
}

function methodOf(steps: readonly Step[]): string {
  return steps.find((step) => typeof step === "string")?.split(" ")[0] ?? "";
}

async function perform(peer: Peer, step: Step, method: string, upstreamBytes: () => number): Promise<void> {
  if (typeof step === "string") return peer.write(step);
  if ("pauseMs" in step) return sleep(step.pauseMs);
  if ("close" in step) return peer.close(step.close);
  const { until } = step;
  await peer.until(() => {
    if (until === "continue") return peer.informational().includes(100) || peer.ended;
    if (until === "answer") return peer.answer(method) !== undefined || peer.ended;
    return upstreamBytes() >= until.upstreamBytes || peer.ended;
  });
}

/** Sends a request that no upstream sees, and looks whether it is answered. */
async function probe(peer: Peer): Promise<ClientResult["connection"]> {
  if (peer.ended) return "closed";
  const before = peer.received.length;
  peer.write("GET /persistent HTTP/1.1\r\nHost: nobody.example\r\n\r\n");
  const settled = (): boolean => peer.ended || peer.received.length > before;
  await peer.until(settled);
  if (peer.received.length > before) return "open";
  return peer.ended ? "closed" : "silent";
}

function result(peer: Peer, answer: Message | undefined): Omit<ClientResult, "connection"> {
  const raw = peer.received.toString("latin1");
  if (answer === undefined) {
    // HTTP/0.9 has no head; its body ends with the connection.
    const body = peer.received;
    const nothing = { informational: [], startLine: "", fields: [], framing: "close", complete: peer.ended };
    return { ...nothing, body, raw };
  }
  return { ...answer, informational: peer.informational(), raw };
}

/** A connection and what it has received. */
class Peer {
  received: Buffer = Buffer.alloc(0);
  ended = false;
  halfClosed = false;
  closedByUs = false;
  readonly opened: Promise<void>;
  private changed: () => void = () => undefined;

  constructor(readonly socket: Socket) {
    const secure = "encrypted" in socket;
    this.opened = new Promise((resolve, reject) => {
      socket.once(secure ? "secureConnect" : "connect", resolve);
      socket.once("error", reject);
    });
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.received = Buffer.concat([this.received, chunk]);
      this.changed();
    });
    for (const event of ["end", "close", "error"]) {
      socket.on(event, () => {
        this.ended = true;
        this.changed();
      });
    }
  }

  write(text: string): void {
    if (!this.socket.destroyed) this.socket.write(Buffer.from(text, "latin1"));
  }

  close(what: "half" | "all"): void {
    this.halfClosed = true;
    if (what === "half") this.socket.end();
    else {
      this.closedByUs = true;
      this.socket.destroy();
    }
  }

  /** The final answer as far as it came; undefined until its head has. */
  answer(method: string): Message | undefined {
    let at = 0;
    for (;;) {
      const message = parseMessage(this.received, at, { type: "response", method, ended: this.ended });
      if (message === undefined || !isInformational(message)) return message;
      at = message.end;
    }
  }

  informational(): number[] {
    const statuses: number[] = [];
    let at = 0;
    for (;;) {
      const message = parseMessage(this.received, at, { type: "response", method: "", ended: this.ended });
      if (message === undefined || !isInformational(message)) return statuses;
      statuses.push(Number(message.startLine.split(" ")[1]));
      at = message.end;
    }
  }

  /**
   * Waits until something is the case, and looks again whenever the connection or an upstream may have moved.
   * @returns false if it never was
   */
  async until(isSo: () => boolean, patienceMs = PATIENCE_MS): Promise<boolean> {
    const deadline = Date.now() + patienceMs;
    while (!isSo()) {
      if (Date.now() > deadline) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 5);
        this.changed = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return true;
  }
}

/** 101 is final: what follows is not an HTTP message any more. */
function isInformational(message: Message): boolean {
  return /^HTTP\/1\.[01] 1(?!01)\d\d/.test(message.startLine);
}
