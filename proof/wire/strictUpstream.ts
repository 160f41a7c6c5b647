import type { Socket } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { TlsOptions } from "node:tls";
import {
  type BodyKind,
  fieldValue,
  framingOf,
  type MessageHead,
  MessageReader,
  type MessageSink,
  Violation,
} from "../../testkit/messages.js";
import { LoopbackServer } from "../../testkit/peers.js";
import { MOMENT_MS, type ScriptedResponse, scriptedResponse } from "./scriptedResponse.js";
import {
  bytesOf,
  type Carrier,
  type ClientScript,
  type ExchangeScript,
  idOf,
  isBodiless,
  isUpgrade,
  readPath,
  type ResponsePlan,
  type Timeline,
} from "./timeline.js";
import { play, UpstreamConnection } from "./upstream.js";

/** What several wait for. */
class Gate {
  open: () => void = () => undefined;
  readonly opened = new Promise<void>((resolve) => (this.open = resolve));
}

/** A request as it arrived. */
export interface Seen {
  readonly id: string;
  bodyBytes: number;
  /** The message ended as one may end. */
  complete: boolean;
}

interface Expected {
  readonly id: string;
  readonly client: ClientScript;
  readonly exchange: ExchangeScript;
}

/** What all lanes share. */
export interface LanePlace {
  readonly certificate: { readonly key: string; readonly cert: string };
  readonly folder: string;
}

/** The upstream of one lane: takes requests strictly, responds by the script of the case that is played. */
export class StrictUpstream {
  readonly violations: string[] = [];
  readonly seen: Seen[] = [];
  private readonly connections = new Set<StrictConnection>();
  private expected = new Map<string, Expected>();
  /** Requests of clients that left, in earlier cases. */
  private readonly left = new Set<string>();
  /** Opens when responses that are held are under way, and the other when they may go on. */
  holding = new Gate();
  released = new Gate();

  private readonly servers: readonly LoopbackServer[];

  private constructor(
    readonly lane: number,
    /** URLs of the upstream, by who connects how. */
    readonly urls: Readonly<Record<Carrier, string>>,
    servers: Readonly<Record<Carrier, LoopbackServer>>,
  ) {
    this.servers = Object.values(servers);
  }

  /** @param folder for its Unix socket */
  static async start(lane: number, { certificate, folder }: LanePlace): Promise<StrictUpstream> {
    const started: { upstream?: StrictUpstream } = {};
    const server = (secure?: TlsOptions): LoopbackServer => {
      const one = new LoopbackServer((socket) => {
        const upstream = started.upstream!;
        upstream.connections.add(new StrictConnection(socket, upstream, one.transportOf(socket)));
      }, secure);
      return one;
    };
    const path = join(folder, `${lane}.sock`);
    const tcp = await server().listen();
    const tls = await server(certificate).listen();
    const unix = await server().listenAt(path);
    const urls = {
      tcp: `http://127.0.0.1:${tcp.port}`,
      tls: `https://127.0.0.1:${tls.port}`,
      unix: `unix:${path}`,
    };
    return (started.upstream = new StrictUpstream(lane, urls, { tcp, tls, unix }));
  }

  expect({ index, clients }: Timeline): void {
    this.violations.length = 0;
    this.seen.length = 0;
    this.expected = new Map(
      clients.flatMap((client, c) =>
        client.exchanges.map((exchange, e) => {
          const id = idOf(index, c, e);
          return [id, { id, client, exchange }] as const;
        }),
      ),
    );
  }

  /** Responses to the next clients are held anew. */
  holdAgain(): void {
    this.holding = new Gate();
    this.released = new Gate();
  }

  /** On connections at rest: writes what comes behind responses. @returns whether there was any */
  writeLate(): boolean {
    return [...this.connections].filter((connection) => connection.writeLate()).length > 0;
  }

  lookUp(id: string): Expected {
    const found = this.expected.get(id);
    if (found !== undefined) return found;
    const message = `a request of nobody: ${id}`;
    throw this.left.has(id) ? new LateRequest(message) : new Violation(message);
  }

  /** What is not at rest: at a message boundary with nothing to respond to, or closed. */
  get busy(): string | undefined {
    for (const connection of this.connections) if (!connection.atRest) return connection.describe();
    return undefined;
  }

