import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/**
 * Downloads by clients that read slowly. Arguments: port, `plain` or `tls`, how many, path, bytes a second that each
 * reads. Prints what all have read so far, once a second.
 */
const [port, mode, count, path, rate] = process.argv.slice(2) as [string, string, string, string, string];
const TICK_MS = 50;
const bytesPerTick = Math.round((Number(rate) * TICK_MS) / 1000);

let [received, ended] = [0, 0];

function download(): void {
  const socket = connect({ host: "127.0.0.1", port: Number(port) });
  const channel: Socket = mode === "tls" ? connectTls({ socket, rejectUnauthorized: false }) : socket;
  // Nothing is taken from the kernel but what `read` asks for.
  channel.on("readable", () => undefined);
  channel.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
  channel.on("error", () => undefined);
  channel.on("close", () => ended++);
  setInterval(() => {
    let left = bytesPerTick;
    for (let taken; left > 0 && channel.readableLength > 0; left -= taken) {
      taken = Math.min(left, channel.readableLength);
      channel.read(taken);
      received += taken;
    }
  }, TICK_MS);
}

for (let i = 0; i < Number(count); i++) download();
setInterval(() => console.log(JSON.stringify({ received, ended })), 1_000);
