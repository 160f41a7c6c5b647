import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/**
 * Opens connections, sends one request on each, and keeps them. Arguments: port, `plain` or `tls`, how many. Prints
 * how many are open when all have a response.
 */
const [port, mode, count] = process.argv.slice(2) as [string, string, string];
const REQUEST = "GET /sync/small HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
/** At a time, so that no queue of the kernel overflows. */
const CONCURRENT = 64;
/** Source addresses: each has its own range of ports. */
const ADDRESSES = ["127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5"];

const kept: Socket[] = [];
let next = 0;

async function open(): Promise<void> {
  while (next < Number(count)) {
    const localAddress = ADDRESSES[next++ % ADDRESSES.length]!;
    const socket = connect({ host: "127.0.0.1", port: Number(port), localAddress });
    const channel = mode === "tls" ? connectTls({ socket, rejectUnauthorized: false }) : socket;
    await once(channel, mode === "tls" ? "secureConnect" : "connect");
    channel.write(REQUEST);
    await once(channel, "data");
    channel.on("close", () => kept.splice(kept.indexOf(channel), 1));
    channel.on("error", () => undefined);
    kept.push(channel);
  }
}

void Promise.all(Array.from({ length: CONCURRENT }, open)).then(() => {
  console.log(JSON.stringify({ open: kept.length }));
  // Asked again by a signal, after the memory was read: were they all still there?
  process.on("SIGUSR2", () => console.log(JSON.stringify({ open: kept.length })));
});
