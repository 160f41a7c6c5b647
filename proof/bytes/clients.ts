import { Agent, type IncomingMessage, request } from "node:http";
import { type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
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
      asked.on("upgrade", (_: IncomingMessage, socket: Duplex, head: Buffer) => {
        if (head.length > 0) socket.unshift(head);
        void running.tunnel(socket, "client").then(resolve);
      });
      asked.on("response", (response) => {
        const { statusCode, headers } = response;
        response.on("error", () => undefined);
        response.on("close", resolve);
        if (!isExpected(running, statusCode!, headers["content-length"])) return void response.resume();
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
  private readonly session;

  constructor({ windowBytes, recordBytes }: Case, { tlsPort }: Ports) {
    this.session = connectHttp2(
      tlsPort,
      { initialWindowSize: windowBytes },
      { serverName: HOST, resumes: true },
    );
    this.session.once("connect", (_, socket) => limitRecords(socket as Duplex, recordBytes));
  }

  async play(running: Running, path: string): Promise<void> {
    const { exchange, up, down, id } = running;
    const { transfer, framing, reader, leavesAt, pieces } = exchange;
    const sends = transfer === "upload" || transfer === "both";
    const isTunnel = transfer === "tunnel";
    // Before the settings have come, extended CONNECT is not offered yet.
    if (isTunnel) await this.settled();
    const headers: OutgoingHttpHeaders = {
      ":method": isTunnel ? "CONNECT" : sends ? "POST" : "GET",
      ":scheme": "https",
      ":authority": HOST,
      ":path": path,
      ...rangeOf(exchange),
      ...(isTunnel ? { ":protocol": "websocket" } : {}),
      ...(sends && framing === "length" ? { "content-length": exchange.up } : {}),
    };
    const stream = this.session.request(headers, { endStream: !sends && !isTunnel });
    stream.on("error", (error) => running.faults.push(`the client's stream failed: ${error.message}`));
    const closed = new Promise<void>((resolve) => stream.once("close", resolve));
    stream.on("response", (head) => {
      if (!isExpected(running, head[":status"]!, head["content-length"])) return void stream.resume();
      if (isTunnel) return void running.tunnel(stream, "client");
      if (transfer === "upload") return readId(stream, running, id);
      readBy(reader, stream, down, leavesAt, () => running.leave(() => cancel(stream)));
    });
    if (sends) void send(stream, up.expected, pieces).then(() => stream.end());
    await closed;
    if (stream.rstCode !== 0) running.faults.push(`the client's stream was reset: ${stream.rstCode}`);
  }

  async close(): Promise<void> {
    this.session.destroy();
  }

  private settled(): Promise<void> {
    const { session } = this;
    if (session.remoteSettings.enableConnectProtocol === true) return Promise.resolve();
    return new Promise((resolve) => session.once("remoteSettings", () => resolve()));
  }
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

function isExpected({ exchange, faults }: Running, status: number, length: string | undefined): boolean {
  const { transfer, framing, down, client } = exchange;
  const expected = framing === "range" ? 206 : transfer === "tunnel" && client !== "h2" ? 101 : 200;
  if (status !== expected) faults.push(`status ${status}`);
  else if (transfer !== "upload" && length !== undefined && Number(length) !== down)
    faults.push(`a length of ${length}, of ${down} bytes`);
  return status === expected;
}
