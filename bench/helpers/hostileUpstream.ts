import { createServer, type Socket } from "node:net";
import { announce } from "./announce.js";

/** An upstream that responds to `/chunks` with chunks of a byte, and to all else with interim responses, both without end. */
const CHUNKS = Buffer.from("1\r\nx\r\n".repeat(10_000));
const INTERIM = Buffer.from("HTTP/1.1 103 Early Hints\r\n\r\n".repeat(2_000));

const server = createServer({ noDelay: true }, (socket: Socket) => {
  socket.on("error", () => undefined);
  socket.once("data", (request: Buffer) => {
    const isChunks = request.includes("/chunks ");
    if (isChunks) socket.write("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    const write = (): void => {
      while (!socket.destroyed && socket.write(isChunks ? CHUNKS : INTERIM));
    };
    socket.on("drain", write);
    write();
  });
});
announce(server);
