import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { pattern } from "../transfer/pattern.js";

/**
 * One server for all daemons, which keeps nothing and misbehaves on request. Run as a process of its own; prints its
 * port. What it does is said by the last segment of the path:
 *
 *     small                  a short response
 *     file?bytes=N           GET: N bytes of the pattern; PUT: length and SHA-256 of what arrived
 *     whole?bytes=N          how many bodies of N bytes came to their end
 *     cut?bytes=N            announces N bytes, sends half, breaks the connection
 *     reset                  breaks the connection without a response
 *     refuse                 413 before the body is read
 *     collection             a multi-status response to PROPFIND, 201 to MOVE with the Destination it got
 */
const server = createServer((request, response) => {
  const url = new URL(request.url!, "http://upstream");
  const bytes = Number(url.searchParams.get("bytes"));
  const behave = BEHAVIOURS[url.pathname.slice(url.pathname.lastIndexOf("/") + 1)];
  if (behave === undefined) response.writeHead(404).end();
  else behave(request, response, bytes);
});

const BEHAVIOURS: Record<
  string,
  (request: IncomingMessage, response: ServerResponse, bytes: number) => void
> = {
  small: (_request, response) => response.end('{"ok":true}'),
  file: (request, response, bytes) => {
    if (request.method === "PUT") return digest(request, response);
    response.writeHead(200, { "Content-Length": bytes });
    pattern(bytes)
      .on("error", () => undefined)
      .pipe(response);
  },
  whole: (_request, response, bytes) => response.end(String(whole.get(bytes) ?? 0)),
  cut: (_request, response, bytes) => {
    response.writeHead(200, { "Content-Length": bytes });
    const half = pattern(Math.floor(bytes / 2));
    half.pipe(response, { end: false });
    half.on("end", () => response.socket?.end());
  },
  reset: (request) => request.socket.resetAndDestroy(),
  refuse: (_request, response) => response.writeHead(413, { Connection: "close" }).end("too large"),
  collection: (request, response) => {
    const moved = request.method === "MOVE";
    response.writeHead(moved ? 201 : 207, { "Content-Type": "application/xml" });
    response.end(moved ? String(request.headers["destination"]) : '<multistatus xmlns="DAV:"/>');
  },
};

/** Bodies that came to their end, by length. */
const whole = new Map<number, number>();

function digest(request: IncomingMessage, response: ServerResponse): void {
  const hash = createHash("sha256");
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  request.on("end", () => {
    whole.set(bytes, (whole.get(bytes) ?? 0) + 1);
    response.end(JSON.stringify({ bytes, sha256: hash.digest("hex") }));
  });
}

// A proxy that gave up is not an error of ours.
server.on("clientError", (_error, socket) => socket.destroy());
server.keepAliveTimeout = 10_000;
server.listen(0, "127.0.0.1", function (this: Server) {
  console.log((this.address() as AddressInfo).port);
});
