import { once } from "node:events";
import { Agent, type IncomingHttpHeaders, type IncomingMessage, request } from "node:http";
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type OutgoingHttpHeaders,
} from "node:http2";
import { connect } from "node:net";
import type { Duplex } from "node:stream";
import { connectHttp2 } from "../../testkit/http2Session.js";
import { connectTls } from "../../testkit/tlsClient.js";
import type { Case, Exchange } from "./case.js";
import type { Running } from "./running.js";
import { limitRecords } from "./upstreams.js";
import { readBy, send } from "./transfer.js";

/** Plays exchanges on connections of its own, by Node's clients. */
export interface Connections {
  play(running: Running, path: string): Promise<void>;
  close(): Promise<void>;
}

export interface Ports {
  readonly plainPort: number;
  readonly tlsPort: number;
}

export const HOST = "h";

export const connectionsOf = (one: Case, ports: Ports): Connections =>
  one.client === "h2" ? new Http2Connection(one, ports) : new Http1Connections(one, ports);

class Http1Connections implements Connections {
  private readonly agent: Agent;

  constructor(one: Case, { plainPort, tlsPort }: Ports) {
    this.agent = new Agent({ keepAlive: true, maxSockets: one.together ? Infinity : 1 });
    this.agent.createConnection = (): Duplex => {
      if (one.client === "http") return connect({ port: plainPort, host: "127.0.0.1", noDelay: true });
      const socket = connectTls({ port: tlsPort, serverName: HOST, protocol: "http/1.1", resumes: true });
      limitRecords(socket, one.recordBytes);
      return socket;
    };
  }

  play(running: Running, path: string): Promise<void> {
    const { exchange, up, down, id } = running;
    const { transfer, framing, reader, leavesAt, pieces } = exchange;
    const sends = transfer === "upload" || transfer === "both";
    return new Promise((resolve) => {
      const asked = request({
        agent: this.agent,
        method: sends ? "POST" : "GET",
        path,
        headers: {
          host: HOST,
          ...running.fields,
          ...rangeOf(exchange),
          ...(transfer === "tunnel" ? { connection: "Upgrade", upgrade: "websocket" } : {}),
          ...(sends && framing === "length" ? { "content-length": exchange.up } : {}),
          ...(sends && framing !== "length" ? { "transfer-encoding": "chunked" } : {}),
        },
      });
      asked.on("error", (error) => {
        running.faults.push(`the client's connection failed: ${error.message}`);
        resolve();
      });
      asked.on("upgrade", ({ headers }: IncomingMessage, socket: Duplex, head: Buffer) => {
        noteHead(running, 101, headers);
        if (head.length > 0) socket.unshift(head);
        void running.tunnel(socket, "client").then(resolve);
      });
      asked.on("response", (response) => {
        const { statusCode, headers } = response;
        response.on("error", () => undefined);
        response.on("close", resolve);
        noteHead(running, statusCode!, headers);
        if (!isExpected(running, statusCode!, headers["content-length"])) return readText(response, running);
        if (transfer === "upload") return readId(response, running, id);
        // A connection goes only with its last response.
        readBy(reader, response, down, leavesAt, () => running.leave(() => response.destroy()));
      });
      if (sends) void send(asked, up.expected, pieces).then(() => asked.end());
      else asked.end();
    });
  }

  close(): Promise<void> {
    this.agent.destroy();
    return Promise.resolve();
  }
}

class Http2Connection implements Connections {
  private session: ClientHttp2Session | undefined;
  /** What the session's GOAWAY frames named as the last stream that is served. */
  private served: number[] = [];

  constructor(
    private readonly one: Case,
    private readonly ports: Ports,
  ) {}

  /** Another one after a GOAWAY. */
  private usable(): ClientHttp2Session {
    const { session, one, ports } = this;
    if (session !== undefined && !session.closed && !session.destroyed) return session;
    const settings = { initialWindowSize: one.windowBytes };
    const next = connectHttp2(ports.tlsPort, settings, { serverName: HOST, resumes: true });
    next.once("connect", (_, socket) => {
      limitRecords(socket as Duplex, one.recordBytes);
      // Otherwise Node drops what its streams have not read yet as soon as the proxy has ended the connection.
      socket.allowHalfOpen = true;
    });
    const served: number[] = (this.served = []);
    next.on("goaway", (_, last) => served.push(last));
    return (this.session = next);
  }

