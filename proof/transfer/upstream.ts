import { createHash } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { pattern } from "./pattern.js";

/**
 * A file server that keeps nothing: an upload is answered with its length and SHA-256, a download is generated.
 * Run as a process of its own, so that its memory and CPU are not the proxy's. Prints its port.
 */
createServer((request, response) => {
  if (request.method === "GET") {
    const bytes = Number(new URL(request.url!, "http://x").searchParams.get("bytes"));
    response.writeHead(200, { "Content-Length": bytes });
    pattern(bytes).pipe(response);
    return;
  }
  const hash = createHash("sha256");
  let bytes = 0;
  request.on("data", (chunk: Buffer) => {
    hash.update(chunk);
    bytes += chunk.length;
  });
  request.on("end", () => response.end(JSON.stringify({ bytes, sha256: hash.digest("hex") })));
}).listen(0, "127.0.0.1", function (this: Server) {
  console.log((this.address() as AddressInfo).port);
});