  /** Closes all connections, which have to be at rest; resolves when the proxy has closed them, too. */
  async endAll(patienceMs: number): Promise<void> {
    await Promise.all([...this.connections].map((connection) => connection.leave(patienceMs)));
  }

  /** Nothing is expected any more; what is still open after all is cut. */
  abandon(): void {
    for (const [id, { client }] of this.expected) if (client.abort !== undefined) this.left.add(id);
    this.expected = new Map();
    for (const server of this.servers) server.cut();
  }

  forget(connection: StrictConnection): void {
    this.connections.delete(connection);
  }

  async stop(): Promise<void> {
    this.abandon();
    await Promise.all(this.servers.map((server) => server.close()));
  }
}

class StrictConnection extends UpstreamConnection implements MessageSink {
  private readonly reader = new MessageReader(this);
  private expected: Expected | undefined;
  private seen: Seen | undefined;
  private responding: "waits" | "writes" | "done" = "done";
  /** Why no further request may come. */
  private retired: string | undefined;
  private tunnel: "none" | "asked" | "open" = "none";
  /** It closes or resets the connection: what arrives from here on was sent before the proxy could know. */
  private leaving = false;
  /** What will be written behind the response, once all is at rest; or in a moment. */
  private late: Buffer | undefined;
  private owing = false;
  /** What its body, or its side of the tunnel, has to be. */
  private whole: Buffer = Buffer.alloc(0);

  constructor(
    socket: Socket,
    private readonly owner: StrictUpstream,
    private readonly transport: Socket,
  ) {
    super(socket);
  }

  protected override read(bytes: Buffer): void {
    this.guard(() => this.leaving || this.reader.feed(bytes));
  }

  protected override left(): void {
    const { begun } = this.reader;
    // Heads come in one piece: a part of one was none, but bytes after a body that was longer than announced.
    if (begun.length > 0 && !this.leaving)
      this.owner.violations.push(`upstream: bytes behind a request: ${printable(begun)}`);
    this.owner.forget(this);
  }

  get atRest(): boolean {
    return (
      this.reader.between &&
      this.responding === "done" &&
      this.retired === undefined &&
      !this.leaving &&
      !this.owing
    );
  }

  writeLate(): boolean {
    const { late } = this;
    if (late === undefined || this.leaving) return false;
    this.late = undefined;
    this.retired ??= "with bytes behind its response";
    this.socket.write(late);
    return true;
  }

  describe(): string {
    const id = this.seen?.id ?? "none yet";
    const where = this.reader.between ? "between requests" : "in the midst of one";
    return `connection of request ${id}: ${where}, response ${this.responding}, ${this.retired ?? "not retired"}`;
  }

  head(head: MessageHead): BodyKind {
    if (this.retired !== undefined) throw new Violation(`a request on a connection ${this.retired}`);
    if (this.responding !== "done") throw new Violation(`a request before the response to ${this.seen!.id}`);
    const [, method, target] = /^([A-Z]+) (\S+) HTTP\/1\.1$/.exec(head.startLine) ?? [];
    const read = readPath(target ?? "");
    if (read === undefined || fieldValue(head.fields, "x-id") !== read.id)
      throw new Violation(`a request that nobody sent: ${JSON.stringify(head.startLine)}`);
    const { id } = read;
    const expected = this.owner.lookUp(id);
    const { exchange, client } = expected;
    const asked = exchange.upgrade && client.protocol === "h2" ? "GET" : exchange.method;
    const path = read.lane === this.owner.lane && read.letter === exchange.to.letter;
    if (method !== asked || !path) throw new Violation(`not the request of ${id}: ${head.startLine}`);
    this.expected = expected;
    this.seen = { id, bodyBytes: 0, complete: false };
    this.owner.seen.push(this.seen);
    this.responding = "waits";
    // A body that nobody asked for: whoever takes the connection for one at rest has it before the next response.
    if (this.owing && this.late !== undefined) this.socket.write(this.late);
    this.owing = false;
    this.late = undefined;
    return this.framed(head, expected);
  }

