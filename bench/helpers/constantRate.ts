import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";

/**
 * Requests at a constant rate, whatever the responses take: a request that finds no free connection waits, and its
 * latency counts from when it was due. Arguments: port, target, requests a second, connections, seconds, and `tls` for a
 * client over TLS. Prints the latencies' percentiles in milliseconds.
 */
const [portText, target, ...numbers] = process.argv.slice(2) as [string, string, ...string[]];
const [rate, connections, seconds] = numbers.map(Number) as [number, number, number];
const secure = numbers[3] === "tls";
const request = Buffer.from(`GET ${target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`);
/** What comes first is the warm-up. */
const WARM_UP_MS = 1_000;

const free: Client[] = [];
const latencies: number[] = [];
/** When the requests were due that no connection was free for. */
const waiting: number[] = [];
let [sent, failed] = [0, 0];

class Client {
  private dueAt = 0;
  private readonly socket: Socket;
  private length = 0;

  constructor() {
    const to = { host: "127.0.0.1", port: Number(portText), noDelay: true };
    this.socket = secure ? connectTls({ ...to, rejectUnauthorized: false }) : connect(to);
    this.socket.on(secure ? "secureConnect" : "connect", () => this.next());
    this.socket.on("data", (chunk) => this.took(chunk));
    this.socket.on("error", () => failed++);
  }

  send(dueAt: number): void {
    this.dueAt = dueAt;
    sent++;
    this.socket.write(request);
  }

  /** Responses are small and all alike: the first one tells how long they are. */
  private took(chunk: Buffer): void {
    this.length += chunk.length;
    if (responseBytes === 0) responseBytes = lengthOf(chunk);
    if (this.length < responseBytes) return;
    this.length = 0;
    latencies.push(performance.now() - this.dueAt);
    this.next();
  }

  private next(): void {
    const dueAt = waiting.shift();
    if (dueAt === undefined) free.push(this);
    else this.send(dueAt);
  }
}

let responseBytes = 0;

function lengthOf(response: Buffer): number {
  const text = response.toString("latin1");
  const head = text.indexOf("\r\n\r\n") + 4;
  if (!text.startsWith("HTTP/1.1 200")) throw new Error(`not 200: ${text.slice(0, 60)}`);
  return head + Number(/content-length: *(\d+)/i.exec(text)![1]);
}

for (let i = 0; i < connections; i++) new Client();

/** Timers are exact to a millisecond: the requests of one go out together. */
setTimeout(() => {
  const start = performance.now();
  const end = start + WARM_UP_MS + seconds * 1000;
  let [issued, warm] = [0, false];
  const timer = setInterval(() => {
    const now = performance.now();
    for (const due = Math.floor(((now - start) * rate) / 1000); issued < due; issued++) {
      const client = free.pop();
      if (client === undefined) waiting.push(now);
      else client.send(now);
    }
    if (!warm && now - start > WARM_UP_MS) {
      warm = true;
      latencies.length = 0;
    }
    if (now < end) return;
    clearInterval(timer);
    report();
  }, 1);
}, 300);

function report(): void {
  const sorted = Float64Array.from(latencies).sort();
  const at = (part: number): number => sorted[Math.floor(part * (sorted.length - 1))] ?? NaN;
  const measured = sorted.length / seconds;
  console.log(
    JSON.stringify({ p50: at(0.5), p99: at(0.99), rate: measured, sent, failed, left: waiting.length }),
  );
}
