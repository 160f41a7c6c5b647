import { createServer } from "node:http";
import net from "node:net";

/**
 * A web application as a unit of a host runs one: `application PORT`. It says `ready`, and prints the target of each
 * request that it has got whole. Asked to stop (SIGTERM), it accepts nothing more, finishes what it has, and ends: each
 * response closes its connection from then on, and one on which nothing comes is closed after a moment.
 */
const IDLE_MS = 200;

let stopping = false;
const server = createServer((request, response) => {
  let bytes = 0;
  request.on("data", (chunk: Buffer) => (bytes += chunk.length));
  request.on("error", () => undefined);
  request.on("end", () => {
    process.stdout.write(`${request.url}\n`);
    if (stopping) response.setHeader("Connection", "close");
    response.end(`${request.method} ${request.url} ${bytes}`);
  });
});
server.keepAliveTimeout = 30_000;
server.listen(Number(process.argv[2]), "127.0.0.1", () => process.stdout.write("ready\n"));
process.on("SIGTERM", () => {
  stopping = true;
  // That of `http` would also close connections on which a request may be arriving.
  net.Server.prototype.close.call(server, () => process.exit(0));
  setInterval(() => server.closeIdleConnections(), IDLE_MS);
});
