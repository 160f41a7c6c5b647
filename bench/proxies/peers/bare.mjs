import net from "node:net";
import tls from "node:tls";
import { settings, tlsOptions } from "./server.mjs";

/** What Node takes for a connection before any proxy is written: it responds to whatever arrives, and forwards nothing. */
const RESPONSE = Buffer.from("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 3\r\n\r\nok\n");

const respond = (socket) => {
  socket.on("data", () => socket.write(RESPONSE));
  socket.on("error", () => socket.destroy());
};

const server =
  settings.mode === "tls"
    ? tls.createServer({ ...tlsOptions(), ALPNProtocols: ["h2", "http/1.1"] }, respond)
    : net.createServer(respond);
server.listen(settings.port, "127.0.0.1", 4096);
