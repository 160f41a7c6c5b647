import http from "node:http";
import http2 from "node:http2";
import { connect, isIP, type Socket } from "node:net";
import tls from "node:tls";
import { coversName } from "../../../model/net/certificateName.js";
import { printableValue } from "../../../model/text/printable.js";
import { withinRanges } from "../../../model/serving.js";
import { LOCAL_HEADER } from "../../../runtime/listen/proxyHeader.js";
import type { SeenBehind } from "./behind.js";
import { isUnclear, type ReceivedResponse } from "./expectation.js";
import type { ProbeRequest } from "./expectedResponses.js";

export interface ProbeOptions {
  readonly timeoutMs: number;
  /** Whether an untrusted certificate is accepted. */
  readonly insecure: boolean;
}

/** Why there is no response: the system's code (`ECONNREFUSED`, `ETIMEDOUT`, …) and message. */
export interface ProbeFailure {
  readonly code: string;
  readonly message: string;
}

export type ProbeOutcome =
  | { readonly response: ReceivedResponse; readonly behind?: SeenBehind }
  | { readonly failure: ProbeFailure };

/**
 * Sends a request and returns what came back, or why nothing did. Never throws. After a HEAD whose status the proxy and an
 * application may both have it sends a GET, because only the body shows who responded. Unlike `HttpsClient`, it asks as
 * browsers do: in clear text too, over HTTP/2, at an address apart from the URL, and of servers that are not trusted.
 */
export async function probe(request: ProbeRequest, options: ProbeOptions): Promise<ProbeOutcome> {
  const timeoutMs = options.timeoutMs + (request.holdMs ?? 0);
  const signal = AbortSignal.timeout(timeoutMs);
  try {
    const { method = "HEAD" } = request;
    const response = await send(method, request, options, signal);
    const again = method === "HEAD" && isUnclear(response.status);
    return { response: again ? await send("GET", request, options, signal) : response };
  } catch (error) {
    if (signal.aborted) return { failure: { code: "ETIMEDOUT", message: `no response in ${timeoutMs} ms` } };
    const { code = "", message } = error as NodeJS.ErrnoException;
    return { failure: { code, message: message === "" ? code : message } };
  }
}

/** Longest part of a body that is kept; an error page is shorter, and so is JSON that is read. */
const BODY_BYTES_MAX = 65_536;

type Method = NonNullable<ProbeRequest["method"]>;

async function send(
  method: Method,
  request: ProbeRequest,
  options: ProbeOptions,
  signal: AbortSignal,
): Promise<ReceivedResponse> {
  const tcp = await connectTcp(request, signal);
  try {
    if (request.scheme === "http") return await sendHttp1(method, request, signal, tcp);
    const socket = await connectTls(tcp, request, options);
    const response =
      socket.alpnProtocol === "h2"
        ? await sendHttp2(method, request, socket, signal)
        : await sendHttp1(method, request, signal, socket);
    return { ...response, ...certificateOf(socket, nameIn(request)) };
  } finally {
    tcp.destroy();
  }
}

/** The listener sees the address that this end has, unless something in between translates it. */
function connectTcp(request: ProbeRequest, signal: AbortSignal): Promise<Socket> {
  const { address: host, port, headerFrom } = request;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port, noDelay: true });
    socket.on("error", reject).once("connect", () => {
      if (headerFrom !== undefined && withinRanges(headerFrom)(socket.localAddress!))
        socket.write(LOCAL_HEADER);
      resolve(socket);
    });
    signal.addEventListener("abort", () => socket.destroy(signal.reason as Error));
  });
}

function connectTls(tcp: Socket, request: ProbeRequest, options: ProbeOptions): Promise<tls.TLSSocket> {
  const name = nameIn(request);
  return new Promise((resolve, reject) => {
    const socket = tls.connect({
      socket: tcp,
      ALPNProtocols: ["h2", "http/1.1"],
      rejectUnauthorized: !options.insecure,
      // An IP address must not be in SNI (RFC 6066, 3); its certificate is still checked.
      ...(isIP(name) === 0 ? { servername: name } : {}),
      checkServerIdentity: (_host, certificate) => tls.checkServerIdentity(name, certificate),
    });
    socket.once("secureConnect", () => resolve(socket));
    // The connection below reports its own errors.
    socket.on("error", reject);
  });
}

/** The name or address of a request's host. */
const nameIn = ({ host }: ProbeRequest): string => host.replace(/:\d+$/, "").replace(/[[\]]/g, "");

function certificateOf(socket: tls.TLSSocket, name: string): Pick<ReceivedResponse, "certificate"> {
  const found = socket.getPeerX509Certificate()!;
  const subjectAltName = printableValue(found.subjectAltName ?? "no name");
  return { certificate: { covers: coversName(found, name), subjectAltName } };
}

function sendHttp1(
  method: Method,
  request: ProbeRequest,
  signal: AbortSignal,
  socket: Socket,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const sent = http.request({
      method,
      path: request.path,
      headers: { Host: request.host, Connection: "close" },
      signal,
      createConnection: () => socket,
    });
    sent.once("error", reject);
    sent.once("response", (response) => {
      const received = (body: string): void => {
        const headers = joined(response.headers);
        resolve({ protocol: "HTTP/1.1", status: response.statusCode!, headers, body });
      };
      readBody(response, received, reject);
    });
    sent.end();
  });
}

function sendHttp2(
  method: Method,
  request: ProbeRequest,
  socket: tls.TLSSocket,
  signal: AbortSignal,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    const session = http2.connect(`https://${request.host}`, { createConnection: () => socket });
    session.once("error", reject);
    const { HTTP2_HEADER_METHOD, HTTP2_HEADER_PATH, HTTP2_HEADER_AUTHORITY, HTTP2_HEADER_STATUS } =
      http2.constants;
    const fields = {
      [HTTP2_HEADER_METHOD]: method,
      // Node would add the port, also one that no client sends.
      [HTTP2_HEADER_AUTHORITY]: request.host,
      [HTTP2_HEADER_PATH]: request.path,
    };
    const stream = session.request(fields, { signal });
    stream.once("error", reject);
    // A server that ends its connection in good order leaves no error.
    stream.once("close", () => reject(Object.assign(new Error(ENDED), { code: "ECONNRESET" })));
    stream.once("response", (headers) => {
      const status = Number(headers[HTTP2_HEADER_STATUS]);
      readBody(
        stream,
        (body) => resolve({ protocol: "HTTP/2", status, headers: joined(headers), body }),
        reject,
      );
    });
  });
}

const ENDED = "the connection ended without a response";

function readBody(
  stream: NodeJS.ReadableStream,
  done: (body: string) => void,
  failed: (error: Error) => void,
): void {
  let body = "";
  stream.setEncoding("latin1");
  stream.on("data", (chunk: string) => {
    body += chunk.slice(0, BODY_BYTES_MAX - body.length);
    if (body.length >= BODY_BYTES_MAX) done(body);
  });
  stream.once("end", () => done(body));
  stream.once("error", failed);
}

function joined(headers: http.IncomingHttpHeaders | http2.IncomingHttpHeaders): Record<string, string> {
  const fields = Object.entries(headers).filter(([name]) => !name.startsWith(":"));
  return Object.fromEntries(
    fields.map(([name, value]) => [name, Array.isArray(value) ? value.join(", ") : value!]),
  );
}
