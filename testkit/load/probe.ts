import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";

/**
 * A new connection and a request every 10 ms, for how long an address is without a response: `probe ADDRESS PORT` says
 * `probing` after the first response, and prints a line of JSON when its standard input ends.
 */
export interface ProbeReport {
  readonly responses: number;
  readonly failures: number;
  /** Longest time between two requests that got a response, by when they were sent, in milliseconds. */
  readonly longestGapMs: number;
}

const [, , address = "", port = ""] = process.argv;
/** In a network of one switch a host that responds at all does so sooner. */
const PATIENCE_MS = 150;
const sent: number[] = [];
let failures = 0;

function ask(): void {
  const at = performance.now();
  const socket = connect({ host: address, port: Number(port) });
  let done = false;
  const finish = (responded: boolean): void => {
    if (done) return;
    done = true;
    socket.destroy();
    if (!responded) failures++;
    else if (sent.push(at) === 1) process.stdout.write("probing\n");
  };
  setTimeout(() => finish(false), PATIENCE_MS);
  socket.on("connect", () =>
    socket.write("GET / HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n"),
  );
  socket.on("data", (data) => finish(data.toString("latin1").startsWith("HTTP/1.1 200 ")));
  socket.on("error", () => finish(false));
  socket.on("close", () => finish(false));
}

let running = true;
process.stdin.resume().on("end", () => (running = false));

void (async () => {
  while (running) {
    ask();
    await sleep(10);
  }
  await sleep(2 * PATIENCE_MS);
  sent.sort((a, b) => a - b);
  const gaps = sent.slice(1).map((at, i) => at - sent[i]!);
  const report: ProbeReport = {
    responses: sent.length,
    failures,
    longestGapMs: Math.round(Math.max(...gaps)),
  };
  process.stdout.write(`${JSON.stringify(report)}\n`);
})();
