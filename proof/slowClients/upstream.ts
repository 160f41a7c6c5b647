import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** An upstream that reads each request to its end; prints the port it chose. */
const server = createServer((request, response) => {
  request.resume().on("end", () => response.end("ok"));
  request.on("error", () => undefined);
}).listen(0, "127.0.0.1", () => console.log((server.address() as AddressInfo).port));