  async play(running: Running, path: string): Promise<void> {
    const { exchange, up, down, id } = running;
    const { transfer, framing, reader, leavesAt, pieces } = exchange;
    const sends = transfer === "upload" || transfer === "both";
    const isTunnel = transfer === "tunnel";
    // Before the settings have come, extended CONNECT is not offered yet.
    if (isTunnel) await settled(this.usable());
    const session = this.usable();
    const { served } = this;
    const headers: OutgoingHttpHeaders = {
      ":method": isTunnel ? "CONNECT" : sends ? "POST" : "GET",
      ":scheme": "https",
      ":authority": HOST,
      ":path": path,
      ...running.fields,
      ...rangeOf(exchange),
      ...(isTunnel ? { ":protocol": "websocket" } : {}),
      ...(sends && framing === "length" ? { "content-length": exchange.up } : {}),
    };
    const stream = session.request(headers, { endStream: !sends && !isTunnel });
    let failed: string | undefined;
    stream.on("error", (error) => (failed = error.message));
    const closed = new Promise<void>((resolve) => stream.once("close", resolve));
    stream.on("response", (head) => {
      noteHead(running, head[":status"]!, head);
      if (!isExpected(running, head[":status"]!, head["content-length"])) return readText(stream, running);
      if (isTunnel) return void running.tunnel(stream, "client");
      if (transfer === "upload") return readId(stream, running, id);
      readBy(reader, stream, down, leavesAt, () => running.leave(() => cancel(stream)));
    });
    if (sends) void send(stream, up.expected, pieces).then(() => stream.end());
    await closed;
    // Node kept a request to itself that it had not sent when the first GOAWAY came, which refuses none yet.
    const unsent = stream.rstCode === constants.NGHTTP2_REFUSED_STREAM && String(served) === ANY_STREAM;
    if (unsent && running.head === undefined) return this.play(running, path);
    if (failed !== undefined) running.faults.push(`the client's stream failed: ${failed}`);
    if (stream.rstCode !== 0) running.faults.push(`the client's stream was reset: ${stream.rstCode}`);
  }

  async close(): Promise<void> {
    this.session?.destroy();
  }
}

/** GOAWAY with this number only announces the end (RFC 9113, 6.8). */
const ANY_STREAM = String(2 ** 31 - 1);

function settled(session: ClientHttp2Session): Promise<unknown> {
  if (session.remoteSettings.enableConnectProtocol === true) return Promise.resolve();
  return Promise.race([once(session, "remoteSettings"), once(session, "close")]);
}

const cancel = (stream: ClientHttp2Stream): void => stream.close(constants.NGHTTP2_CANCEL);

/** A file is requested from a byte on. */
const rangeOf = ({ framing, downAt, down }: Exchange): OutgoingHttpHeaders =>
  framing === "range" ? { range: `bytes=${downAt}-${downAt + down - 1}` } : {};

/** The id of the exchange is the response to an upload: another one is the response to another exchange. */
function readId(stream: Duplex | IncomingMessage, running: Running, id: string): void {
  let text = "";
  stream.on("data", (chunk: Buffer) => (text += chunk.toString("latin1")));
  stream.on("end", () => {
    if (text !== id) running.faults.push(`the response to another exchange: ${text}`);
  });
}

function noteHead(running: Running, status: number, fields: IncomingHttpHeaders): void {
  running.head = { status, fields, at: performance.now(), text: "" };
}

/** Of a response that is not the expected one. */
function readText(stream: Duplex | IncomingMessage, { head }: Running): void {
  stream.on("data", (chunk: Buffer) => (head!.text += chunk.toString("latin1")));
}

function isExpected({ exchange, faults }: Running, status: number, length: string | undefined): boolean {
  const { transfer, framing, down, client } = exchange;
  const expected = framing === "range" ? 206 : transfer === "tunnel" && client !== "h2" ? 101 : 200;
  if (status !== expected) faults.push(`status ${status}`);
  else if (transfer !== "upload" && length !== undefined && Number(length) !== down)
    faults.push(`a length of ${length}, of ${down} bytes`);
  return status === expected;
}
