import { createHash } from "node:crypto";
import * as http from "node:http";
import { paced } from "./steadyLoad.js";

/**
 * What the load talks to behind the proxy: `…/small` at once, `GET …/long?bytes=N&ms=T` over a time, and `PUT …/long`
 * with the hash of what came.
 */
export function createLoadUpstream(): http.Server {
  return http.createServer((request, response) => {
    const url = new URL(request.url!, "http://upstream");
    if (url.pathname.endsWith("/small")) return void response.end("small\n");
    if (request.method === "PUT") {
      const hash = createHash("sha256");
      request.on("data", (chunk: Buffer) => hash.update(chunk));
      request.on("end", () => response.end(hash.digest("hex")));
      return;
    }
    const bytes = Number(url.searchParams.get("bytes"));
    response.setHeader("Content-Length", bytes);
    const body = paced(bytes, Number(url.searchParams.get("ms")));
    // A client that goes away takes its response with it.
    response.on("close", () => body.destroy());
    body.pipe(response);
  });
}
