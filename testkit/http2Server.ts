import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import * as tls from "node:tls";
import { formatProblem, parseConfig, type ProxyConfigInput, type RouteInput } from "../src/model/index.js";
import { compileResponseFields } from "../src/runtime/exchange/responseFields.js";
import { AccessSteps } from "../src/runtime/dispatch/access.js";
import { type DispatchedExchange, Dispatcher } from "../src/runtime/dispatch/dispatch.js";
import type {
  BodySink,
  Exchange,
  ExchangeHolder,
  LoggedExchange,
  RouteRuntime,
} from "../src/runtime/exchange/exchange.js";
import { Http2Connections } from "../src/runtime/server/connections.js";
import { LogFiles } from "../src/runtime/logs/logFiles.js";
import { compileRoutes, type CompiledRoutes } from "../src/runtime/actions/compileRoutes.js";
import { issue, type Issued } from "./certificates.js";

export * from "./http2Session.js";

export interface Http2ServerOptions {
  /** Routes by path, each with a function that responds; they match whole segments. */
  readonly actions?: Readonly<Record<string, (exchange: Exchange) => void>>;
  /** Fields of all those routes. */
  readonly route?: Partial<RouteInput>;
  /** Routes with actions of the runtime's own. */
  readonly routes?: readonly RouteInput[];
  readonly config?: Partial<ProxyConfigInput>;
}

/** An HTTP/2 server on a free loopback port, over TLS, made of the runtime's own parts. */
export interface Http2Server {
  readonly port: number;
  readonly connections: Http2Connections;
  /** How many bytes clients sent that it has read, decrypted. */
  bytesRead(): number;
  /** Exchanges that `Dispatcher.finished` was called for, in order. */
  readonly finished: LoggedExchange[];
  accessLog(): Promise<string>;
  errorLog(): Promise<string>;
  close(): Promise<void>;
}

let certificate: Promise<Issued> | undefined;

export async function startHttp2Server(options: Http2ServerOptions): Promise<Http2Server> {
  const folder = mkdtempSync(join(tmpdir(), "portico-http2-"));
  const { key, cert } = await (certificate ??= issue({ type: "ec" }));
  const parsed = parseConfig({
    version: 1,
    logs: { access: { path: join(folder, "access.log") }, error: { path: join(folder, "error.log") } },
    listeners: [
      {
        name: "https",
        address: "127.0.0.1",
        port: 443,
        protocol: "https",
        tls: { certificate: "/unused.pem", key: "/unused.pem" },
      },
    ],
    virtualServers: [
      {
        name: "default",
        serverNames: ["_"],
        default: true,
        versionTokens: true,
        listeners: ["https"],
        routes: [],
      },
      {
        name: "application",
        serverNames: ["app.example", "sync.example"],
        listeners: ["https"],
        routes: [...Object.keys(options.actions ?? {}).map(placeholder(options)), ...(options.routes ?? [])],
      },
    ],
    ...options.config,
  });
  if (!parsed.ok) throw new Error(parsed.problems.map(formatProblem).join("\n"));
  const config = parsed.value;
  const logs = new LogFiles(config);
  logs.open();
  const serving = compileRoutes(config, logs);
  const finished: LoggedExchange[] = [];
  const dispatcher =
    options.actions === undefined ? serving.dispatcher : customDispatcher(serving, logs, options);
  const { dispatch, finished: log } = dispatcher;
  dispatcher.dispatch = (exchange) => dispatch.call(dispatcher, exchange);
  dispatcher.finished = (exchange) => {
    finished.push(exchange);
    log.call(dispatcher, exchange);
  };
  const connections = new Http2Connections({ ...serving, dispatcher });
  let read = 0;
  const server = tls.createServer({ key, cert, ALPNProtocols: ["h2"], noDelay: true }, (socket) => {
    connections.accept(socket, config.listeners[0]!);
    socket.on("data", (chunk: Buffer) => (read += chunk.length));
  });
  server.on("tlsClientError", () => undefined);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const logged = async (name: string): Promise<string> => {
    await logs.flush();
    return readFileSync(join(folder, name), "latin1");
  };
  return {
    port: (server.address() as AddressInfo).port,
    connections,
    bytesRead: () => read,
    finished,
    accessLog: () => logged("access.log"),
    errorLog: () => logged("error.log"),
    close: async () => {
      server.close();
      connections.drain();
      connections.closeAll();
      serving.close();
      await once(server, "close");
      await logs.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

const placeholder =
  ({ route }: Http2ServerOptions) =>
  (path: string): RouteInput => ({
    name: `route-${path.slice(1) || "root"}`,
    path,
    action: { type: "respond", status: 200 },
    ...route,
  });

/** The real dispatcher, over the functions of the test. */
function customDispatcher(serving: CompiledRoutes, logs: LogFiles, options: Http2ServerOptions): Dispatcher {
  const { config } = serving;
  const routes = new Map<object, RouteRuntime>();
  for (const server of config.virtualServers) {
    for (const route of server.routes) {
      const handle =
        options.actions![route.path] ??
        ((exchange) => serving.dispatcher.dispatch(exchange as DispatchedExchange));
      routes.set(route, {
        config: route,
        server,
        action: { handle },
        guard: undefined,
        limits: undefined,
        responseFields: compileResponseFields(server, route),
        accessLog: logs.accessLogFor(route),
        errorLog: logs.errorLogFor(route),
        counts: serving.counts.requestsOf(server, route),
      });
    }
  }
  return new Dispatcher(
    config,
    routes,
    logs.mainAccess,
    serving.counts,
    new AccessSteps({}, () => undefined),
  );
}

/** Responds with a whole body at once. */
export function respond(exchange: Exchange, status: number, body = "", headers: string[] = []): void {
  exchange.sendHead(status, "", headers, Buffer.byteLength(body));
  if (body !== "") exchange.sendData(Buffer.from(body));
  exchange.end();
}

/** A sink that keeps what it is given, and holds for its exchange. */
export class KeepingSink implements BodySink, ExchangeHolder {
  body = "";
  ended = false;
  aborted = false;
  drained = 0;
  /** What `onData` returns. */
  more = true;
  onDone: () => void = () => undefined;

  onData(chunk: Uint8Array): boolean {
    this.body += Buffer.from(chunk).toString("latin1");
    return this.more;
  }

  onEnd(): void {
    this.ended = true;
    this.onDone();
  }

  onDrain(): void {
    this.drained++;
  }

  onReleased(): void {
    this.aborted = !this.ended;
  }

  /** Reads the body of an exchange. */
  read(exchange: Exchange): void {
    exchange.hold(this);
    exchange.readBody(this);
  }
}

/** Holds for an exchange, and counts what it is told. */
export class CountingHolder implements ExchangeHolder {
  drained = 0;
  released = 0;

  onDrain(): void {
    this.drained++;
  }

  onReleased(): void {
    this.released++;
  }
}
