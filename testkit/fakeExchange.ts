import type { ErrorToken, RouteConfig, VirtualServerConfig } from "../src/model/index.js";
import { WorkerCounts } from "../src/runtime/counting/workerCounts.js";
import type {
  RouteAction,
  ClientInfo,
  HeaderList,
  ExchangeHolder,
  LoggedExchange,
  RouteRuntime,
} from "../src/runtime/exchange/exchange.js";
import type { LoggedRequest } from "../src/runtime/codec/request.js";
import { headerValue } from "../src/runtime/exchange/exchange.js";

export interface FakeRequest {
  method?: string;
  target?: string;
  path?: string;
  headers?: Record<string, string> | HeaderList;
  version?: LoggedRequest["version"];
  host?: string;
  serverName?: string;
  requestLine?: string;
  receivedAt?: number;
}

export interface FakeOptions {
  client?: Partial<ClientInfo>;
  server?: Partial<VirtualServerConfig>;
  route?: RouteRuntime | undefined;
  /** `sendData` returns false, and `onDrain` comes in a later turn. */
  slow?: boolean;
  pieceBytesMax?: number;
}

/** What is read of a file at once for a client of no known pace. */
export const PIECE_BYTES = 65_536;

/** One line that an action wrote to the error log. */
export interface LoggedError {
  level: string;
  message: string;
}

/**
 * An exchange without a network. It checks what actions owe to the interface: one head, no more bytes than announced, no
 * data while the client is slow, none after the end; and it keeps a slow client's buffer as a socket would, so that a
 * buffer that is reused too early shows in the body.
 */
export class FakeExchange implements LoggedExchange {
  readonly request: LoggedRequest;
  readonly client: ClientInfo;
  readonly server: VirtualServerConfig;
  readonly route: RouteRuntime | undefined;
  status = 0;
  reason = "";
  headers: HeaderList = [];
  /** Length that was announced; -1 for none. */
  bodyLength = -1;
  bodyBytesSent = 0;
  headSent = false;
  headMs = -1;
  bodyBytesReceived = 0;
  countedSent = 0;
  countedReceived = 0;
  errorToken: ErrorToken | undefined = undefined;
  upstreamServer: string | undefined = undefined;
  upstreamBegunMs = -1;
  upstreamConnectMs = -1;
  pieceBytesMax: number;
  ended = false;
  aborted = false;
  /** What an action reported as its own fault. */
  fault: unknown = undefined;
  /** Resolves when the exchange is over, however it ended. */
  readonly over: Promise<this>;
  /** What was sent, and how much memory each piece was in. */
  readonly pieces: { readonly bytes: number; readonly memory: ArrayBufferLike }[] = [];
  released = false;
  private holder: ExchangeHolder | undefined;
  private gone = false;
  private chunks: Buffer[] = [];
  private kept: Uint8Array | undefined;
  private settle!: () => void;

  constructor(
    request: FakeRequest = {},
    private readonly options: FakeOptions = {},
  ) {
    this.request = makeRequest(request);
    this.client = { ...CLIENT, ...options.client };
    this.server = { ...SERVER, ...options.server } as VirtualServerConfig;
    this.route = options.route;
    this.pieceBytesMax = options.pieceBytesMax ?? PIECE_BYTES;
    this.over = new Promise((resolve) => (this.settle = () => resolve(this)));
  }

  onFault(error: unknown): void {
    this.fault = error;
    this.abort();
  }

  hold(holder: ExchangeHolder): boolean {
    if (this.released) return false;
    if (this.holder !== undefined && this.holder !== holder) throw new Error("a second holder");
    this.holder = holder;
    return true;
  }

  letGo(holder: ExchangeHolder): void {
    if (this.holder === holder) this.holder = undefined;
  }

  get body(): Buffer {
    const [first, ...more] = this.chunks;
    if (first !== undefined && more.length === 0) return first;
    const whole = Buffer.concat(this.chunks);
    // Some have megabytes of it, and are asked for it several times.
    this.chunks = [whole];
    return whole;
  }

  get text(): string {
    return this.body.toString("latin1");
  }

  header(lowerCaseName: string): string | undefined {
    return headerValue(this.headers, lowerCaseName);
  }

  readBody(): void {
    throw new Error("not expected to read the body");
  }
  pauseBody(): void {}
  resumeBody(): void {}
  sendContinue(): void {}
  sendInformational(): void {}
  flush(): void {}

