import { createReadStream, readFileSync, statSync } from "node:fs";
import { createServer as createHttpServer, type IncomingMessage, type ServerResponse } from "node:http";
import { createServer as createHttpsServer } from "node:https";
import { createServer } from "node:net";
import path from "node:path";
import { announce } from "./announce.js";

/**
 * The upstream where there is no nginx: responds to every request with the same bytes, or sends files. Arguments: `web` and
 * the body, or `files` and their folder, for TLS with certificate and key. Prints its port.
 */
const [kind, argument, certificate, key] = process.argv.slice(2) as [
  "web" | "files",
  string,
  string?,
  string?,
];

function respondToAll(body: string): void {
  const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${body.length}\r\n\r\n`;
  const response = Buffer.from(head + body);
  const server = createServer({ noDelay: true }, (socket) => {
    // Its peers are proxies, which send a request at a time and heads in one piece.
    socket.on("data", (chunk) => chunk.includes("\r\n\r\n") && socket.write(response));
    socket.on("error", () => socket.destroy());
  });
  announce(server);
}

function sendFiles(folder: string): void {
  const secure =
    certificate === undefined ? undefined : { cert: readFileSync(certificate), key: readFileSync(key!) };
  const send = (request: IncomingMessage, response: ServerResponse): void => {
    const file = path.join(folder, path.basename(request.url!));
    response.setHeader("Content-Length", statSync(file).size);
    createReadStream(file, { highWaterMark: 1 << 20 }).pipe(response);
  };
  const server = secure === undefined ? createHttpServer(send) : createHttpsServer(secure, send);
  server.keepAliveTimeout = 3_600_000;
  announce(server);
}

if (kind === "web") respondToAll(argument);
else sendFiles(argument);
