import { createHash } from "node:crypto";
import * as http from "node:http";

/** One of the servers behind the proxy, a process of its own: `server.ts PORT`. Its parent can slow it down. */

let slowMs = 0;
process.on("message", (message: { readonly slowMs: number }) => void (slowMs = message.slowMs));
process.on("disconnect", () => process.exit());

const server = http.createServer((request, response) => {
  if (request.url === "/health") return void response.end("up");
  const id = Number(request.url!.slice(request.url!.lastIndexOf("/") + 1));
  process.send!({ begun: id });
  const hash = createHash("sha256");
  request.on("data", (chunk: Buffer) => hash.update(chunk));
  request.on("end", () => setTimeout(() => response.end(hash.digest("hex")), slowMs));
});
server.requestTimeout = 0;
server.listen(Number(process.argv[2]), "127.0.0.1", () => process.send!({ ready: true }));