  /** A body is announced exactly as the client did. */
  private framed(head: MessageHead, { id, client, exchange }: Expected): BodyKind {
    const framing = framingOf(head);
    const upgrade = isUpgrade(client, exchange);
    const asked = fieldValue(head.fields, "upgrade");
    if ((asked !== undefined) !== upgrade) throw new Violation(`${id}: upgrade ${asked ?? "dropped"}`);
    if (upgrade) {
      if ((framing ?? 0) !== 0) throw new Violation(`${id}: an upgrade announces a body: ${framing}`);
      this.retired = "that carried an upgrade";
      this.tunnel = "asked";
      this.seen!.complete = true;
      this.respond();
      return "raw";
    }
    const { body } = exchange;
    const announced = body === undefined ? 0 : body.framing === "length" ? body.bytes : "chunked";
    if ((framing ?? 0) !== announced && !(announced === "chunked" && framing === undefined))
      throw new Violation(`${id}: body of ${announced} announced as ${framing}`);
    this.whole = bytesOf("body", id, body?.bytes ?? 0);
    if (exchange.response.when === "head") this.respond();
    return framing ?? 0;
  }

  body(bytes: Buffer): void {
    const { seen, whole } = this;
    const id = seen!.id;
    if (this.tunnel === "asked") throw new Violation(`${id}: bytes before the tunnel is open`);
    const from = seen!.bodyBytes;
    seen!.bodyBytes += bytes.length;
    if (!whole.subarray(from, seen!.bodyBytes).equals(bytes))
      throw new Violation(`${id}: not its body, from byte ${from}: ${printable(bytes)}`);
    const { exchange } = this.expected!;
    if (this.tunnel === "open") {
      if (seen!.bodyBytes === whole.length && exchange.tunnel.endedBy === "upstream") this.socket.end();
    } else if (exchange.response.when === "half" && seen!.bodyBytes * 2 >= whole.length) this.respond();
  }

  end(): void {
    this.seen!.complete = true;
    this.respond();
  }

  /** Responds, if that is still to be done. */
  private respond(): void {
    if (this.responding !== "waits") return;
    const { id, exchange } = this.expected!;
    this.responding = "writes";
    if (exchange.response.held !== "no") this.owner.holding.open();
    if (exchange.response.held === "forever") {
      this.retired ??= "whose request was given up";
      return;
    }
    const response = scriptedResponse(id, exchange);
    if (response.isLast) this.retired ??= "whose response was its last";
    const { released } = this.owner;
    void play(this.socket, response, {
      held: (piece) => (piece === response.heldAt ? released.opened : undefined),
      written: () => this.written(response, exchange),
      leaves: () => (this.leaving = true),
      transport: this.transport,
    });
  }

  /** What comes behind a response. */
  private async written({ opens, late }: ScriptedResponse, exchange: ExchangeScript): Promise<void> {
    this.responding = "done";
    if (this.tunnel === "asked" && opens) return this.open(this.expected!.id, exchange);
    this.late = late;
    if (late === undefined || !isBodiless(exchange) || !announcesBody(exchange.response)) return;
    this.owing = true;
    await sleep(MOMENT_MS);
    if (this.owing) this.writeLate();
    this.owing = false;
  }

  private open(id: string, { tunnel }: ExchangeScript): void {
    this.tunnel = "open";
    this.whole = bytesOf("up", id, tunnel.up);
    this.socket.write(bytesOf("down", id, tunnel.down));
    if (tunnel.up === 0 && tunnel.endedBy === "upstream") this.socket.end();
  }

  private guard(step: () => unknown): void {
    try {
      step();
    } catch (error) {
      if (!(error instanceof Violation)) throw error;
      if (!(error instanceof LateRequest)) this.owner.violations.push(`upstream: ${error.message}`);
      this.leaving = true;
      this.socket.destroy();
    }
  }
}

/**
 * A request of a client that left in an earlier case. It was sent behind another one whose response took long, so the proxy
 * came to it before it could know.
 */
class LateRequest extends Violation {}

/** Only where a response without a body announces one can its end not be known for sure. */
const announcesBody = ({ framing, bytes }: ResponsePlan): boolean => framing === "chunked" || bytes > 0;

/** Bytes as a line of text. */
const printable = (bytes: Buffer): string => JSON.stringify(bytes.toString("latin1", 0, 160));