  sendHead(status: number, reason: string, headers: HeaderList, bodyLength: number): void {
    if (this.headSent || this.ended || this.aborted) throw new Error("a second head");
    if (this.gone) throw new Error("a response to a client that is gone");
    this.headSent = true;
    Object.assign(this, { status, reason, headers: [...headers], bodyLength });
  }

  sendData(chunk: Uint8Array): boolean {
    if (!this.headSent || this.ended || this.aborted) throw new Error("data outside the response");
    if (this.request.method === "HEAD" || this.status === 304) throw new Error("data where none may be");
    if (this.kept !== undefined) throw new Error("data while the client is slow");
    if (chunk.length === 0) throw new Error("an empty piece");
    this.pieces.push({ bytes: chunk.length, memory: chunk.buffer });
    this.bodyBytesSent += chunk.length;
    if (this.bodyLength !== -1 && this.bodyBytesSent > this.bodyLength)
      throw new Error("more than announced");
    if (this.options.slow !== true) {
      this.chunks.push(Buffer.from(chunk));
      return true;
    }
    this.kept = chunk;
    setTimeout(() => this.take(), 2);
    return false;
  }

  end(): void {
    if (!this.headSent || this.ended || this.aborted) throw new Error("an end without a response");
    const empty = this.request.method === "HEAD" || this.status === 304;
    if (!empty && this.bodyLength !== -1 && this.bodyBytesSent !== this.bodyLength) {
      throw new Error(`announced ${this.bodyLength} bytes, sent ${this.bodyBytesSent}`);
    }
    this.ended = true;
    this.release();
    if (this.kept === undefined) this.settle();
  }

  abort(): void {
    if (this.ended || this.aborted) throw new Error("over already");
    this.aborted = true;
    this.release();
    this.settle();
  }

  /** The client has taken what it was sent. */
  drained(): void {
    this.holder?.onDrain();
  }

  /** The client closes the connection. */
  leave(): void {
    this.gone = true;
    this.release();
    this.settle();
  }

  private release(): void {
    if (this.released) return;
    this.released = true;
    const { holder } = this;
    this.holder = undefined;
    holder?.onReleased();
  }

  private take(): void {
    this.chunks.push(Buffer.from(this.kept!));
    this.kept = undefined;
    if (this.ended) this.settle();
    else this.drained();
  }
}

/** Runs an action on a request to its end. */
export function run(
  action: RouteAction,
  request: FakeRequest = {},
  options: FakeOptions = {},
): Promise<FakeExchange> {
  const exchange = new FakeExchange(request, options);
  action.handle(exchange);
  return exchange.over;
}

/** A route whose errors end up in `errors`. */
export function fakeRoute(config: Partial<RouteConfig>, errors: LoggedError[] = []): RouteRuntime {
  return {
    config: config as RouteConfig,
    server: SERVER as VirtualServerConfig,
    action: { handle: () => undefined },
    guard: undefined,
    limits: undefined,
    responseFields: undefined,
    accessLog: { write: () => undefined },
    errorLog: { write: (level, message) => void errors.push({ level, message }) },
    counts: new WorkerCounts(() => true).requestsOf(SERVER as VirtualServerConfig),
  };
}

const CLIENT: ClientInfo = {
  address: "192.0.2.7",
  port: 40_000,
  scheme: "http",
  tlsGroup: undefined,
  responseRules: "http",
  listener: "plain",
  localAddress: "192.0.2.1",
  localPort: 80,
  connectionId: 12,
  trusted: false,
  misdirected: undefined,
  presented: undefined,
};

const SERVER: Partial<VirtualServerConfig> = {
  name: "app",
  serverNames: ["sync.example"],
  versionTokens: false,
  responseHeaders: { set: {}, remove: [] },
  errorPages: [],
};

function makeRequest(request: FakeRequest): LoggedRequest {
  const { method = "GET", target = "/", version = "1.1", host = "sync.example", headers = {} } = request;
  return {
    method,
    target,
    path: request.path ?? target.split("?")[0]!,
    requestLine: request.requestLine ?? `${method} ${target} HTTP/${version}`,
    version,
    headers: Array.isArray(headers) ? headers : Object.entries(headers).flat(),
    host,
    serverName: request.serverName ?? host.toLowerCase().split(":")[0]!,
    bodyLength: 0,
    lengthDeclared: false,
    upgrade: undefined,
    connectionLogin: false,
    receivedAt: request.receivedAt ?? performance.now(),
  };
}
